import { isObject } from '../defined.ts'
import { isPlain } from '../identity/canonical.ts'

/** `problem` never quotes the value, which may be a secret. `inside` names a field of the value. */
export type Refuse = (problem: string, inside?: string) => never

export type Read<T> = (value: unknown, refuse: Refuse) => T

export type Readers<T extends object> = {
  readonly [Name in keyof T]-?: Read<Exclude<T[Name], undefined>>
}

/**
 * Ignores inherited fields, which could come from a polluted `Object.prototype`. A field that is
 * `undefined` counts as absent.
 * @param habitOf returns what to write in place of a name from another SDK, or ''
 */
export function readFields<T extends object>(
  value: unknown,
  readers: Readers<T>,
  refuse: Refuse,
  habitOf: (name: string, readers: object) => string = () => '',
): Partial<T> {
  const given = plainObject(value, refuse)
  const fields: Partial<T> = Object.create(null)
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(readers, name)) {
      const habit = habitOf(name, readers)
      // A name that is no misspelling of ours may be absent, as all options.
      if (habit !== '' && given[name] === undefined) continue
      const advice = habit || nearestName(name, Object.keys(readers))
      refuse(
        `is not known${advice && ` (${advice.includes(' ') ? advice : `did you mean ${advice}?`})`}`,
        name,
      )
    }
    // The cast is safe: the field has a reader, and readers have the names of T's fields.
    const known = name as keyof T & string
    const field = given[name]
    if (field === undefined) continue
    fields[known] = readers[known](field, (problem, inside) => refuse(problem, join(name, inside)))
  }
  return Object.freeze(fields)
}

function join(name: string, inside: string | undefined): string {
  return inside === undefined ? name : `${name}.${inside}`
}

export function fields<T extends object>(readers: Readers<T>): Read<Partial<T>> {
  return (value, refuse) => readFields(value, readers, refuse)
}

export function only<T>(passes: (value: unknown) => boolean, problem: string): Read<T> {
  // The cast is safe: each test checks all of T that can be checked before use.
  return (value, refuse) => (passes(value) ? (value as T) : refuse(problem))
}

export const duration: Read<number> = only(
  (value) => Number.isFinite(value) && Number(value) > 0,
  'must be a finite number of milliseconds above 0',
)

export function integer(least: number, most: number = Number.MAX_SAFE_INTEGER): Read<number> {
  const safe = most === Number.MAX_SAFE_INTEGER
  const range = safe ? `a safe integer of at least ${least}` : `an integer from ${least} to ${most}`
  return only(
    (value) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most,
    `must be ${range}`,
  )
}

export const flag: Read<boolean> = only((value) => typeof value === 'boolean', 'must be true or false')

/** Rejects lone surrogates, which neither JSON nor URLs can contain. */
export const text: Read<string> = only(
  (value) => typeof value === 'string' && /\S/.test(value) && !/\p{Surrogate}/u.test(value),
  'must be a non-blank string of well-formed Unicode',
)

export function oneOf<T extends string>(...values: readonly T[]): Read<T> {
  return only((value) => values.some((each) => each === value), `must be one of: ${values.join(', ')}`)
}

export function callable<T>(): Read<T> {
  return only((value) => typeof value === 'function', 'must be a function')
}

export function withMethods<T>(...names: readonly (keyof T & string)[]): Read<T> {
  return only(
    (value) => isObject(value) && names.every((name) => typeof value[name] === 'function'),
    `must be an object with ${names.length > 1 ? 'the functions' : 'the function'} ${names.join(', ')}`,
  )
}

/** Headers that the client sets, and those with which platforms send no request. */
const RESERVED =
  /^(authorization|idempotency-key|if-api-key-tag|host|connection|content-.*|cookie|transfer-encoding|accept|expect|keep-alive|upgrade)$/

/**
 * Rejects an instance of a class, such as Headers or AbortController: its inherited fields would be
 * lost. Accepts objects of another realm, which inherit from that realm's `Object.prototype`.
 */
export const plainObject: Read<Readonly<Record<string, unknown>>> = only(
  (value) => isObject(value) && isPlain(value),
  'must be an object literal',
)

/** The values that `fetch` sends unchanged on every platform. */
export const HEADER_VALUE: RegExp = /^[!-~]([ -~]*[!-~])?$/

export const headers: Read<Readonly<Record<string, string>>> = (value, refuse) => {
  const read: Record<string, string> = Object.create(null)
  for (const [name, content] of Object.entries(plainObject(value, refuse))) {
    const lower = name.toLowerCase()
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) refuse('has an invalid header name')
    if (RESERVED.test(lower)) refuse('is reserved for the client', name)
    if (Object.hasOwn(read, lower)) refuse('is set twice', name)
    if (typeof content !== 'string' || !HEADER_VALUE.test(content))
      return refuse('must be a trimmed string of printable ASCII', name)
    read[lower] = content
  }
  return Object.freeze(read)
}

/** The name that was meant: the same but for case and punctuation, or with one letter wrong. */
export function nearestName(name: string, known: readonly string[]): string {
  const form = folded(name)
  const nearest = known.find((each) => folded(each) === form)
  return nearest ?? known.find((each) => isOneEdit(form, folded(each))) ?? ''
}

export function folded(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** True if one letter was changed, added, removed or swapped with its neighbour. */
export function isOneEdit(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false
  let start = 0
  while (start < a.length && a[start] === b[start]) start++
  const [restA, restB] = [a.slice(start), b.slice(start)]
  if (a.length < b.length) return restA === restB.slice(1)
  if (a.length > b.length) return restA.slice(1) === restB
  const swapped = restA[0] === restB[1] && restA[1] === restB[0] && restA.slice(2) === restB.slice(2)
  return swapped || restA.slice(1) === restB.slice(1)
}
