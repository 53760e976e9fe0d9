import { type AtSight, areRight, type Checked, check, checkNow } from './check.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

/** Checks a value of the service and returns it as methods return it. */
export type Parse<T> = (value: unknown) => Checked<T> | Promise<Checked<T>>

/**
 * Checks with the documented schema and then with the caller's, if there is one, whose output is the result. `T` is
 * that output, or without a schema of the caller what the documented one says.
 */
export function parser<T>(documented: StandardSchemaV1, own: StandardSchemaV1 | undefined): Parse<T> {
  if (own === undefined) return (value) => check(documented as StandardSchemaV1<unknown, T>, value)
  return (value) => {
    const checked = checkNow(documented, value)
    return 'issues' in checked ? checked : check(own as StandardSchemaV1<unknown, T>, value)
  }
}

/** Checks that a value is the one with this id before anything else: a proxy may return what another request got. */
export function withId<T>(name: 'id' | 'productId', id: string, parse: Parse<T>): Parse<T> {
  return (body) => {
    const other = typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined
    return typeof other === 'string' && other !== id
      ? { issues: [{ path: name, message: 'is not the id that was asked for' }] }
      : parse(body)
  }
}

/** True if {@link Parse} would return every one as it is. */
export type AllRight<T> = (values: readonly unknown[]) => values is readonly T[]

/** How the rows of a list are read. */
export interface RowReader<T> {
  readonly parse: Parse<T>
  readonly allRight: AllRight<T>
}

/** Nothing is right at sight where a schema of the caller has to be asked. `T` as in {@link parser}. */
export function rowReader<T>(
  documented: StandardSchemaV1 & AtSight<unknown>,
  own: StandardSchemaV1 | undefined,
): RowReader<T> {
  return {
    parse: parser(documented, own),
    allRight: (values): values is readonly T[] => own === undefined && areRight(documented, values),
  }
}
