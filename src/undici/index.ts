import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici'
import { bare } from '../defined.ts'
import { ConfigurationError } from '../errors.ts'
import { declareHeldBack, declareOwnFetch, IS_LATE } from '../http/own-fetch.ts'
import { integer, only, type Readers, readFields, withMethods } from '../option-readers.ts'
import { toResponse } from './answer.ts'
import { acceptEncoding } from './decoding.ts'
import { holdIfLate, Late } from './late.ts'

/** Options of {@link createUndiciFetch}. */
export interface UndiciFetchOptions {
  /**
   * Sends the requests: a `ProxyAgent`, an agent with certificates of your own, a `MockAgent`. It stays yours: `close()`
   * leaves it open. With it, no failure to connect counts as "surely not sent". It decides on proxy and connections, so it
   * goes with no other option. Default: an `Agent` of this function's own.
   */
  readonly dispatcher?: Dispatcher | undefined
  /**
   * `'environment'` sends through the proxy that `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` name; no failure to connect
   * counts as "surely not sent" then. Default: no proxy.
   */
  readonly proxy?: 'environment' | undefined
  /** Most connections to one service. Default: as many as there are requests at once. */
  readonly connections?: number | undefined
}

/** A `fetch` over connections of its own. */
export interface UndiciFetch {
  (input: RequestInfo | URL, init?: RequestInit): Promise<Response>
  /**
   * Waits for the requests in flight and closes the connections; may be called again. A request that comes later is not
   * sent, and the client says so: `charged` is `'no'` if nothing else was sent for it. A `dispatcher` that was passed stays
   * open, and with it this function; once its owner has closed it, the same holds.
   */
  close(): Promise<void>
}

const refuseOption = (problem: string, name?: string): never => {
  throw new ConfigurationError(
    `createUndiciFetch ${name === undefined ? 'options' : `option ${name}`} ${problem}.`,
  )
}

const OPTIONS: Readers<UndiciFetchOptions> = {
  dispatcher: withMethods('dispatch', 'request'),
  proxy: only(
    (value) => value === 'environment',
    "must be 'environment'; pass a dispatcher for any other proxy",
  ),
  connections: integer(1),
}

/**
 * A `fetch` for Node over undici's `request`, which does without what browsers need. How much faster the client is with it
 * than over the global `fetch` is measured in docs/performance.md.
 *
 * Redirects are never followed, whatever `redirect` says, and cookies, caches and CORS do not exist. Answers are
 * decompressed (gzip, brotli, deflate). There are no time limits but the signal's and undici's for connecting (10 seconds);
 * the client has its own.
 *
 * @throws {ConfigurationError} naming the option that is unknown, wrong, or contradicts another
 * @example
 * const client = new CustomerOrderingClient({ fetch: createUndiciFetch() })
 */
export function createUndiciFetch(options: UndiciFetchOptions = {}): UndiciFetch {
  const { dispatcher: given, proxy, connections } = readFields(options, OPTIONS, refuseOption)
  for (const [name, other] of Object.entries({ proxy, connections }))
    if (given !== undefined && other !== undefined)
      refuseOption('cannot go with a dispatcher, which decides on it', name)
  const settings = bare({
    // HTTP/2 sends a request again by itself when the server goes away.
    allowH2: false,
    ...(connections === undefined ? {} : { connections }),
  })
  const dispatcher = given ?? (proxy === undefined ? new Agent(settings) : proxyOfEnvironment(settings))
  let closing: Promise<void> | undefined

  const fetch = async (input: RequestInfo | URL, init: OwnInit = {}): Promise<Response> => {
    const request = await readRequest(input, init)
    const { url, headers, signal } = request
    signal?.throwIfAborted()
    // Nothing is awaited between this look and the sending.
    const code = closing === undefined ? closedByOwner(dispatcher) : 'UND_ERR_CLOSED'
    if (code !== undefined) {
      const cause = Object.assign(new Error('this transport is closed, so nothing was sent'), { code })
      throw declareHeldBack(new TypeError('fetch failed', { cause }), 'transport_closed')
    }
    headers['accept'] ??= '*/*'
    headers['accept-encoding'] ??= acceptEncoding(url.protocol)
    try {
      const isLate = given === undefined ? init[IS_LATE] : undefined
      const sender = isLate === undefined ? dispatcher : dispatcher.compose(holdIfLate(isLate))
      const answer = await sender.request(new SentRequest(request))
      if (url.hash !== '') url.hash = ''
      return toResponse(url.href, answer)
    } catch (error) {
      signal?.throwIfAborted()
      const failed = new TypeError('fetch failed', { cause: error })
      throw error instanceof Late ? declareHeldBack(failed, 'late') : failed
    }
  }
  const { Bun, Deno } = globalThis as { Bun?: unknown; Deno?: unknown }
  const own = Object.assign(fetch, {
    close: async () => {
      if (given !== undefined) return
      closing ??= dispatcher.close()
      await closing
    },
  })
  // Bun has an undici of its own under that name, and Deno sockets of its own under Node's.
  declareOwnFetch(own, {
    provesUnsent: given === undefined && proxy === undefined && Bun === undefined && Deno === undefined,
  })
  return own
}

function proxyOfEnvironment(settings: Agent.Options): Dispatcher {
  try {
    return new EnvHttpProxyAgent(settings)
  } catch {
    // undici's own error holds the address, and so the password in it.
    return refuseOption(
      'found what is no address of a proxy in HTTP_PROXY or HTTPS_PROXY (or the same in small letters): it must be like http://proxy.example:3128',
      'proxy',
    )
  }
}

/** The code of undici for a dispatcher that takes no request any more, if it is one that tells. */
function closedByOwner(dispatcher: Dispatcher): string | undefined {
  // In this order, because one that was closed ends up destroyed.
  if ('closed' in dispatcher && dispatcher.closed === true) return 'UND_ERR_CLOSED'
  return 'destroyed' in dispatcher && dispatcher.destroyed === true ? 'UND_ERR_DESTROYED' : undefined
}

/** What the client passes. */
interface OwnInit extends RequestInit {
  readonly [IS_LATE]?: () => boolean
}

interface PlainRequest {
  readonly url: URL
  readonly method: string
  readonly headers: Record<string, string>
  readonly body: string | Uint8Array | null
  readonly signal: AbortSignal | undefined
}

/** The options of one request. They inherit nothing, so that undici finds none in a polluted `Object.prototype`. */
class SentRequest implements Dispatcher.RequestOptions {
  static {
    Object.setPrototypeOf(SentRequest.prototype, null)
  }
  readonly origin: string
  readonly path: string
  readonly method: Dispatcher.HttpMethod
  readonly headers: Record<string, string>
  readonly body: string | Uint8Array | null
  readonly headersTimeout = 0
  readonly bodyTimeout = 0
  declare readonly signal?: AbortSignal

  constructor({ url, method, headers, body, signal }: PlainRequest) {
    this.origin = url.origin
    this.path = url.pathname + url.search
    this.method = method as Dispatcher.HttpMethod
    this.headers = headers
    this.body = body
    if (signal !== undefined) this.signal = signal
  }
}

/** What to send. What the client passes needs no `Request`, whose making takes longer than sending it. */
async function readRequest(input: RequestInfo | URL, init: RequestInit): Promise<PlainRequest> {
  const { body = null, headers, signal } = init
  if (!(typeof input === 'string' || input instanceof URL) || !isPlain(body, headers)) {
    const request = new Request(input, { ...init, ...(isStream(body) ? { duplex: 'half' } : {}) })
    const bytes = request.body === null ? null : new Uint8Array(await request.arrayBuffer())
    return {
      url: new URL(request.url),
      method: request.method,
      headers: Object.fromEntries(request.headers),
      body: bytes,
      signal: request.signal,
    }
  }
  const url = new URL(input)
  if (!/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new TypeError('createUndiciFetch: only http and https addresses without credentials can be fetched')
  const method = init.method?.toUpperCase() ?? 'GET'
  if (body !== null && (method === 'GET' || method === 'HEAD'))
    throw new TypeError('createUndiciFetch: a GET or HEAD request cannot have a body')
  const named: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers ?? {})) named[name.toLowerCase()] = value
  if (body !== null) named['content-type'] ??= 'text/plain;charset=UTF-8'
  return {
    url,
    method,
    headers: named,
    body,
    signal: signal ?? undefined,
  }
}

function isPlain(body: BodyInit | null, headers: HeadersInit | undefined): body is string | null {
  const plainHeaders = headers === undefined || !(Symbol.iterator in headers || headers instanceof Headers)
  return plainHeaders && (body === null || typeof body === 'string')
}

function isStream(body: BodyInit | null): boolean {
  return body instanceof ReadableStream
}
