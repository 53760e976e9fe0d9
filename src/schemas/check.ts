import * as z from 'zod/mini'
import { isObject } from '../defined.ts'
import type { Issue } from '../errors/classes.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

export function mustBe(what: string): MustBe {
  return {
    error: ({ input }) => (input === undefined ? 'is missing' : `must be ${what} (got ${kindOf(input)})`),
  }
}

interface MustBe {
  readonly error: (issue: { readonly input?: unknown }) => string
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/**
 * `JSON.parse` rounds integers beyond 2^53, and a rounded integer must never pass as an amount of
 * money.
 */
export const safeInteger = (): z.ZodMiniType<number> =>
  z
    .number(mustBe('an integer'))
    .check(
      z.refine((value) => Number.isSafeInteger(value), 'must be an integer between -(2^53 - 1) and 2^53 - 1'),
    )

export const anyText = (): z.ZodMiniType<string> => z.string(mustBe('a string'))

export const anyNumber = (): z.ZodMiniType<number> => z.number(mustBe('a number'))

export const NO_OBJECT: MustBe = /* @__PURE__ */ mustBe('an object')

/** Rejects blank strings: with blank references or ids, different orders would look the same. */
export const filled = (): z.ZodMiniType<string> =>
  z.string(mustBe('a non-blank string')).check(z.refine((text) => text.trim() !== '', 'must not be blank'))

export interface JsonObject {
  readonly [field: string]: unknown
}

/**
 * False for an object with a field of its own named `__proto__`: accepted values are returned
 * unchanged, and only a schema removes that field.
 */
export function isJsonObject(value: unknown): value is JsonObject {
  if (!isObject(value) || Object.hasOwn(value, '__proto__')) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Removes the field `__proto__` of an object. Returns undefined for other values. */
export function anyObject(value: unknown): JsonObject | undefined {
  if (isJsonObject(value)) return value
  const parsed = z.safeParse(z.looseObject({}), value)
  return parsed.success ? parsed.data : undefined
}

/** Must accept the same values as {@link filled}. */
export function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}

/** Must accept the same values as {@link safeInteger}. */
export function isSafeInteger(value: unknown): value is number {
  return Number.isSafeInteger(value)
}

/** Must accept the same values as {@link anyNumber}. */
export function isAnyNumber(value: unknown): value is number {
  return Number.isFinite(value)
}

export interface AtSight<T> extends StandardSchemaV1<unknown, T> {
  /** True only for values that the schema accepts and returns as they are, not as copies. */
  isRight(value: unknown): value is T
}

/**
 * Accepts valid values after a few comparisons, because a page may have thousands of rows. Only the
 * first value that `isRight` rejects creates the full schema, which reports what is wrong.
 */
export function atSight<T>(
  isRight: (value: unknown) => value is T,
  make: () => z.ZodMiniType<T>,
): AtSight<T> {
  let schema: z.ZodMiniType<T> | undefined
  return {
    isRight,
    '~standard': {
      version: 1,
      vendor: 'customer-ordering-sdk',
      validate: (value) => {
        if (isRight(value)) return { value }
        schema ??= make()
        return schema['~standard'].validate(value)
      },
    },
  }
}

export type Checked<T> = { readonly value: T } | Wrong

interface Wrong {
  readonly issues: readonly Issue[]
}

export function wrong(message: string, path = ''): Wrong {
  return { issues: [{ path, message }] }
}

/** An empty body, as in a 204, counts as JSON with the value undefined. */
export function parseJson(text: string): { readonly json: unknown } | undefined {
  if (text === '') return { json: undefined }
  try {
    return { json: JSON.parse(text) }
  } catch {
    return undefined
  }
}

export function check<T>(
  schema: StandardSchemaV1<unknown, T>,
  value: unknown,
): Checked<T> | Promise<Checked<T>> {
  try {
    const result = schema['~standard'].validate(polluted() ? owned(value, 2) : value)
    // Does not use `instanceof Promise`: a schema may come from another realm, or use its own
    // promises.
    return 'then' in result ? Promise.resolve(result).then(toChecked).catch(schemaThrew) : toChecked(result)
  } catch {
    return schemaThrew()
  }
}

/** True if {@link check} would return every value unchanged, so that no row has to be copied. */
export function areRight<T>(schema: AtSight<T>, values: readonly unknown[]): values is readonly T[] {
  if (polluted()) return false
  return values.every((value) => schema.isRight(value))
}

/** For this package's own schemas, which are sync. */
export function checkNow<T>(schema: StandardSchemaV1<unknown, T>, value: unknown): Checked<T> {
  const checked = check(schema, value)
  return checked instanceof Promise ? schemaThrew() : checked
}

/** Comparing the number of properties is not enough, because some platforms have no `__proto__`. */
const STANDARD_PROPERTIES: ReadonlySet<PropertyKey> = new Set([
  ...['constructor', 'hasOwnProperty', 'isPrototypeOf', 'propertyIsEnumerable', 'toLocaleString', 'toString'],
  ...['valueOf', '__proto__', '__defineGetter__', '__defineSetter__', '__lookupGetter__', '__lookupSetter__'],
])

let known: boolean | undefined
const forget = (): void => {
  known = undefined
}
const soon: Promise<void> = /* @__PURE__ */ Promise.resolve()
/** The properties of `Object.prototype` when it was last found clean. */
let right: readonly PropertyKey[] = []

/** The result is cached until the next microtask, so that all rows of a page share one check. */
export function polluted(): boolean {
  if (known === undefined) {
    const names = Reflect.ownKeys(Object.prototype)
    const same = names.length === right.length && names.every((name, index) => name === right[index])
    known = !same && names.some((name) => !STANDARD_PROPERTIES.has(name))
    if (!known) right = names
    soon.then(forget)
  }
  return known
}

/** Returns a copy without inherited properties, which could be mistaken for fields of the data. */
function owned(value: unknown, depth: number): unknown {
  if (!isObject(value) || Array.isArray(value) || depth === 0) return value
  const own: Record<string, unknown> = Object.create(null)
  for (const [name, field] of Object.entries(value)) own[name] = owned(field, depth - 1)
  return own
}

function toChecked<T>(result: StandardSchemaV1.Result<T>): Checked<T> {
  if (result.issues === undefined) return { value: result.value }
  return { issues: result.issues.map(({ path, message }) => ({ path: pathText(path), message })) }
}

function schemaThrew(): Wrong {
  return wrong('made the schema throw instead of reporting issues')
}

function pathText(path: StandardSchemaV1.Issue['path']): string {
  let text = ''
  for (const segment of path ?? []) {
    const key = typeof segment === 'object' ? segment.key : segment
    text += typeof key === 'number' ? `[${key}]` : `${text === '' ? '' : '.'}${String(key)}`
  }
  return text
}

/** The path to a deeply nested field can have thousands of characters. */
const LONGEST_PATH = 80

function shortened(path: string): string {
  return path.length > LONGEST_PATH ? `${path.slice(0, LONGEST_PATH)}…` : path
}

/** Returns one line, such as "`amount` is missing, `id` must not be blank". */
export function issuesText(issues: readonly Issue[]): string {
  const shown = issues
    .slice(0, 3)
    .map(
      ({ path, message }) =>
        `${path === '' ? 'it' : `\`${shortened(path)}\``}${/^[A-Z]/.test(message) ? ':' : ''} ${message}`,
    )
  const more = issues.length > shown.length ? ` and ${issues.length - shown.length} more` : ''
  return `${shown.join(', ')}${more}`
}
