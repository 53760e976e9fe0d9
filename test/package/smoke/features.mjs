// Runs the smoke suite with the package's browser build, and prints the platform globals that it
// and its dependencies used. FEATURES is a comma-separated list: all other globals are removed
// first.
const LANGUAGE = new Set(
  (
    'globalThis Infinity NaN undefined eval isFinite isNaN parseFloat parseInt decodeURI decodeURIComponent encodeURI ' +
    'encodeURIComponent escape unescape Object Function Error AggregateError EvalError RangeError ReferenceError ' +
    'SyntaxError TypeError URIError Boolean Symbol Number BigInt Math Date String RegExp Array Int8Array Uint8Array ' +
    'Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array BigInt64Array BigUint64Array Float16Array ' +
    'Float32Array Float64Array Map Set WeakMap WeakSet WeakRef FinalizationRegistry ArrayBuffer SharedArrayBuffer ' +
    'Atomics DataView JSON Promise Proxy Reflect Intl Iterator AsyncDisposableStack DisposableStack SuppressedError'
  ).split(' '),
)
const { SMOKE_BASE_URL: baseUrl, SMOKE_API_KEY: apiKey, FEATURES: features } = process.env
const kept = features?.split(',')
const { smoke } = await import('./smoke.mjs')
const path = '../node_modules/customer-ordering-sdk/dist/index.js'
const log = console.log.bind(console)
const touched = new Set()
Error.stackTraceLimit = 30
for (const name of Object.getOwnPropertyNames(globalThis)) {
  if (LANGUAGE.has(name)) continue
  const value = globalThis[name]
  const taken = kept !== undefined && !kept.includes(name)
  Object.defineProperty(globalThis, name, {
    configurable: true,
    get: () => {
      // The second line of the stack is the caller of the getter.
      const [, , caller = ''] = new Error().stack.split('\n')
      if (/node_modules/.test(caller)) touched.add(name)
      return taken && /node_modules/.test(caller) ? undefined : value
    },
    set: (other) =>
      Object.defineProperty(globalThis, name, { value: other, writable: true, configurable: true }),
  })
}
const sdk = await import(path)
const done = await smoke(sdk, { baseUrl, apiKey })
log(JSON.stringify({ done, touched: [...touched].toSorted() }))
process.exit()
