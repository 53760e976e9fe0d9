import { invalidArgument } from '../errors.ts'

/**
 * One path segment out of an identifier. Refuses what could reach another endpoint: nothing at all, `.` and `..`,
 * also where only a proxy that decodes once too often would see them; everything else is percent-encoded.
 */
export function segment(name: string, id: unknown): string {
  const refuse = (message: string): never => {
    throw invalidArgument(name, message)
  }
  if (typeof id !== 'string') return refuse('must be a string')
  // As nearly every id is: nothing in it means anything to anybody.
  if (/^[\w-]+$/.test(id)) return id
  if (id.trim() === '') return refuse('must not be empty')
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
 * Why a path, without slashes at its ends, could reach another endpoint: also where only a proxy that decodes it up to five
 * times would see that. The one rule for identifiers and for the paths of `client.request`.
 */
export function pathProblem(path: string): string | undefined {
  let decoded = path
  for (let round = 0; round < 5; round++) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
    if (/[\u0000-\u001f\u007f]/.test(decoded)) return 'must not contain control characters'
    // A decoded ? or # ends the path, so that what stands before it counts. Spaces at the end of an address are dropped.
    const segments = decoded.replace(/[?#].*/s, '').split(/[/\\]/)
    if (segments.some((part) => /^\.{0,2} *$/.test(part))) return 'must not contain empty or dot segments'
    // Character by character: a decoder may be lenient where decodeURIComponent refuses the whole text.
    const next = decoded.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number(`0x${hex}`)),
    )
    if (next === decoded) break
    decoded = next
  }
  return undefined
}

/** Query string with a leading `?`, or nothing; undefined values are left out. */
export function queryString(query: Readonly<Record<string, string | number | boolean | undefined>>): string {
  let text = ''
  for (const name of Object.keys(query)) {
    const value = query[name]
    if (value !== undefined) text += `${text === '' ? '?' : '&'}${parameter(name, String(value))}`
  }
  return text
}

function parameter(name: string, value: string): string {
  const plain = /^[\w-]*$/
  return plain.test(name) && plain.test(value)
    ? `${name}=${value}`
    : new URLSearchParams([[name, value]]).toString()
}
