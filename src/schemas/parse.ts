import { isObject } from '../defined.ts'
import { type AtSight, areRight, type Checked, check, checkNow, wrong } from './check.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

/** Checks a value from the service. Returns the value for the caller, or the issues found. */
export type Parse<T> = (value: unknown) => Checked<T> | Promise<Checked<T>>

/**
 * Makes a parser that checks a value with the documented schema, then with the caller's own schema,
 * if there is one. `T` is the output type of the last schema.
 */
export function parser<T>(documented: StandardSchemaV1, own: StandardSchemaV1 | undefined): Parse<T> {
  // The casts are safe: T is the output of whichever schema is used, which the types cannot state.
  if (own === undefined) return (value) => check(documented as StandardSchemaV1<unknown, T>, value)
  return (value) => {
    const checked = checkNow(documented, value)
    return 'issues' in checked ? checked : check(own as StandardSchemaV1<unknown, T>, value)
  }
}

/**
 * Makes a parser that first rejects a value with a different id, because a proxy may return another
 * request's response.
 */
export function withId<T>(name: 'id' | 'productId', id: string, parse: Parse<T>): Parse<T> {
  return (body) => {
    const other = isObject(body) ? body[name] : undefined
    return typeof other === 'string' && other !== id ? wrong('is not the requested id', name) : parse(body)
  }
}

/** True if {@link Parse} would return every value unchanged. */
export type AllRight<T> = (values: readonly unknown[]) => values is readonly T[]

/** How the rows of a list are read. */
export interface RowReader<T> {
  readonly parse: Parse<T>
  readonly allRight: AllRight<T>
}

/**
 * Makes the reader of a list's rows. The caller's own schema must check every value, so there is no
 * fast path with such a schema. `T` is the same as in {@link parser}.
 */
export function rowReader<T>(
  documented: StandardSchemaV1 & AtSight<unknown>,
  own: StandardSchemaV1 | undefined,
): RowReader<T> {
  return {
    parse: parser(documented, own),
    allRight: (values): values is readonly T[] => own === undefined && areRight(documented, values),
  }
}
