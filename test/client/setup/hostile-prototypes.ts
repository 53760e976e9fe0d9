/** Changes that other code may make to the built-in prototypes. */

/**
 * Names that this package reads from options, requests, records and errors. Excludes names that the
 * platform reads everywhere, such as `value` and `get` of property descriptors: with those
 * polluted, nothing works.
 */
export const NAMES: readonly string[] = `
  account allowDuplicate apiKey cause charged code credential externalOrderId extra idempotencyKey
  key limit metadata offset prefetch problem requestId retryAfter service store totalTimeout wait
  within
`
  .trim()
  .split(/\s+/)

/** A value that is invalid for every option. */
export const POLLUTION = 'from Object.prototype'

/** Adds properties to the built-in prototypes. Returns a function that removes them. */
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
