import { isObject } from '../defined.ts'
import { type Checked, check, checkNow, polluted, wrong } from './check.ts'
import type { Shape } from './shape.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

export type Parse<T> = (value: unknown) => Checked<T> | Promise<Checked<T>>

export function parser<T>(documented: StandardSchemaV1, own: StandardSchemaV1 | undefined): Parse<T> {
  // The casts are safe: T is the output type of `own` if there is one, and of `documented` if not.
  if (own === undefined) return (value) => check(documented as StandardSchemaV1<unknown, T>, value)
  return (value) => {
    const checked = checkNow(documented, value)
    return 'issues' in checked ? checked : check(own as StandardSchemaV1<unknown, T>, value)
  }
}

/** Rejects a body with another id: a proxy may have returned the response of another request. */
export function withId<T>(name: 'id' | 'productId', id: string, parse: Parse<T>): Parse<T> {
  return (body) => {
    const other = isObject(body) ? body[name] : undefined
    return typeof other === 'string' && other !== id ? wrong('is not the requested id', name) : parse(body)
  }
}

/** True if {@link Parse} would return every value unchanged. */
export type AllRight<T> = (values: readonly unknown[]) => values is readonly T[]

export interface RowReader<T> {
  readonly parse: Parse<T>
  readonly allRight: AllRight<T>
}

/** The caller's own schema must check every value, so with such a schema there is no fast path. */
export function rowReader<T>(documented: Shape<unknown>, own: StandardSchemaV1 | undefined): RowReader<T> {
  return {
    parse: parser(documented, own),
    allRight: (values): values is readonly T[] =>
      own === undefined && !polluted() && values.every(documented.fits),
  }
}
