/** The object's own fields without undefined ones, as `exactOptionalPropertyTypes` wants optional fields to be left out. */
export function defined<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const kept: Partial<T> = {}
  for (const name in fields)
    if (Object.hasOwn(fields, name) && fields[name] !== undefined) kept[name] = fields[name]
  return kept as { [Name in keyof T]?: Exclude<T[Name], undefined> }
}
