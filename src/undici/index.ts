import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici'
import { bare } from '../defined.ts'
import { ConfigurationError } from '../errors.ts'
import { provenUnsent } from '../http/proof.ts'
import type { Transport, TransportRequest } from '../http/transport.ts'
import { integer, only, type Readers, readFields, withMethods } from '../settings/readers.ts'
import { acceptEncoding } from './decoding.ts'
import { HeldBack, holdIfLate } from './held-back.ts'
import { UndiciResponse } from './response.ts'

/** Options of {@link undiciTransport}. */
export interface UndiciTransportOptions {
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

/** A transport over connections of its own. */
export interface UndiciTransport extends Transport {
  /**
   * Waits for the requests in flight and closes the connections; may be called again. A request that comes later is not
   * sent, and the client says so: `charged` is `'no'` if nothing else was sent for it. A `dispatcher` that was passed stays
   * open, and with it this transport; once its owner has closed it, the same holds.
   */
  close(): Promise<void>
}

const refuseOption = (problem: string, name?: string): never => {
  throw new ConfigurationError(
    `undiciTransport ${name === undefined ? 'options' : `option ${name}`} ${problem}.`,
  )
}

const OPTIONS: Readers<UndiciTransportOptions> = {
  dispatcher: withMethods('dispatch', 'request'),
  proxy: only(
    (value) => value === 'environment',
    "must be 'environment'; pass a dispatcher for any other proxy",
  ),
  connections: integer(1),
}

/**
 * A transport for Node over undici's `request`, which does without what browsers need. How much faster the client is with
 * it than over the global `fetch` is measured in docs/performance.md. Share one among all clients, and close it when the
 * last of them is closed.
 *
 * Redirects are never followed, and cookies, caches and CORS do not exist. Responses are decompressed (gzip, brotli,
 * deflate). There are no time limits but the client's and undici's for connecting (10 seconds).
 *
 * @throws {ConfigurationError} naming the option that is unknown, wrong, or contradicts another
 * @example
 * const client = new CustomerOrderingClient({ transport: undiciTransport() })
 */
export function undiciTransport(options: UndiciTransportOptions = {}): UndiciTransport {
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
  const { Bun, Deno } = globalThis as { Bun?: unknown; Deno?: unknown }
  // Bun has an undici of its own under that name, and Deno sockets of its own under Node's.
  const ownSockets = given === undefined && proxy === undefined && Bun === undefined && Deno === undefined
  let closing: Promise<void> | undefined
  return {
    send: async (request) => {
      // Nothing is awaited between this look and the sending.
      const code = closing === undefined ? closedByOwner(dispatcher) : 'UND_ERR_CLOSED'
      if (code !== undefined) throw new HeldBack('transport_closed', code)
      const { isLate } = request
      // A dispatcher that is handed in may have sent the request before it asks.
      const asks = given === undefined && isLate !== undefined
      const sender = asks ? dispatcher.compose(holdIfLate(isLate)) : dispatcher
      return new UndiciResponse(await sender.request(new SentRequest(request)))
    },
    whyUnsent: (error) => (error instanceof HeldBack ? error.why : ownSockets && provenUnsent(error)),
    close: async () => {
      if (given !== undefined) return
      closing ??= dispatcher.close()
      await closing
    },
  }
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

/** The options of one request. They inherit nothing, so that undici finds none in a polluted `Object.prototype`. */
class SentRequest implements Dispatcher.RequestOptions {
  static {
    Object.setPrototypeOf(SentRequest.prototype, null)
  }
  readonly origin: string
  readonly path: string
  readonly method: Dispatcher.HttpMethod
  readonly headers: Record<string, string>
  readonly body: string | null
  readonly headersTimeout = 0
  readonly bodyTimeout = 0
  readonly signal: AbortSignal

  constructor({ url, method, headers, body, signal }: TransportRequest) {
    const { origin, pathname, search, protocol } = new URL(url)
    this.origin = origin
    this.path = pathname + search
    this.method = method as Dispatcher.HttpMethod
    this.headers = { 'accept-encoding': acceptEncoding(protocol), ...headers }
    this.body = body ?? null
    this.signal = signal
  }
}
