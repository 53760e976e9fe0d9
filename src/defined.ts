/** The object's own fields without undefined ones, as `exactOptionalPropertyTypes` wants optional fields to be left out. */
export function defined<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const kept: Partial<T> = {}
  for (const name in fields)
    if (Object.hasOwn(fields, name) && fields[name] !== undefined) kept[name] = fields[name]
  return kept as { [Name in keyof T]?: Exclude<T[Name], undefined> }
}

/** The object's own fields and nothing else: an optional one must not come out of a polluted `Object.prototype`. */
export function bare<T extends object>(fields: T): T {
  return Object.assign(Object.create(null), fields)
}

/** An own value of anything, unless a getter makes it. */
export function ownValue(object: unknown, name: string): unknown {
  return describe(object, name)?.value
}

/** True if a field was named and has no value, which is what a forgotten one looks like. No getter is read. */
export function isUndefinedIn(object: unknown, name: string): boolean {
  const field = describe(object, name)
  return field !== undefined && 'value' in field && field.value === undefined
}

function describe(object: unknown, name: string): PropertyDescriptor | undefined {
  return typeof object === 'object' && object !== null
    ? Object.getOwnPropertyDescriptor(object, name)
    : undefined
}
