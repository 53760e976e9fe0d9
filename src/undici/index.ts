import { Agent, buildConnector, type Dispatcher, EnvHttpProxyAgent } from 'undici'
import { bare } from '../defined.ts'
import { ConfigurationError } from '../errors/classes.ts'
import { provenUnsent } from '../http/node.ts'
import type { Transport, TransportRequest } from '../http/transport.ts'
import { integer, only, type Readers, readFields, withMethods } from '../settings/readers.ts'
import { acceptEncoding } from './decoding.ts'
import { HeldBack, holdIfLate } from './held-back.ts'
import { UndiciResponse } from './response.ts'

/** Options of {@link undiciTransport}. */
export interface UndiciTransportOptions {
  /**
   * Sends the requests: a `ProxyAgent`, an agent with your own certificates, or a `MockAgent`.
   *
   * With your own dispatcher, a failure to connect does not prove that nothing was sent. The
   * dispatcher controls the proxy and the connections, so it cannot be combined with the other
   * options. Default: an `Agent` that this function creates.
   */
  readonly dispatcher?: Dispatcher | undefined
  /**
   * `'environment'` uses the proxy from `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
   *
   * With a proxy, a failure to connect does not prove that nothing was sent. Default: no proxy.
   */
  readonly proxy?: 'environment' | undefined
  /** Maximum number of connections to one service. Default: as many as concurrent requests need. */
  readonly connections?: number | undefined
}

/** A transport with its own connections. */
export interface UndiciTransport extends Transport {
  /**
   * Waits for the requests in flight and closes the connections.
   *
   * A later request is not sent, and its error has `charged: 'no'` if no earlier attempt was sent.
   * If you passed a `dispatcher`, close that instead: this method does not close it, and the
   * transport continues to send.
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
 * Creates a transport for Node that uses undici's `request`, which skips the work that only
 * browsers need. docs/performance.md compares its speed with that of the global `fetch`.
 *
 * Share one transport among all clients, and close it after the last client.
 *
 * The transport follows no redirects and has no cookies, caches or CORS. It decompresses responses
 * (gzip, brotli, deflate). Besides the client's time limits, undici allows 10 seconds to connect.
 *
 * @throws {ConfigurationError} naming the option that is unknown, wrong, or not allowed with
 * `dispatcher`
 * @example
 * const client = new CustomerOrderingClient({ transport: undiciTransport() })
 */
export function undiciTransport(options: UndiciTransportOptions = {}): UndiciTransport {
  const { dispatcher: given, proxy, connections } = readFields(options, OPTIONS, refuseOption)
  for (const [name, other] of Object.entries({ proxy, connections }))
    if (given !== undefined && other !== undefined)
      refuseOption('cannot be combined with the option dispatcher; configure it in the dispatcher', name)
  const settings = bare({
    // Over HTTP/2, undici itself would resend a request when the server closes the connection.
    allowH2: false,
    ...(connections === undefined ? {} : { connections }),
  })
  const unconnected = new WeakSet<Error>()
  const dispatcher =
    given ??
    (proxy === undefined
      ? new Agent({ ...settings, connect: connectorNoting(unconnected) })
      : proxyOfEnvironment(settings))
  // A caller's dispatcher may resend a request without the client's knowledge. If the check of the
  // clock stopped such a resend, the client would wrongly conclude that the request was never sent.
  const sender = given ?? dispatcher.compose(holdIfLate)
  const { Bun, Deno }: Readonly<Record<string, unknown>> = globalThis
  // In Bun and Deno, an error does not prove that nothing was sent: Bun has its own module named
  // undici, and Deno has its own sockets under Node's names.
  const errorsAreProof = given === undefined && proxy === undefined && Bun === undefined && Deno === undefined
  let closing: Promise<void> | undefined
  return {
    send: async (request) => {
      // Nothing may be awaited between this check and the send, or the owner could close the
      // dispatcher in between.
      const code = closing === undefined ? closedByOwner(dispatcher) : 'UND_ERR_CLOSED'
      if (code !== undefined) throw new HeldBack('transport_closed', code)
      return new UndiciResponse(await sender.request(new SentRequest(request)))
    },
    whyUnsent: (error) =>
      error instanceof HeldBack
        ? error.why
        : errorsAreProof && provenUnsent(error, error instanceof Error && unconnected.has(error)),
    sendsOnce: () => given === undefined,
    close: async () => {
      if (given !== undefined) return
      closing ??= dispatcher.close()
      await closing
    },
  }
}

/**
 * Collects the errors of undici's own connector.
 *
 * They prove that no byte of a request was sent, even if the TLS handshake had begun.
 */
function connectorNoting(unconnected: WeakSet<Error>): buildConnector.connector {
  const connect = buildConnector(bare({ allowH2: false }))
  return (options, done) =>
    connect(options, (...result) => {
      const [error] = result
      if (error !== null) unconnected.add(error)
      done(...result)
    })
}

function proxyOfEnvironment(settings: Agent.Options): Dispatcher {
  try {
    return new EnvHttpProxyAgent(settings)
  } catch {
    // undici's own error contains the address, which may contain a password.
    return refuseOption(
      'cannot use the address in HTTP_PROXY or HTTPS_PROXY (or their lower-case names): ' +
        'it must look like http://proxy.example:3128',
      'proxy',
    )
  }
}

function closedByOwner(dispatcher: Dispatcher): string | undefined {
  // Checks `closed` first, because a closed dispatcher is later destroyed, too.
  if ('closed' in dispatcher && dispatcher.closed === true) return 'UND_ERR_CLOSED'
  return 'destroyed' in dispatcher && dispatcher.destroyed === true ? 'UND_ERR_DESTROYED' : undefined
}

/** Inherits nothing, so that undici reads no option from a polluted `Object.prototype`. */
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
  readonly isLate: TransportRequest['isLate']

  constructor({ url, method, headers, body, signal, isLate }: TransportRequest) {
    const { origin, pathname, search, protocol } = new URL(url)
    this.origin = origin
    this.path = pathname + search
    // undici sends any method, but its type lists only the usual ones.
    this.method = method as Dispatcher.HttpMethod
    this.headers = { 'accept-encoding': acceptEncoding(protocol), ...headers }
    // Bypasses the cache of a caller's dispatcher: a cached list of orders proves nothing.
    if (method === 'GET' || method === 'HEAD') this.headers['cache-control'] = 'no-store'
    this.body = body ?? null
    this.signal = signal
    this.isLate = isLate
  }
}
