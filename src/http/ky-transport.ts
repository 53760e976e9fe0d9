import ky, { type Options } from 'ky'
import { bare, isObject } from '../defined.ts'
import { polluted } from '../schemas/check.ts'
import { isUndecodable, provenUnsent } from './proof.ts'
import {
  type BodyText,
  bodyText,
  type Transport,
  type TransportRequest,
  type TransportResponse,
} from './transport.ts'

/** The options that ky always gets. */
const ONE_ATTEMPT = {
  headers: {},
  retry: 0,
  timeout: false,
  totalTimeout: false,
  throwHttpErrors: false,
} satisfies Options

/**
 * All other options that ky reads or passes to `Request`. They are set only if a polluted
 * `Object.prototype` would supply them: ky copies all options once per option, which takes 17 kB a
 * call (measured). These need values: ky drops undefined `searchParams`, and Node reads the last
 * four from the prototype if they are undefined.
 */
const NOTHING_ELSE = {
  prefix: '',
  baseUrl: '',
  context: {},
  searchParams: '',
  body: null,
  window: null,
  referrer: 'about:client',
  signal: null,
} satisfies Options
const NOT_GIVEN = [
  ...['json', 'onDownloadProgress', 'onUploadProgress', 'mode', 'credentials', 'cache', 'redirect'],
  ...['referrerPolicy', 'integrity', 'keepalive', 'dispatcher'],
]

function nothingElse(): Options {
  // The values are undefined, which ky's types allow only for absent properties.
  const notGiven: Readonly<Record<string, never>> = Object.fromEntries(NOT_GIVEN.map((name) => [name]))
  return { ...notGiven, ...NOTHING_ELSE }
}

/**
 * A transport that uses ky for exactly one attempt, without retries, redirects, hooks or thrown
 * statuses.
 * @param given replaces the platform's fetch; then no failure proves that nothing was sent
 */
export function kyTransport(given?: typeof fetch): Transport {
  // Kept to detect a fetch that is patched later: it is used, but its failures prove nothing.
  const platform = globalThis.fetch
  // Checks the prototype: setting the option throws on platforms without it (workerd before
  // 2024-11-11), and makes fetch polyfills change the URL. Checks only when a request is sent,
  // because touching `Request` makes Node load its whole fetch.
  const takesCache = () => {
    const { Request } = globalThis
    return Request?.prototype !== undefined && 'cache' in Request.prototype
  }

  const send: Transport['send'] = (request) => {
    const { method, url } = request
    const reads = method === 'GET' || method === 'HEAD'
    let thrown: { readonly error: unknown } | undefined
    const sendOnce = async (): Promise<Response> => {
      try {
        // Does not pass ky's Request: fetch would take it apart again and stream its body.
        return await (given ?? globalThis.fetch)(url, new FetchInit(request, reads && takesCache()))
      } catch (error) {
        // Keeps the original error: whether ky wraps an error depends on the runtime.
        thrown = { error }
        throw error
      }
    }
    // ky gets no headers and no body, or it would create a second Request from them. `FetchInit`
    // already has them.
    return ky(url, { ...(polluted() && nothingElse()), ...ONE_ATTEMPT, method, fetch: sendOnce }).then(
      (response) => new FetchedResponse(response),
      () => {
        throw thrown === undefined ? noResponse() : thrown.error
      },
    )
  }
  if (given !== undefined) return bare({ send })
  return {
    send,
    whyUnsent: (error) =>
      globalThis.fetch === platform && isNodeFetch(platform) && provenUnsent(error, false),
  }
}

/**
 * The options of fetch. They inherit nothing, so the platform reads nothing from a polluted
 * `Object.prototype`.
 */
class FetchInit implements RequestInit {
  static {
    Object.setPrototypeOf(FetchInit.prototype, null)
  }
  readonly method: string
  readonly headers: Record<string, string>
  readonly body: string | null
  readonly redirect = 'manual'
  readonly signal: AbortSignal
  declare readonly cache?: 'no-store'

  constructor({ method, headers, body, signal }: TransportRequest, uncached: boolean) {
    this.method = method
    this.headers = headers
    this.body = body ?? null
    this.signal = signal
    // Bypasses HTTP caches: a cached list of orders proves nothing, and a cached balance may belong
    // to another key.
    if (uncached) this.cache = 'no-store'
  }
}

/**
 * The error for a fetch that returns no Response. It has no stack, which would point to this file
 * instead of the cause.
 */
function noResponse(): TypeError {
  return Object.assign(new TypeError('fetch returned no Response'), { stack: '' })
}

/** A response from fetch, which may be the caller's own fetch. */
class FetchedResponse implements TransportResponse {
  readonly status: number
  readonly headers: Response['headers']
  readonly #response: Response
  /** Ends the current read, even if fetch ignores its signal. */
  #leave: (() => void) | undefined

  constructor(response: Response) {
    const { status, headers, type } = response
    const hidden = type === 'opaqueredirect'
    // A caller's fetch may return anything. The Fetch standard's network error has status 0.
    if (typeof headers?.forEach !== 'function' || !(hidden || status > 0)) throw noResponse()
    this.status = hidden ? 0 : status
    this.headers = headers
    this.#response = response
  }

  discard(): void {
    if (this.#leave === undefined) void this.#response.body?.cancel().catch(() => {})
    else this.#leave()
  }

  /**
   * Counts decoded bytes, so that a decompression bomb cannot exceed the cap. Relies on no header,
   * because browsers hide the header that shows compression.
   */
  async read(maxBytes: number): Promise<BodyText> {
    const chunks: Uint8Array[] = []
    try {
      const reader = this.#response.body?.getReader?.()
      if (reader === undefined) return await this.#readWhole(maxBytes)
      let over = false
      this.#leave = () => {
        over = true
        reader.cancel().catch(() => {})
      }
      for (let bytes = 0; ; ) {
        const { done, value } = await reader.read()
        if (over) break
        if (done) return bodyText(chunks)
        if (!ArrayBuffer.isView(value)) break
        bytes += value.byteLength
        if (bytes > maxBytes) {
          this.#leave()
          return bodyText(chunks, 'too_large')
        }
        chunks.push(value)
      }
    } catch (error) {
      // Any other error means that the connection broke.
      if (isUndecodable(error)) return bodyText([], 'undecodable')
    }
    return bodyText(chunks, 'cut')
  }

  /**
   * Reads a body that has no stream, as in React Native. Such a body arrives completely or not at
   * all.
   */
  async #readWhole(maxBytes: number): Promise<BodyText> {
    const whole = await new Promise<string | undefined>((resolve, reject) => {
      this.#leave = () => resolve(undefined)
      this.#response.text().then(resolve, reject)
    })
    if (whole === undefined) return bodyText([], 'cut')
    return whole.length > maxBytes ? bodyText([], 'too_large') : { text: whole, problem: undefined }
  }
}

/**
 * True for Node's own, unwrapped fetch with its own dispatcher. Anything else (a mock, an
 * instrumented fetch, a dispatcher that retries) may have sent the request before the failure that
 * it reports.
 */
function isNodeFetch(candidate: typeof fetch): boolean {
  const scope: Readonly<Record<PropertyKey, unknown>> = globalThis
  const { Bun, Deno } = scope
  if (Bun !== undefined || Deno !== undefined) return false
  // Only Node's own fetch can require this module. A bound function or a proxy hides its source.
  if (!/require\('internal\/deps\/undici\/undici'\)/.test(Function.prototype.toString.call(candidate)))
    return false
  const [first, second] = [1, 2].map(
    (generation) => scope[Symbol.for(`undici.globalDispatcher.${generation}`)],
  )
  // Since undici 8 (Node 26), the first symbol has a wrapper of the second symbol's dispatcher.
  const wrapper = second !== undefined && isObject(first) && first.constructor?.name === 'Dispatcher1Wrapper'
  return [second, wrapper ? undefined : first].every(
    (dispatcher) => dispatcher === undefined || isPlainAgent(dispatcher),
  )
}

/** True for undici's Agent, if neither it nor its connections were composed with interceptors. */
function isPlainAgent(dispatcher: unknown): boolean {
  if (!isObject(dispatcher)) return false
  // A composed dispatcher is a proxy with another `dispatch` than its prototype.
  const prototype: unknown = Object.getPrototypeOf(dispatcher)
  const [factory] = Object.getOwnPropertySymbols(dispatcher)
    .filter(({ description }) => description === 'factory')
    .map((symbol) => dispatcher[symbol])
  return (
    isObject(prototype) &&
    dispatcher.constructor?.name === 'Agent' &&
    dispatcher['dispatch'] === prototype['dispatch'] &&
    typeof factory === 'function' &&
    factory.name === 'defaultFactory'
  )
}
