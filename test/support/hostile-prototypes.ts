/** What other code on a page or in a process may have done to the objects that everything inherits from. */

/**
 * Names that this package looks up in options, requests, records and errors. Not among them are those that the platform
 * itself looks up everywhere, such as `value` and `get` of property descriptors: nothing works with these.
 */
export const NAMES: readonly string[] = [
  'account',
  'allowDuplicate',
  'apiKey',
  'cause',
  'charged',
  'code',
  'credential',
  'extra',
  'idempotencyKey',
  'key',
  'limit',
  'metadata',
  'offset',
  'prefetch',
  'problem',
  'requestId',
  'retryAfter',
  'service',
  'store',
  'totalTimeout',
  'wait',
  'within',
]

/** A value that is wrong wherever it is taken for an option. */
export const POLLUTION = 'from Object.prototype'

/** Gives every object properties that it does not have itself. Returns what takes them away again. */
export function pollute(names: readonly string[], enumerable: boolean): () => void {
  for (const name of names)
    Object.defineProperty(Object.prototype, name, {
      value: POLLUTION,
      enumerable,
      configurable: true,
      writable: true,
    })
  return () => {
    for (const name of names) Reflect.deleteProperty(Object.prototype, name)
  }
}

/** Forbids any change to the objects that everything inherits from, and to the functions that make them. */
export function freezeIntrinsics(): void {
  const intrinsics = [
    Object,
    Function,
    Array,
    String,
    Number,
    Error,
    TypeError,
    RangeError,
    Promise,
    Map,
    Set,
  ]
  for (const intrinsic of [...intrinsics, WeakMap, WeakSet, RegExp, Date, Symbol, Uint8Array, JSON, Math]) {
    Object.freeze(intrinsic)
    if ('prototype' in intrinsic) Object.freeze(intrinsic.prototype)
  }
}
