import type { StoredRow } from '../store.ts'

const FIELDS = [
  'scope',
  'id',
  'version',
  'open',
  'state',
  'createdAt',
  'updatedAt',
  'data',
] as const satisfies readonly (keyof StoredRow)[]

/** Maximum number of characters of a string in a message. */
const SHOWN = 60

/** Throws unless both values are the same. `what` begins the message and names the actual value. */
export function expectSame<T>(actual: T, expected: T, what: string): void {
  if (!Object.is(actual, expected))
    throw new Error(`${what} is ${show(actual)} but must be ${show(expected)}`)
}

/** Throws unless the row has the expected value in every field. */
export function expectRow(actual: StoredRow | undefined, expected: StoredRow, what: string): void {
  if (actual === undefined) throw new Error(`${what} is missing`)
  const field = FIELDS.find((name) => !Object.is(actual[name], expected[name]))
  if (field === undefined) return
  const [got, wanted] = [actual[field], expected[field]]
  if (typeof got === 'string' && typeof wanted === 'string') {
    throw new Error(`${what} has the wrong ${field}: ${difference(got, wanted)}`)
  }
  throw new Error(`${what} has ${field} ${show(got)} but must have ${show(wanted)}`)
}

/** Throws unless the rows have exactly the expected ids, each once and in any order. */
export function expectIds(actual: readonly StoredRow[], expected: readonly StoredRow[], what: string): void {
  const [got, wanted] = [actual.map(({ id }) => id), expected.map(({ id }) => id)]
  const missing = wanted.filter((id) => !got.includes(id))
  if (missing.length > 0)
    throw new Error(`${what} lacks ${missing.length} of ${wanted.length} rows, such as ${show(missing[0])}`)
  const surplus = got.find((id, index) => !wanted.includes(id) || got.indexOf(id) !== index)
  if (surplus !== undefined) throw new Error(`${what} has an unexpected or repeated row: ${show(surplus)}`)
}

/** True if the rows agree in every field. */
export function sameRow(one: StoredRow, other: StoredRow): boolean {
  return FIELDS.every((name) => Object.is(one[name], other[name]))
}

/** Formats a value for a message: on one line, and truncated. */
export function show(value: unknown): string {
  if (typeof value !== 'string') return String(value)
  return value.length <= SHOWN
    ? JSON.stringify(value)
    : `${JSON.stringify(value.slice(0, SHOWN))}… (${value.length} characters)`
}

function difference(actual: string, expected: string): string {
  let at = 0
  while (at < actual.length && actual[at] === expected[at]) at++
  return (
    `its length is ${actual.length} but must be ${expected.length}; from position ${at}, it is ` +
    `${show(actual.slice(at, at + SHOWN))} but must be ${show(expected.slice(at, at + SHOWN))}`
  )
}
