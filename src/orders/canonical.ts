/**
 * Canonical JSON text (RFC 8785, "JSON Canonicalization Scheme"): one value, one text, whoever writes it and whenever.
 * The text is an order's request body, byte-identical on every attempt and in every process, and it is what keys and
 * fingerprints are derived from. What JSON cannot carry is refused, never dropped or replaced: a payload that quietly
 * lost a field would be an order nobody placed.
 */

/** Deepest nesting of objects and arrays that is accepted; the outermost one counts as 1. */
const MAX_DEPTH = 200

/** Text that JSON writes as it is: no quote, backslash, control character or surrogate (checked apart) in it. */
const PLAIN_TEXT = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/

/** A surrogate without its partner: with the `u` flag, a pair is one character and not in this range. */
const LONE_SURROGATE = /[\ud800-\udfff]/u

/** Names that a path shows as `.name`; all others as `["name"]`. */
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/

/**
 * A value cannot be written as canonical JSON without changing it.
 *
 * The message and `path` quote names of members, never their values.
 */
export class CanonicalJsonError extends Error {
  /** Where the value is, for example `metadata.items[2].name`; empty for the value as a whole. */
  readonly path: string
  /** What is wrong with it. */
  readonly problem: string

  /**
   * @param path where the value is; empty for the value as a whole
   * @param problem what is wrong with it, for example `is NaN`
   */
  constructor(path: string, problem: string) {
    super(`${path === '' ? 'The value' : path} ${problem}`)
    this.path = path
    this.problem = problem
  }

  static {
    // On the prototype, so that it is neither an own field nor lost to a minifier.
    Object.defineProperty(CanonicalJsonError.prototype, 'name', {
      value: 'CanonicalJsonError',
      configurable: true,
      writable: true,
    })
  }
}

/**
 * The canonical JSON text of a value (RFC 8785).
 *
 * - Members are sorted by the UTF-16 code units of their names, also names that look like numbers (`"10"` before `"9"`).
 * - Only own enumerable members with text names count; `undefined` members are dropped, as JSON.stringify does. An own
 *   member called `__proto__` is data like any other, and nothing put on `Object.prototype` or `Array.prototype` gets in.
 * - A `toJSON` method of the value or its class is called once (so a `Date` becomes its ISO text); its result is not
 *   asked again. One found on `Object.prototype` or `Array.prototype` is ignored.
 * - Numbers are written as JavaScript writes them, which is what RFC 8785 prescribes; `-0` becomes `0`.
 * - Text is not normalised: two Unicode spellings of a name are two values.
 * - Every getter is read exactly once. Whatever a getter or `toJSON` throws is passed on.
 *
 * @throws {CanonicalJsonError} for anything JSON cannot carry unchanged: `undefined` (as the whole value or in an array),
 *   NaN, infinities, BigInt, functions, symbols, invalid dates, lone surrogates (in names too), arrays with holes or
 *   named members, objects of a class without `toJSON` (Map, Set, …), cycles, and nesting deeper than 200.
 */
export function canonicalJson(value: unknown): string {
  const trail: Trail = { names: [], holders: [] }
  const text = write(value, 0, trail)
  if (text === undefined) throw refusal('is undefined', 0, trail)
  return text
}

/** The way from the outermost value to the one being written; entries past the current depth are left-overs. */
interface Trail {
  /** At each depth the member's name or the element's index. */
  readonly names: (string | number)[]
  /** At each depth the object or array that is being written. */
  readonly holders: object[]
}

/** @returns undefined for undefined, which the caller drops or refuses, depending on where it is */
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
  // A cycle always gets here as well, so that no other watch for cycles is needed on the way down.
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

/** @param toJson what the object's own member `toJSON`, if any, was read as: no getter is read twice */
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
  // Keys list the indices first and in order, so a last key that fits the length leaves no room for a hole, which could
  // otherwise read a value off Array.prototype, nor for a named member, which JSON would lose.
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
 * The value's `toJSON`, its own or its class's. The built-in prototypes (of any window or context: Object.prototype has
 * no prototype, Array.prototype is an array) are not asked: a `toJSON` there is pollution, not a wish of the value.
 */
function jsonMethod(value: object): unknown {
  for (let holder = value; ; ) {
    if (Object.hasOwn(holder, 'toJSON')) return Reflect.get(value, 'toJSON')
    holder = Object.getPrototypeOf(holder)
    if (holder === null || Array.isArray(holder) || Object.getPrototypeOf(holder) === null) return undefined
  }
}

/** Whether the object is a literal or has no prototype. Objects of another window or context count. */
function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return true
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')
}

/** Sorts in place by UTF-16 code units, which is what `<` on texts and a sort without comparator compare. */
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

/** Tells a cycle, at the place where it closes, from a value that is merely too deep. */
function tooDeep(value: object, depth: number, trail: Trail): CanonicalJsonError {
  const seen = new Set<object>()
  for (const [at, holder] of [...trail.holders, value].entries()) {
    if (seen.has(holder)) return refusal('contains itself', at, trail)
    seen.add(holder)
  }
  return refusal(`is nested deeper than ${MAX_DEPTH}`, depth, trail)
}
