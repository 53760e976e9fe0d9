/**
 * Canonical JSON (RFC 8785, "JSON Canonicalization Scheme"): one value always gives the same
 * string. That string is the body of an order's request, byte-identical on every attempt and in
 * every process, and keys and fingerprints derive from it. What JSON cannot carry is an error: a
 * payload that silently lost a field would be an order that nobody placed.
 */

/** Deepest accepted nesting of objects and arrays. The outermost one counts as 1. */
const MAX_DEPTH = 200

/**
 * Strings that JSON writes unchanged: no quote, backslash or control character. Surrogates are
 * checked apart.
 */
const PLAIN_TEXT = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/

/**
 * A surrogate without its partner. With the `u` flag a pair is one character, outside of this
 * range.
 */
const LONE_SURROGATE = /[\ud800-\udfff]/u

/** Names that a path shows as `.name`; all others as `["name"]`. */
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/

/**
 * A value that canonical JSON cannot represent unchanged.
 *
 * The message and `path` quote names of members, never their values.
 */
export class CanonicalJsonError extends Error {
  /** Path of the value, for example `metadata.items[2].name`. Empty for the value as a whole. */
  readonly path: string
  /** What is wrong with it. */
  readonly problem: string

  /**
   * @param path path of the value; empty for the value as a whole
   * @param problem what is wrong with it, for example `is NaN`
   */
  constructor(path: string, problem: string) {
    super(`${path === '' ? 'The value' : path} ${problem}`)
    this.path = path
    this.problem = problem
  }

  static {
    // On the prototype: not an own field, and safe from minifiers.
    Object.defineProperty(CanonicalJsonError.prototype, 'name', {
      value: 'CanonicalJsonError',
      configurable: true,
      writable: true,
    })
  }
}

/**
 * Returns the canonical JSON of a value (RFC 8785).
 *
 * - Members are sorted by the UTF-16 code units of their names, also names that look like numbers
 *   (`"10"` before `"9"`).
 * - Only own enumerable members with string names count. `undefined` members are dropped, as by
 *   JSON.stringify. An own member called `__proto__` is data like any other, and nothing on
 *   `Object.prototype` or `Array.prototype` gets in.
 * - A `toJSON` method of the value or its class is called once, so a `Date` becomes its ISO string.
 *   One on `Object.prototype` or `Array.prototype` is ignored.
 * - Numbers are written as JavaScript writes them, as RFC 8785 requires; `-0` becomes `0`.
 * - Strings are not normalised: two Unicode spellings of a name are two values.
 * - Every getter is read exactly once. Errors of a getter or `toJSON` are passed on.
 *
 * @throws {CanonicalJsonError} for anything that JSON cannot carry unchanged: `undefined` (as the
 *   whole value or in an array); NaN, infinities and BigInt; functions and symbols; invalid dates;
 *   lone surrogates, in names too; arrays with holes or named members; objects of a class without
 *   `toJSON` (Map, Set, …); cycles; nesting deeper than 200
 */
export function canonicalJson(value: unknown): string {
  const trail: Trail = { names: [], holders: [] }
  const text = write(value, 0, trail)
  if (text === undefined) throw refusal('is undefined', 0, trail)
  return text
}

/**
 * The path from the outermost value to the current one. Entries past the current depth are left
 * over.
 */
interface Trail {
  /** At each depth the member's name or the element's index. */
  readonly names: (string | number)[]
  /** The object or array that is being written, by depth. */
  readonly holders: object[]
}

/** @returns undefined for undefined, which the caller drops or rejects, depending on its place */
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

function writeText(text: string, depth: number, trail: Trail): string {
  if (PLAIN_TEXT.test(text)) return `"${text}"`
  if (LONE_SURROGATE.test(text)) throw refusal('has a lone surrogate in its text', depth, trail)
  return JSON.stringify(text)
}

function writeObject(value: object, depth: number, trail: Trail): string | undefined {
  // A cycle always reaches this depth, so no other check for cycles is needed on the way down.
  if (depth === MAX_DEPTH) throw tooDeep(value, depth, trail)
  trail.holders[depth] = value
  const toJson = jsonMethod(value)
  if (typeof toJson !== 'function') return writeMembers(value, toJson, depth, trail)
  if (value instanceof Date && Number.isNaN(value.getTime()))
    throw refusal('is an invalid date', depth, trail)
  const plain: unknown = toJson.call(value, String(trail.names[depth - 1] ?? ''))
  if (typeof plain !== 'object' || plain === null) return write(plain, depth, trail)
  const named = Object.hasOwn(plain, 'toJSON') ? Reflect.get(plain, 'toJSON') : undefined
  return writeMembers(plain, named, depth, trail)
}

/** @param toJson the value of the object's own `toJSON`: no getter is read twice */
function writeMembers(value: object, toJson: unknown, depth: number, trail: Trail): string {
  if (Array.isArray(value)) return writeArray(value, depth, trail)
  if (!isPlain(value)) throw refusal('is an object of a class without toJSON', depth, trail)
  const members = value as Readonly<Record<string, unknown>>
  let text = ''
  for (const name of sorted(Object.keys(members))) {
    trail.names[depth] = name
    const member = write(name === 'toJSON' ? toJson : members[name], depth + 1, trail)
    if (member === undefined) continue
    if (text !== '') text += ','
    text += PLAIN_TEXT.test(name) ? `"${name}":` : `${writeName(name, depth, trail)}:`
    text += member
  }
  return `{${text}}`
}

function writeName(name: string, depth: number, trail: Trail): string {
  if (LONE_SURROGATE.test(name)) throw refusal('has a lone surrogate in its name', depth + 1, trail)
  return JSON.stringify(name)
}

function writeArray(value: readonly unknown[], depth: number, trail: Trail): string {
  // Keys list the indices first and in order. So a last key that fits the length leaves no room for
  // a hole, which could read a value from Array.prototype, nor for a named member, which JSON would
  // lose.
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
 * The `toJSON` of the value or its class. The built-in prototypes of any realm are skipped
 * (Object.prototype has no prototype, Array.prototype is an array): a `toJSON` there is pollution.
 */
function jsonMethod(value: object): unknown {
  for (let holder = value; ; ) {
    if (Object.hasOwn(holder, 'toJSON')) return Reflect.get(value, 'toJSON')
    holder = Object.getPrototypeOf(holder)
    if (holder === null || Array.isArray(holder) || Object.getPrototypeOf(holder) === null) return undefined
  }
}

/** Whether the object is a literal or has no prototype. Objects of other realms count. */
function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return true
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')
}

/**
 * Sorts in place by UTF-16 code units, the order of `<` on strings and of a sort without a
 * comparator.
 */
function sorted(names: string[]): string[] {
  for (let index = 1; index < names.length; index++) {
    if ((names[index - 1] as string) > (names[index] as string)) return names.sort()
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

/** Distinguishes a cycle, at the place where it closes, from a value that is too deep. */
function tooDeep(value: object, depth: number, trail: Trail): CanonicalJsonError {
  const seen = new Set<object>()
  for (const [at, holder] of [...trail.holders, value].entries()) {
    if (seen.has(holder)) return refusal('contains itself', at, trail)
    seen.add(holder)
  }
  return refusal(`is nested deeper than ${MAX_DEPTH}`, depth, trail)
}
