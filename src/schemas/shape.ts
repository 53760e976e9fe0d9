/** One description of each shape: how to recognise it quickly, and the schema that reports what is wrong. */
import * as z from 'zod/mini'
import { isObject } from '../defined.ts'
import { type Checked, check, checkNow, isJsonObject, wrong } from './check.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

/** A kind of value. */
export interface Kind<T> {
  /** True only for values that the schema accepts and returns as they are, not as copies. */
  fits(value: unknown): value is T
  schema(): z.ZodMiniType<T>
}

interface Optional<T> extends Kind<T> {
  readonly optional: true
}

/** The kinds of the fields. An optional field without one compiles, but fails a test of the docs. */
type Fields<T> = {
  readonly [Name in keyof T]: undefined extends T[Name]
    ? Optional<Exclude<T[Name], undefined>>
    : Kind<T[Name]>
}

type Rule<T> = readonly [passes: (value: T) => boolean, problem: string]

function mustBe(what: string) {
  return {
    error: ({ input }: { readonly input?: unknown }) =>
      input === undefined ? 'is missing' : `must be ${what} (got ${kindOf(input)})`,
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function kind<T>(what: string, isOne: (value: unknown) => value is T, ...rules: readonly Rule<T>[]): Kind<T> {
  return {
    fits: (value): value is T => {
      if (!isOne(value)) return false
      for (const [passes] of rules) if (!passes(value)) return false
      return true
    },
    schema: () =>
      z
        .custom<T>(isOne, mustBe(what))
        .check(...rules.map(([passes, problem]) => z.refine<T>(passes, problem))),
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = Number.isFinite as (value: unknown) => value is number

export const text: Kind<string> = /* @__PURE__ */ kind('a string', isText)

/** Rejects blank strings: with blank references or ids, different orders would look the same. */
export const filled: Kind<string> = /* @__PURE__ */ kind('a non-blank string', isText, [
  (value) => value.trim() !== '',
  'must not be blank',
])

export const number: Kind<number> = /* @__PURE__ */ kind('a number', isNumber)

/**
 * `JSON.parse` rounds integers beyond 2^53, and a rounded integer must never pass as an amount of
 * money.
 */
export const safeInteger: Kind<number> = /* @__PURE__ */ kind('an integer', isNumber, [
  Number.isSafeInteger,
  'must be an integer between -(2^53 - 1) and 2^53 - 1',
])

export const quantity: Kind<number> = /* @__PURE__ */ kind(
  'an integer',
  isNumber,
  [Number.isSafeInteger, 'must be a safe integer'],
  [(value) => value >= 1, 'must be at least 1'],
)

export function optional<T>({ fits, schema }: Kind<T>): Optional<T> {
  return { fits, schema, optional: true }
}

export interface Shape<T> extends Kind<T>, StandardSchemaV1<unknown, T> {}

/**
 * Accepts valid values after a few comparisons, because a page may have thousands of rows. Only the
 * first value that does not fit creates the schema. Undocumented fields are kept. Reads own fields
 * only, so that a polluted `Object.prototype` adds none.
 */
export function shape<T extends object>(fields: Fields<T>): Shape<T> {
  const kinds: [string, Kind<unknown> & { readonly optional?: true }][] = Object.entries(fields)
  const fits = (value: unknown): value is T => {
    if (!isJsonObject(value)) return false
    // Loops, because a page has thousands of fields.
    for (const [name, each] of kinds)
      if (Object.hasOwn(value, name) ? !each.fits(value[name]) : !each.optional) return false
    return true
  }
  // The cast is safe: `Fields` has a kind for every field that T requires (test/property/schemas.test.ts).
  const schema = () =>
    z.looseObject(
      Object.fromEntries(
        kinds.map(([name, each]) => [name, each.optional ? z.exactOptional(each.schema()) : each.schema()]),
      ),
      mustBe('an object'),
    ) as unknown as z.ZodMiniType<T>
  let made: z.ZodMiniType<T> | undefined
  return {
    fits,
    schema,
    '~standard': {
      version: 1,
      vendor: 'customer-ordering-sdk',
      validate: (value) => {
        if (fits(value)) return { value }
        made ??= schema()
        return made['~standard'].validate(value)
      },
    },
  }
}

export type Parse<T> = (value: unknown) => Checked<T> | Promise<Checked<T>>

/** Reads values of one shape, with the caller's own schema after the built-in check. */
export interface Reader<T> {
  readonly parse: Parse<T>
  /** True if {@link Parse} would return every value unchanged. */
  allRight(values: readonly unknown[]): values is readonly T[]
}

export function reader<T>(documented: Shape<unknown>, own: StandardSchemaV1 | undefined): Reader<T> {
  return {
    // The casts are safe: T is the output type of `own` if there is one, and of `documented` if not.
    parse: (value) => {
      const checked: Checked<unknown> = documented.fits(value) ? { value } : checkNow(documented, value)
      if (own === undefined || 'issues' in checked) return checked as Checked<T>
      return check(own as StandardSchemaV1<unknown, T>, value)
    },
    // The caller's own schema must check every value.
    allRight: (values): values is readonly T[] => own === undefined && values.every(documented.fits),
  }
}

/** Rejects a body with another id: a proxy may have returned the response of another request. */
export function withId<T>(name: 'id' | 'productId', id: string, parse: Parse<T>): Parse<T> {
  return (body) => {
    const other = isObject(body) ? body[name] : undefined
    return typeof other === 'string' && other !== id ? wrong('is not the requested id', name) : parse(body)
  }
}
