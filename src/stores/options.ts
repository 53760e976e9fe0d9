import { StoreError } from '../errors/classes.ts'

/**
 * Returns the options, or none if the call passed none. Refuses unknown names: with the default in place
 * of a misspelt table, the store would not find its orders.
 */
export function given<T extends object>(
  store: string,
  options: T,
  names: { readonly [Name in keyof T]-?: true },
): T {
  const read: T = Object(options)
  const unknown = Object.keys(read).find((name) => !Object.hasOwn(names, name))
  if (unknown === undefined) return read
  throw new StoreError(`The option \`${unknown}\` of ${store} is not known.`)
}

export function hasMethod(value: unknown, name: string): boolean {
  return typeof Reflect.get(Object(value), name) === 'function'
}

export function checkMilliseconds(store: string, option: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least && value <= 2 ** 31 - 1) return
  throw new StoreError(
    `The option \`${option}\` of ${store} must be a whole number of milliseconds, ${least} to 2147483647.`,
  )
}

/** Checks the name of something in a database, which the SQL of the store quotes. */
export function checkName(
  store: string,
  option: string,
  name: unknown,
  longest: number,
  forbidden: RegExp = /[\p{Control}\p{Surrogate}]/u,
): void {
  const size = typeof name === 'string' ? new TextEncoder().encode(name).length : 0
  if (size > 0 && size <= longest && !forbidden.test(String(name))) return
  throw new StoreError(
    `The option \`${option}\` of ${store} must be a name of 1 to ${longest} bytes, ` +
      'in characters that the database supports.',
  )
}
