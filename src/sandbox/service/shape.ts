/**
 * Returns null if the value is valid, otherwise a message that begins with the path of the first
 * invalid value. Build paths only for a message, because every new sandbox checks many values.
 */
export type Shape = (value: unknown, path: string) => string | null

export const anything: Shape = (value, path) =>
  value === undefined ? `${path}: expected a value, got nothing` : null

export function text(pattern?: RegExp, wanted = 'a string'): Shape {
  return (value, path) =>
    typeof value === 'string' && (pattern === undefined || pattern.test(value))
      ? null
      : `${path}: expected ${wanted}, got ${shown(value)}`
}

export function number(
  bounds: { readonly min?: number; readonly max?: number; readonly fraction?: boolean } = {},
): Shape {
  const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER, fraction = false } = bounds
  const kind = fraction ? 'a number' : 'an integer'
  return (value, path) => {
    const given = typeof value === 'number' ? value : Number.NaN
    if ((fraction || Number.isInteger(given)) && given >= min && given <= max) return null
    const from = bounds.min !== undefined || given < min ? ` from ${min}` : ''
    const to = bounds.max !== undefined || given > max ? ` up to ${max}` : ''
    return `${path}: expected ${kind}${from}${to}, got ${shown(value)}`
  }
}

export const flag: Shape = (value, path) =>
  typeof value === 'boolean' ? null : `${path}: expected true or false, got ${shown(value)}`

export function oneOf(...values: readonly (string | number)[]): Shape {
  const wanted = (): string => values.map((allowed) => JSON.stringify(allowed)).join(' or ')
  return (value, path) =>
    values.some((allowed) => allowed === value) ? null : `${path}: expected ${wanted()}, got ${shown(value)}`
}

export function orNull(shape: Shape): Shape {
  return (value, path) => (value === null ? null : shape(value, path))
}

export function either(wanted: string, ...shapes: readonly Shape[]): Shape {
  return (value, path) =>
    shapes.some((shape) => shape(value, path) === null)
      ? null
      : `${path}: expected ${wanted}, got ${shown(value)}`
}

/** For values that a file cannot contain, such as a function or a RegExp. */
export function code(wanted: string, test: (value: unknown) => boolean): Shape {
  return (value, path) => (test(value) ? null : `${path}: expected ${wanted}, got ${shown(value)}`)
}

export const isFunction: Shape = code('a function', (value) => typeof value === 'function')

export function listOf(element: Shape): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) return `${path}: expected an array, got ${shown(value)}`
    for (const [index, item] of value.entries()) {
      const problem = element(item, '')
      if (problem !== null) return `${path}[${index}]${problem}`
    }
    return null
  }
}

/** Rejects unknown fields, because they are probably misspelt. */
export function record(
  required: { readonly [field: string]: Shape },
  optional: { readonly [field: string]: Shape } = {},
): Shape {
  return (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return `${path}: expected an object, got ${shown(value)}`
    for (const [name, field] of Object.entries(value)) {
      const shape = Object.hasOwn(required, name)
        ? required[name]
        : Object.hasOwn(optional, name)
          ? optional[name]
          : undefined
      if (shape === undefined) {
        const known = [...Object.keys(required), ...Object.keys(optional)].join(', ')
        return `${path}: unknown field ${JSON.stringify(name)}; known: ${known}`
      }
      const absent = field === undefined && Object.hasOwn(optional, name)
      const problem = absent ? null : shape(field, name)
      if (problem !== null) return `${path}.${problem}`
    }
    for (const name of Object.keys(required))
      if (!Object.hasOwn(value, name)) return `${path}: the field ${JSON.stringify(name)} is missing`
    return null
  }
}

/** Checks only the names of the fields. */
export function fieldsOf<T>(...names: readonly (keyof T & string)[]): Shape {
  return record({}, Object.fromEntries(names.map((name) => [name, anything])))
}

export function dictionaryOf(element: Shape): Shape {
  return (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return `${path}: expected an object, got ${shown(value)}`
    for (const [name, item] of Object.entries(value)) {
      const problem = element(item, name)
      if (problem !== null) return `${path}.${problem}`
    }
    return null
  }
}

export function assertShape<T>(value: unknown, shape: Shape, name: string): asserts value is T {
  const problem = shape(value, name)
  if (problem !== null) throw new TypeError(problem)
}

function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  const json = JSON.stringify(value) ?? String(value)
  return json.length > 60 ? `${json.slice(0, 57)}...` : json
}
