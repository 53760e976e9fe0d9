/**
 * Checks plain data from outside: options, fault files, state files. Returns null if the data is
 * valid, otherwise a message about the first problem. The message begins with the path of the
 * invalid value. A shape builds paths only for a problem, so that sandboxes are fast to create.
 */
export type Shape = (value: unknown, path: string) => string | null

/** Any value except `undefined`. */
export const anything: Shape = (value, path) => (value === undefined ? `${path}: missing` : null)

/** A string that matches `pattern`. `wanted` describes such a string in messages. */
export function text(pattern?: RegExp, wanted = 'a string'): Shape {
  return (value, path) =>
    typeof value === 'string' && (pattern === undefined || pattern.test(value))
      ? null
      : `${path}: expected ${wanted}, got ${shown(value)}`
}

/** A finite number within bounds; by default an integer. */
export function number(
  bounds: { readonly min?: number; readonly max?: number; readonly fraction?: boolean } = {},
): Shape {
  const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER, fraction = false } = bounds
  const kind = fraction ? 'a number' : 'an integer'
  const from = bounds.min === undefined ? '' : ` from ${min}`
  const to = bounds.max === undefined ? '' : ` up to ${max}`
  return (value, path) =>
    typeof value === 'number' && (fraction || Number.isInteger(value)) && value >= min && value <= max
      ? null
      : `${path}: expected ${kind}${from}${to}, got ${shown(value)}`
}

/** `true` or `false`. */
export const flag: Shape = (value, path) =>
  typeof value === 'boolean' ? null : `${path}: expected true or false, got ${shown(value)}`

/** One of the given values. */
export function oneOf(...values: readonly (string | number)[]): Shape {
  return (value, path) =>
    values.some((allowed) => allowed === value)
      ? null
      : `${path}: expected ${values.map((allowed) => JSON.stringify(allowed)).join(' or ')}, got ${shown(value)}`
}

/** The shape, or null. */
export function orNull(shape: Shape): Shape {
  return (value, path) => (value === null ? null : shape(value, path))
}

/** Accepts a value that fits one of the shapes. `wanted` describes all of them in messages. */
export function either(wanted: string, ...shapes: readonly Shape[]): Shape {
  return (value, path) =>
    shapes.some((shape) => shape(value, path) === null)
      ? null
      : `${path}: expected ${wanted}, got ${shown(value)}`
}

/** A value that a file cannot contain, such as a function or a RegExp. */
export function code(wanted: string, test: (value: unknown) => boolean): Shape {
  return (value, path) => (test(value) ? null : `${path}: expected ${wanted}, got ${shown(value)}`)
}

/** An array whose elements all have one shape. */
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

/**
 * An object with the fields in `required`, and perhaps those in `optional`. An unknown field is an
 * error, because it is probably misspelt.
 */
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

/** An object with any field names, whose values all have one shape. */
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

/** Throws a TypeError with the first problem. If there is none, the value has type `T`. */
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
