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

const MAX_CHARACTERS_SHOWN = 60

export function expectSame<T>(actual: T, expected: T, what: string): void {
  if (!Object.is(actual, expected))
    throw new Error(`${what}: expected ${show(expected)}, got ${show(actual)}`)
}

export function expectNoRow(actual: StoredRow | undefined, what: string): void {
  if (actual !== undefined) throw new Error(`${what}: expected no row, got version ${actual.version}`)
}

export function expectRow(actual: StoredRow | undefined, expected: StoredRow, what: string): void {
  if (actual === undefined) throw new Error(`${what} is missing`)
  const field = FIELDS.find((name) => !Object.is(actual[name], expected[name]))
  if (field === undefined) return
  const [got, wanted] = [actual[field], expected[field]]
  if (typeof got === 'string' && typeof wanted === 'string') {
    throw new Error(`${what}: wrong ${field} ${difference(got, wanted)}`)
  }
  throw new Error(`${what}: expected ${field} ${show(wanted)}, got ${show(got)}`)
}

/** Ignores the order of the rows, but not duplicates. */
export function expectIds(actual: readonly StoredRow[], expected: readonly StoredRow[], what: string): void {
  const [got, wanted] = [actual.map(({ id }) => id), expected.map(({ id }) => id)]
  const missing = wanted.filter((id) => !got.includes(id))
  if (missing.length > 0)
    throw new Error(`${what} omitted ${missing.length} of ${wanted.length} rows, such as ${show(missing[0])}`)
  const unexpected = got.find((id) => !wanted.includes(id))
  if (unexpected !== undefined) throw new Error(`${what} returned an unexpected row: ${show(unexpected)}`)
  const repeated = got.find((id, index) => got.indexOf(id) !== index)
  if (repeated !== undefined) throw new Error(`${what} returned the row ${show(repeated)} more than once`)
}

export function sameRow(one: StoredRow, other: StoredRow): boolean {
  return FIELDS.every((name) => Object.is(one[name], other[name]))
}

export function show(value: unknown): string {
  if (typeof value !== 'string') return String(value)
  return value.length <= MAX_CHARACTERS_SHOWN
    ? JSON.stringify(value)
    : `${JSON.stringify(value.slice(0, MAX_CHARACTERS_SHOWN))}… (${value.length} characters)`
}

function difference(actual: string, expected: string): string {
  let at = 0
  while (at < actual.length && actual[at] === expected[at]) at++
  const from = (text: string): string =>
    `${show(text.slice(at, at + MAX_CHARACTERS_SHOWN))} (length ${text.length})`
  return `from position ${at}: expected ${from(expected)}, got ${from(actual)}`
}
