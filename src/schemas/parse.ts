import { isObject } from '../defined.ts'
import { type AtSight, areRight, type Checked, check, checkNow, wrong } from './check.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

/** Checks a value from the service and returns it in the form in which methods return it. */
export type Parse<T> = (value: unknown) => Checked<T> | Promise<Checked<T>>

/**
 * Checks with the documented schema, then with the caller's, whose output is the result. `T` is
 * that output, or the documented type without a caller's schema.
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
 * Checks first that the value has this id, because a proxy may return another request's response.
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
 * Makes the reader of a list's rows. There is no fast path with a caller's schema, which must check
 * every value. `T` as in {@link parser}.
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
