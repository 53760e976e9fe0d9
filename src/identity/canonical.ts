/**
 * Canonical JSON (RFC 8785): equal values give equal strings. Every attempt in every process sends
 * the same bytes, and keys and fingerprints are hashes of them.
 */

const MAX_DEPTH = 200

/** Matches no surrogate pair: with the `u` flag, a pair is one character. */
const LONE_SURROGATE = /[\ud800-\udfff]/u

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/

/** The name of a field, and its canonical JSON. */
export type Member = readonly [name: string, json: string]

/** The message and `path` contain no values: errors are logged, and values may be private. */
export class CanonicalJsonError extends Error {
  /** For example `metadata.items[2].name`. Empty if the whole value is the problem. */
  readonly path: string
  /** For example `is NaN`. Follows the path in the message. */
  readonly problem: string

  constructor(path: string, problem: string) {
    super(`${path === '' ? 'The value' : path} ${problem}`)
    this.path = path
    this.problem = problem
  }
}

/**
 * Drops `undefined` members, as JSON.stringify does. Reads each getter once, because a second read
 * could return another value.
 * @throws {CanonicalJsonError} for anything else that JSON cannot carry unchanged: a payload that
 * silently lost a field would be a different order
 * @param members gets the canonical JSON of each member of an object, so that nothing is written twice
 */
export function canonicalJson(value: unknown, members?: Member[]): string {
  const trail: Trail = { names: [], members }
  const text = write(value, 0, trail)
  if (text === undefined) throw refusal('is undefined', 0, trail)
  return text
}

/** The path to the current value. Entries past the current depth are from earlier values. */
interface Trail {
  readonly names: (string | number)[]
  readonly members: Member[] | undefined
}

function write(value: unknown, depth: number, trail: Trail): string | undefined {
  switch (typeof value) {
    case 'string':
      return writeText(value, depth, trail)
    case 'number':
      if (!Number.isFinite(value)) throw refusal(`is ${value}`, depth, trail)
      return String(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      if (value === null) return 'null'
      return writeObject(value, depth, trail)
    case 'undefined':
      return undefined
    default:
      throw refusal(`is a ${typeof value}`, depth, trail)
  }
}

function writeText(text: string, depth: number, trail: Trail, where = ''): string {
  if (LONE_SURROGATE.test(text)) throw refusal(`contains a lone surrogate${where}`, depth, trail)
  return JSON.stringify(text)
}

function writeObject(value: object, depth: number, trail: Trail): string | undefined {
  // A cycle always reaches this depth. The start of the path is enough to find it.
  if (depth === MAX_DEPTH)
    throw refusal(`contains itself, or is nested more than ${MAX_DEPTH} levels deep`, 2, trail)
  const toJson = jsonMethod(value)
  let plain = value
  if (typeof toJson === 'function') {
    if (value instanceof Date && Number.isNaN(value.getTime()))
      throw refusal('is an invalid date', depth, trail)
    const made: unknown = toJson.call(value, String(trail.names[depth - 1] ?? ''))
    if (typeof made !== 'object' || made === null) return write(made, depth, trail)
    plain = made
  }
  if (Array.isArray(plain)) return writeArray(plain, depth, trail)
  if (!isPlain(plain)) throw refusal('is an object of a class without toJSON', depth, trail)
  const members = plain as Readonly<Record<string, unknown>>
  let text = ''
  for (const name of sorted(Object.keys(members))) {
    trail.names[depth] = name
    const member = write(members[name], depth + 1, trail)
    if (member === undefined) continue
    if (text !== '') text += ','
    text += `${writeText(name, depth + 1, trail, ' in its name')}:${member}`
    if (depth === 0) trail.members?.push([name, member])
  }
  return `{${text}}`
}

function writeArray(value: readonly unknown[], depth: number, trail: Trail): string {
  // Reject holes, which could read a value from Array.prototype, and named members, which JSON
  // would drop. `Object.keys` lists indices first, in ascending order, so its length and its last
  // key detect both.
  const keys = Object.keys(value)
  const { length } = value
  if (keys.length !== length || (length > 0 && keys[length - 1] !== String(length - 1))) {
    throw refusal('is an array with holes or named members', depth, trail)
  }
  let text = ''
  for (let index = 0; index < length; index++) {
    trail.names[depth] = index
    const element = write(value[index], depth + 1, trail)
    if (element === undefined) throw refusal('is undefined', depth + 1, trail)
    if (index > 0) text += ','
    text += element
  }
  return `[${text}]`
}

/**
 * Ignores a `toJSON` that a library has added to Object.prototype or Array.prototype: it would
 * change the bytes of every order.
 */
function jsonMethod(value: object): unknown {
  for (let holder = value; ; ) {
    if (Object.hasOwn(holder, 'toJSON')) return Reflect.get(value, 'toJSON')
    holder = Object.getPrototypeOf(holder)
    // In every realm, Array.prototype is an array, and Object.prototype has no prototype.
    if (holder === null || Array.isArray(holder) || Object.getPrototypeOf(holder) === null) return undefined
  }
}

/** Also true for an object literal of another realm, such as an iframe. */
export function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return true
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')
}

/** Sorts in place by UTF-16 code units (RFC 8785 3.2.3), the order of `>` and of `sort()`. */
function sorted(names: string[]): string[] {
  // By insertion, because `sort()` allocates more than the names of a usual request need.
  if (names.length > 20) return names.sort()
  for (let index = 1; index < names.length; index++) {
    const name = names[index] as string
    let at = index
    for (; at > 0 && (names[at - 1] as string) > name; at--) names[at] = names[at - 1] as string
    names[at] = name
  }
  return names
}

function refusal(problem: string, depth: number, trail: Trail): CanonicalJsonError {
  let path = ''
  for (const name of trail.names.slice(0, depth)) {
    if (!IDENTIFIER.test(String(name))) path += `[${JSON.stringify(name)}]`
    else path += path === '' ? name : `.${name}`
  }
  return new CanonicalJsonError(path, problem)
}
