/** Omits undefined fields: `exactOptionalPropertyTypes` distinguishes them from missing ones. */
export function defined<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const kept: Partial<T> = {}
  for (const name in fields)
    if (Object.hasOwn(fields, name) && fields[name] !== undefined) kept[name] = fields[name]
  // The compiler cannot see that only fields with a value were copied.
  return kept as { [Name in keyof T]?: Exclude<T[Name], undefined> }
}

/** Without a prototype, so that a missing field is not read from a polluted `Object.prototype`. */
export function bare<T extends object>(fields: T): T {
  // Object.create(null) would take several times the memory (measured).
  return Object.setPrototypeOf({ ...fields }, null)
}

/** Defines the fields: an assignment of `name` throws if a program has frozen `Error.prototype`. */
export function withFields<T extends object>(error: Error, fields: T): Error & T {
  // The cast is safe: the error has all fields by then.
  return Object.defineProperties(error, Object.getOwnPropertyDescriptors(fields)) as Error & T
}

/** Returns undefined instead of calling a getter, which would run the caller's code. */
export function ownValue(object: unknown, name: string): unknown {
  return isObject(object) ? Object.getOwnPropertyDescriptor(object, name)?.value : undefined
}

/** True for objects and arrays. */
export function isObject(value: unknown): value is Readonly<Record<PropertyKey, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Async functions of the caller return promises, whose unhandled rejection would end the process. */
export function takeRejection(returned: unknown, onRejected: (error: unknown) => void): void {
  if (returned !== undefined) Promise.resolve(returned).catch(onRejected)
}
