/** A copy with only the own fields that have a value, as `exactOptionalPropertyTypes` requires. */
export function defined<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const kept: Partial<T> = {}
  for (const name in fields)
    if (Object.hasOwn(fields, name) && fields[name] !== undefined) kept[name] = fields[name]
  // The compiler cannot see that only fields with a value were copied.
  return kept as { [Name in keyof T]?: Exclude<T[Name], undefined> }
}

/**
 * A copy of the object's own fields, without a prototype: a missing optional field must not be read
 * from a polluted `Object.prototype`.
 */
export function bare<T extends object>(fields: T): T {
  return Object.assign(Object.create(null), fields)
}

/** Returns the value of an own field, or undefined if the field is a getter. */
export function ownValue(object: unknown, name: string): unknown {
  return describe(object, name)?.value
}

/**
 * True if a field is present but undefined, which is probably the caller's mistake. Calls no
 * getter.
 */
export function isUndefinedIn(object: unknown, name: string): boolean {
  const field = describe(object, name)
  return field !== undefined && 'value' in field && field.value === undefined
}

function describe(object: unknown, name: string): PropertyDescriptor | undefined {
  return isObject(object) ? Object.getOwnPropertyDescriptor(object, name) : undefined
}

/** True for objects and arrays. */
export function isObject(value: unknown): value is Readonly<Record<PropertyKey, unknown>> {
  return typeof value === 'object' && value !== null
}
