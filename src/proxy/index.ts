import { ConfigurationError } from '../errors/classes.ts'
import { API_KEY_TAG, IF_API_KEY_TAG } from '../http/api-key-tag.ts'
import { pathProblem } from '../http/path.ts'
import { LIKE_A_KEY, REQUEST_ID_HEADERS, redact } from '../http/redact.ts'
import { apiKeyTag, proxiedTag } from '../orders/identity.ts'
import { baseUrl, INSECURE, isInsecure } from '../settings/base-url.ts'
import { apiKey, credentialsOf } from '../settings/credentials.ts'
import { callable, duration, flag, type Read, type Readers, readFields } from '../settings/readers.ts'
import { uuidV5 } from '../uuid-v5.ts'

/** Options of {@link createProxy}. */
export interface ProxyOptions {
  /**
   * Address of the service without the final `/v1`. Must be https, except for this machine or with
   * {@link ProxyOptions.allowInsecureHttp}.
   */
  readonly baseUrl: string | URL
  /**
   * The API key of the wallet that the visitor can read and spend from: a string, or a sync or
   * async function that returns the key for a request that `authorize` has accepted.
   */
  readonly apiKey: string | ((request: Request) => string | Promise<string>)
  /**
   * Decides who may use the proxy: check the visitor's session here. `true` forwards the request,
   * `false` returns 401, and a `Response` is returned unchanged. An accepted visitor can read the
   * wallet's orders and spend its money. Read the body only from `request.clone()`.
   */
  readonly authorize: (request: Request) => boolean | Response | Promise<boolean | Response>
  /**
   * How long to wait for the service's complete response, in milliseconds. Default 60,000, which is
   * longer than the client's default `timeout`.
   */
  readonly timeout?: number | undefined
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch | undefined
  /** Called if the service returns no usable response. Visitors do not see the reason. */
  readonly onLost?: ((loss: ProxyLoss) => void) | undefined
  /**
   * True to accept an http `baseUrl` of another machine, although anyone on the network path can
   * read the API key. Only for private networks. Default false.
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

const ROUTES: readonly (readonly [method: string, path: RegExp])[] = [
  ['GET', /\/v1\/(?:services|orders)(?:\/([^/]+))?$/],
  ['GET', /\/v1\/balance$/],
  ['POST', /\/v1\/orders$/],
]

const FORWARDED_HEADERS = ['accept', 'content-type', 'idempotency-key']

/** No content-length and no content-encoding, because the proxy returns the body decoded. */
const RETURNED_HEADERS = ['content-type', 'retry-after', 'idempotent-replayed', ...REQUEST_ID_HEADERS]

/**
 * Statuses after which browsers silently resend a POST: Chromium after both, Firefox and WebKit
 * after 421. Neither status proves that the order was not created
 * (docs/decisions/a-browser-may-repeat.md).
 */
const RESENT_BY_BROWSERS: readonly number[] = [408, 421]

const STATUSES_WITHOUT_BODY: readonly number[] = [204, 205]

/** An order has a few hundred bytes. */
const MAX_BODY_BYTES = 1_000_000

const SALT = 'customer-ordering-sdk/proxy'

const address: Read<string | URL> = baseUrl

const OPTIONS: Readers<ProxyOptions> = {
  baseUrl: address,
  apiKey: (value, refuse) =>
    (typeof value === 'string' || typeof value === 'function' ? apiKey(value, refuse) : null) ??
    refuse('must be a string or a function'),
  authorize: callable(),
  timeout: duration,
  fetch: callable(),
  onLost: callable(),
  allowInsecureHttp: flag,
}

/**
 * Creates a handler that forwards a page's calls to the service and adds the API key, which never
 * leaves the server. It works with Hono, Next.js, Workers, Bun, Deno, and anything that handles a
 * `Request`. Mount it at any path. In the page, create the client with the address of the proxy as
 * `baseUrl`, `apiKey: null`, and the service's own address as `server`.
 *
 * - It forwards only the calls that a page needs, and returns only the headers that the client
 *   reads.
 * - It sends each request once and follows no redirects. If the service does not respond, or
 *   responds with a redirect, 408 or 421, the handler returns 502 or 504. For a POST, the client
 *   then assumes that the order may exist, and no browser silently repeats the request.
 * - It adds a short tag of the API key to its responses, so that the client never repeats an
 *   ambiguous order with another API key.
 *
 * The handler's promise rejects only if one of your functions fails: `authorize` throws, or
 * `apiKey` throws or returns an invalid key, before anything is sent; or `onLost` throws afterwards.
 *
 * @throws {ConfigurationError} naming the option that is missing, unknown or wrong
 * @example
 * const proxy = createProxy({
 *   baseUrl: 'https://api.example.com',
 *   apiKey: process.env.CUSTOMER_ORDERING_API_KEY ?? '',
 *   authorize: async (request) => (await sessionOf(request)) !== undefined,
 * })
 * app.all('/api/*', (c) => proxy(c.req.raw)) // Hono
 */
export function createProxy(options: ProxyOptions): (request: Request) => Promise<Response> {
  const read = readFields(options, OPTIONS, refuseOption)
  const service = String(read.baseUrl ?? refuseOption('is missing', 'baseUrl'))
  const source = read.apiKey ?? refuseOption('is missing', 'apiKey')
  const authorize =
    read.authorize ??
    refuseOption('is missing: without it, anybody could spend the money in the wallet', 'authorize')
  const { timeout = 60_000, onLost, allowInsecureHttp } = read
  if (isInsecure(service) && allowInsecureHttp !== true) refuseOption(INSECURE, 'baseUrl')

  return async (request) => {
    const { method } = request
    const { pathname, search } = new URL(request.url)
    const path = routeOf(method, pathname)
    if (path === undefined) return refusal(404, 'NOT_FOUND', 'The proxy does not forward this call.')
    const verdict = await authorize(request)
    if (verdict instanceof Response) return verdict
    if (verdict !== true) return refusal(401, 'UNAUTHENTICATED', 'Sign in first.')

    const key = await credentialsOf(typeof source === 'string' ? source : () => source(request)).get()
    if (key === null)
      throw new ConfigurationError('createProxy has no API key. Nothing was sent. Set the option apiKey.')
    const tag = apiKeyTag(uuidV5, SALT, key)
    const tagged = (response: Response): Response => {
      response.headers.set(API_KEY_TAG, tag)
      return response
    }
    const headers = pick(request.headers, FORWARDED_HEADERS)
    headers.set('authorization', `Bearer ${key}`)
    let body: ArrayBuffer | undefined
    if (method === 'POST') {
      const idempotencyKey = headers.get('idempotency-key')
      // Requiring this header also stops forms on other sites: a browser sends the header to
      // another origin only after a preflight.
      if (!idempotencyKey) return refusal(400, 'BAD_REQUEST', 'The header Idempotency-Key is missing.')
      const expected = request.headers.get(IF_API_KEY_TAG)
      // After a 425, the client sends the order again under the new API key, unless an earlier
      // request may have created the order.
      if (expected !== null && expected !== proxiedTag(uuidV5, idempotencyKey, tag))
        return tagged(refusal(425, 'API_KEY_CHANGED', 'The API key of the proxy has changed.'))
      body = await request.arrayBuffer().catch(() => undefined)
      if (body === undefined) return tagged(refusal(400, 'BAD_REQUEST', 'The request body ended early.'))
      if (body.byteLength > MAX_BODY_BYTES)
        return tagged(refusal(400, 'BAD_REQUEST', 'The request body is larger than 1 MB.'))
    }

    const lose = (status: 502 | 504, reason: string): Response => {
      onLost?.({ method, path, reason: redact(reason, [key]) })
      const doubt = method === 'GET' ? '' : ' An order may have been created and charged.'
      return tagged(refusal(status, 'SERVICE_LOST', `The service returned no usable response.${doubt}`))
    }
    const send = read.fetch ?? fetch
    const signal = AbortSignal.timeout(timeout)
    let response: Response
    try {
      const init = {
        method,
        headers,
        redirect: 'manual',
        signal,
        ...(body && { body }),
        ...noStore(),
      } as const
      response = await send(service + path + search, init)
    } catch (error) {
      return lose(signal.aborted ? 504 : 502, reasonOf(error))
    }
    const { status } = response
    if (RESENT_BY_BROWSERS.includes(status)) return lose(504, `The service responded with ${status}.`)
    if (status < 200 || (status >= 300 && status < 400) || status > 599)
      return lose(502, `The service responded with ${status || 'a redirect'}.`)
    let text = ''
    try {
      text = await response.text()
    } catch (error) {
      // Forward a success without its body: the status proves the charge, and the client sends the
      // same key again to read the order.
      if (method === 'GET' || status >= 300) return lose(502, reasonOf(error))
    }
    const returned = pick(response.headers, RETURNED_HEADERS, (value) => redact(value, [key]))
    returned.set('cache-control', 'no-store')
    const content = STATUSES_WITHOUT_BODY.includes(status) ? null : redact(text, [key], LIKE_A_KEY)
    return tagged(new Response(content, { status, headers: returned }))
  }
}

function refuseOption(problem: string, name?: string): never {
  throw new ConfigurationError(`createProxy ${name === undefined ? 'options' : `option ${name}`} ${problem}.`)
}

function routeOf(method: string, pathname: string): string | undefined {
  for (const [allowed, pattern] of ROUTES) {
    const found = allowed === method ? pattern.exec(pathname) : null
    if (found !== null && (found[1] === undefined || isId(found[1]))) return found[0]
  }
  return undefined
}

/**
 * True if the segment cannot make the path reach another endpoint, even if a server behind the
 * proxy decodes the path again.
 */
function isId(segment: string): boolean {
  return !/%(?:25)*(?:2f|5c)/i.test(segment) && pathProblem(segment) === undefined
}

function refusal(status: number, code: string, message: string): Response {
  const text = status < 500 ? `${message} Nothing was sent.` : message
  return Response.json({ code, message: text }, { status, headers: { 'cache-control': 'no-store' } })
}

function pick(from: Headers, names: readonly string[], change = (value: string): string => value): Headers {
  const picked = new Headers()
  for (const name of names) {
    const value = from.get(name)
    if (value !== null) picked.set(name, change(value))
  }
  return picked
}

function noStore(): { readonly cache?: 'no-store' } {
  return 'cache' in Request.prototype ? { cache: 'no-store' } : {}
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message
}
