/**
 * Canonical JSON (RFC 8785, "JSON Canonicalization Scheme"): one value always gives the same
 * string. That string is the request body of an order, byte-identical on every attempt and in every
 * process. Keys and fingerprints are derived from that string. Anything that JSON cannot carry is
 * an error: a payload that silently lost a field would be a different order.
 */

/** Deepest accepted nesting of objects and arrays. The outermost object or array has depth 1. */
const MAX_DEPTH = 200

/**
 * Matches strings that JSON writes unchanged: no quote, backslash or control character. Surrogates
 * are checked separately.
 */
const PLAIN_TEXT = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/

/**
 * A surrogate without its partner. With the `u` flag, a pair is one character and does not match.
 */
const LONE_SURROGATE = /[\ud800-\udfff]/u

/** Names that a path shows as `.name`. Other names appear as `["name"]`. */
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/

/**
 * A value that canonical JSON cannot represent unchanged.
 *
 * The message and `path` contain names of members, never their values.
 */
export class CanonicalJsonError extends Error {
  /** Path of the value, for example `metadata.items[2].name`. Empty for the value as a whole. */
  readonly path: string
  /** What is wrong with the value, for example `is NaN`. */
  readonly problem: string

  constructor(path: string, problem: string) {
    super(`${path === '' ? 'The value' : path} ${problem}`)
    this.path = path
    this.problem = problem
  }
}

/**
 * Returns the canonical JSON of a value (RFC 8785).
 *
 * - Members are sorted by the UTF-16 code units of their names, including names that look like
 *   numbers (`"10"` before `"9"`).
 * - Only own enumerable members with string names are written. `undefined` members are dropped, as
 *   JSON.stringify does. An own member called `__proto__` is ordinary data. Members of
 *   `Object.prototype` and `Array.prototype` are ignored.
 * - A `toJSON` method of the value or its class is called once, so a `Date` becomes its ISO string.
 *   A `toJSON` on `Object.prototype` or `Array.prototype` is ignored.
 * - Numbers are written as JavaScript writes them, as RFC 8785 requires; `-0` becomes `0`.
 * - Strings are not normalised: two Unicode spellings of a name are different values.
 * - Every getter is read exactly once. Errors thrown by a getter or `toJSON` propagate.
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
 * The path from the outermost value to the current value. Entries beyond the current depth are
 * stale.
 */
interface Trail {
  /** Member name or element index at each depth. */
  readonly names: (string | number)[]
  /** The object or array being written at each depth. */
  readonly holders: object[]
}

/**
 * @returns undefined for `undefined`: the caller drops it from an object and rejects it elsewhere
 */
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
  if (LONE_SURROGATE.test(text)) throw refusal('contains a lone surrogate', depth, trail)
  return JSON.stringify(text)
}

function writeObject(value: object, depth: number, trail: Trail): string | undefined {
  // A cycle always reaches this depth, so cycles need no other check.
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

/**
 * @param toJson the value of the object's own `toJSON`, passed in so that its getter runs only once
 */
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
  // `Object.keys` lists indices first and in order. If the number of keys and the last key match
  // the length, the array has no hole and no named member. A hole could read a value from
  // Array.prototype, and JSON would drop a named member.
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
 * The `toJSON` of the value or its class. Skips the built-in prototypes of every realm, because a
 * `toJSON` there is pollution. Object.prototype is recognised by its missing prototype, and
 * Array.prototype by being an array.
 */
function jsonMethod(value: object): unknown {
  for (let holder = value; ; ) {
    if (Object.hasOwn(holder, 'toJSON')) return Reflect.get(value, 'toJSON')
    holder = Object.getPrototypeOf(holder)
    if (holder === null || Array.isArray(holder) || Object.getPrototypeOf(holder) === null) return undefined
  }
}

/** True for an object literal of any realm and for an object without a prototype. */
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

/** The error for a value that is nested too deeply. A cycle is reported where it closes. */
function tooDeep(value: object, depth: number, trail: Trail): CanonicalJsonError {
  const seen = new Set<object>()
  for (const [at, holder] of [...trail.holders, value].entries()) {
    if (seen.has(holder)) return refusal('contains itself', at, trail)
    seen.add(holder)
  }
  return refusal(`is nested deeper than ${MAX_DEPTH}`, depth, trail)
}
