/** The options of both proxies, and what is wrong with them. */
import { ConfigurationError } from '../errors/classes.ts'
import { baseUrl, INSECURE, isInsecure } from '../settings/base-url.ts'
import { apiKey } from '../settings/credentials.ts'
import {
  callable,
  duration,
  flag,
  integer,
  type Read,
  type Readers,
  readFields,
} from '../settings/readers.ts'
import type { ProxyRoute } from './routes.ts'

/**
 * Options of `createProxy` and `createNodeProxy`.
 *
 * `Incoming` is the request that your functions get: a Fetch `Request`, or the request of your Node
 * framework.
 */
export interface ProxyOptions<Incoming = Request> {
  /**
   * Address of the service without the final `/v1`.
   *
   * Must be https, except for this machine or with {@link ProxyOptions.allowInsecureHttp}.
   */
  readonly baseUrl: string | URL
  /**
   * The API key of the wallet that the visitor can read and spend from: a string, or a sync or
   * async function that returns the key for a request that `authorize` has accepted.
   */
  readonly apiKey: string | ((request: Incoming) => string | Promise<string>)
  /**
   * Decides who may make a call: check the visitor's session here, and the route if visitors have
   * different permissions.
   *
   * `true` forwards the request, `false` returns 401, and a `Response` is returned instead. For
   * `createOrder`, return a status from 400 to 499: after a redirect or a 5xx, the page's client must
   * assume that the order may exist. The proxy keeps the status 401, 403 or 429, and sends 403 in
   * place of another one. It sends JSON with a `code`: your JSON object, or your text as `message`.
   *
   * An accepted `createOrder` spends the wallet's money. Do not read the body.
   */
  readonly authorize: (
    request: Incoming,
    route: ProxyRoute,
  ) => boolean | Response | Promise<boolean | Response>
  /**
   * The path of your site below which the proxy is: `/api` forwards `/api/v1/orders`, and every
   * other path gets 404.
   *
   * Default `/api`. For the top of the site, `/`.
   */
  readonly mountPath?: string | undefined
  /** Maximum bytes of an order's body. A larger body gets 413, unread. Default 262,144. */
  readonly maxBodyBytes?: number | undefined
  /**
   * How long a request may take, from its receipt to the service's complete response, in
   * milliseconds.
   *
   * Includes `authorize`, `apiKey` and the body of the request. Once the time is over, the proxy
   * sends nothing and responds with 425. Default 60,000, which is longer than the client's default
   * `timeout`.
   */
  readonly timeout?: number | undefined
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch | undefined
  /**
   * Called if the service returns no usable response. Visitors do not see the reason.
   *
   * A returned promise is not awaited, and its rejection is ignored.
   */
  readonly onLost?: ((loss: ProxyLoss) => void) | undefined
  /**
   * True to accept an http `baseUrl` of another machine, although anyone on the network path can
   * read the API key.
   *
   * Only for private networks. Default false.
   */
  readonly allowInsecureHttp?: boolean | undefined
}

/** A request for which the service returned no usable response. */
export interface ProxyLoss {
  /** HTTP method of the request. */
  readonly method: string
  /** Path below the base URL, without the query. */
  readonly path: string
  /** The reason, without the API key. */
  readonly reason: string
}

/** Checked options, with defaults. */
export interface Settings<Incoming> {
  readonly service: string
  readonly apiKey: string | ((request: Incoming) => string | Promise<string>)
  readonly authorize: ProxyOptions<Incoming>['authorize']
  readonly mountPath: string
  readonly maxBodyBytes: number
  readonly timeout: number
  readonly fetch: typeof fetch | undefined
  readonly onLost: ((loss: ProxyLoss) => void) | undefined
}

const address: Read<string | URL> = baseUrl

/** Normalises the path as the URL of a request does. */
const path: Read<string> = (value, refuse) => {
  if (typeof value !== 'string' || !/^\/[^?#]*$/.test(value))
    return refuse('must be a path that begins with /, such as /api')
  const { pathname } = new URL(`http://localhost${value}`)
  const trimmed = pathname.replace(/\/+$/, '')
  return trimmed.endsWith('/v1') ? refuse('must not end in /v1: the client adds that') : trimmed
}

function readers<Incoming>(): Readers<ProxyOptions<Incoming>> {
  return {
    baseUrl: address,
    // The cast is safe: the proxy checks each result of the function.
    apiKey: (value, refuse) =>
      typeof value === 'string' || typeof value === 'function'
        ? (apiKey(value, refuse) as ProxyOptions<Incoming>['apiKey'])
        : refuse('must be a string or a function'),
    authorize: callable(),
    mountPath: path,
    maxBodyBytes: integer(1),
    timeout: duration,
    fetch: callable(),
    onLost: callable(),
    allowInsecureHttp: flag,
  }
}

export function settingsOf<Incoming>(maker: string, options: ProxyOptions<Incoming>): Settings<Incoming> {
  const refuse = (problem: string, name?: string): never => {
    throw new ConfigurationError(`${maker} ${name === undefined ? 'options' : `option ${name}`} ${problem}.`)
  }
  const read = readFields(options, readers<Incoming>(), refuse)
  const service = String(read.baseUrl ?? refuse('is missing', 'baseUrl'))
  if (isInsecure(service) && read.allowInsecureHttp !== true) refuse(INSECURE, 'baseUrl')
  return {
    service,
    apiKey: read.apiKey ?? refuse('is missing', 'apiKey'),
    authorize:
      read.authorize ??
      refuse('is missing: without it, anybody could spend the money in the wallet', 'authorize'),
    mountPath: read.mountPath ?? '/api',
    maxBodyBytes: read.maxBodyBytes ?? 262_144,
    timeout: read.timeout ?? 60_000,
    fetch: read.fetch,
    onLost: read.onLost,
  }
}
