import { invalidArgument } from '../errors/classes.ts'

export function segment(name: string, id: unknown): string {
  const refuse = (message: string): never => {
    throw invalidArgument(name, message)
  }
  if (typeof id !== 'string') return refuse('must be a string')
  if (/^[\w-]+$/.test(id)) return id
  if (id.trim() === '') return refuse('must not be blank')
  let encoded = ''
  try {
    encoded = encodeURIComponent(id)
  } catch {
    return refuse('must be well-formed Unicode')
  }
  const problem = pathProblem(id)
  if (problem !== undefined) refuse(problem)
  return encoded
}

/**
 * Returns why a path could reach another endpoint, as it is or once proxies have decoded it up to
 * four times. Returns undefined if it could not.
 * @param path without slashes at its start and end
 */
export function pathProblem(path: string): string | undefined {
  let decoded = path
  for (let round = 0; round < 5; round++) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: this line rejects them.
    if (/[\u0000-\u001f\u007f]/.test(decoded)) return 'must not contain control characters'
    // A decoded `?` or `#` ends the path. URLs drop trailing spaces.
    const segments = decoded.replace(/[?#].*/s, '').split(/[/\\]/)
    if (segments.some((part) => /^\.{0,2} *$/.test(part))) return 'must not contain empty or dot segments'
    // Decodes each byte separately: a proxy may decode a path that decodeURIComponent rejects.
    const next = decoded.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number(`0x${hex}`)),
    )
    if (next === decoded) break
    decoded = next
  }
  return undefined
}

export function queryString(query: Readonly<Record<string, string | number | boolean | undefined>>): string {
  let text = ''
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    const pair = `${name}=${value}`
    // Most pairs need no encoding, which takes longer than all else here, and a global that
    // docs/guide/runtimes.md does not demand.
    const encoded = /^[\w-]*=[\w-]*$/.test(pair) ? pair : new URLSearchParams([[name, String(value)]])
    text += `${text === '' ? '?' : '&'}${encoded}`
  }
  return text
}
