import { invalidArgument } from '../errors/classes.ts'

export function segment(name: string, id: unknown): string {
  if (typeof id !== 'string') throw invalidArgument(name, 'must be a string')
  if (/^[\w-]+$/.test(id)) return id
  const problem = id.trim() === '' ? 'must not be blank' : pathProblem(id)
  if (problem) throw invalidArgument(name, problem)
  return encodeURIComponent(id)
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
    if (/[\0-\x1f\x7f\p{Cs}]/u.test(decoded)) return 'must be printable Unicode'
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
