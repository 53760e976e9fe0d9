/**
 * Passes the page's calls on to the service and adds the API key, which never leaves this side. The page and the proxy have
 * one origin, so the browser asks for no CORS, and no other site can use the proxy through a visitor's browser.
 */
import { type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http'
import { request as requestHttps } from 'node:https'
import { pipeline } from 'node:stream'

/** Where calls go. */
export interface Upstream {
  /** Address of the service, before `/v1`. */
  readonly baseUrl: string
  /** Origins of the page, as browsers name them: `https://shop.example.com`. */
  readonly origins: readonly string[]
  /** The API key of the wallet that this visitor may read and spend; undefined refuses the call. */
  readonly apiKeyFor: (request: IncomingMessage) => string | undefined
}

/** All that a page needs of the service. Ids are plain text, so that no path can lead anywhere else. */
const ROUTES: readonly (readonly [method: string, path: RegExp])[] = [
  ['GET', /^\/v1\/services(?:\/[\w.:~-]+)?$/],
  ['GET', /^\/v1\/balance$/],
  ['GET', /^\/v1\/orders(?:\/[\w.:~-]+)?$/],
  ['POST', /^\/v1\/orders$/],
]

/** Headers that go to the service. Cookies and whatever else the browser sends stay here. */
const SENT = ['accept', 'content-type', 'content-length', 'idempotency-key']
/** Headers that come back: what the body is, and what the client reads, with a request id under any of the usual names. */
const RETURNED = [
  ...['content-type', 'content-length', 'content-encoding', 'retry-after', 'idempotent-replayed'],
  ...['x-request-id', 'request-id', 'x-correlation-id', 'x-amzn-requestid', 'cf-ray'],
]

/**
 * Statuses after which browsers send a POST once more by themselves (Chromium both, Firefox and WebKit 421). They prove nothing
 * about the order, so the page gets 504 instead.
 */
const REPEATED: readonly number[] = [408, 421]

/** Milliseconds without a byte from the service until its connection is given up. The page's own limit is shorter. */
const SILENCE = 60_000

/** Handles what came for `/api`; `path` begins after that. */
export function passOn(
  { baseUrl, origins, apiKeyFor }: Upstream,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  // Anybody can send an address that is none, such as `//`.
  const asked = URL.parse(path, 'http://page')
  const { pathname, search } = asked ?? { pathname: '', search: '' }
  if (!ROUTES.some(([method, route]) => method === request.method && route.test(pathname))) {
    refuse(response, 404, 'NOT_FOUND', 'The proxy passes no such call on.')
    return
  }
  if (!isFromPage(request, origins)) {
    refuse(response, 403, 'FORBIDDEN', 'The proxy serves its own page only.')
    return
  }
  const apiKey = apiKeyFor(request)
  if (apiKey === undefined) {
    refuse(response, 401, 'UNAUTHENTICATED', 'Sign in to see services and to order.')
    return
  }

  const url = new URL(baseUrl.replace(/\/+$/, '') + pathname + search)
  const headers = { ...pick(request.headers, SENT), authorization: `Bearer ${apiKey}` }
  const send = url.protocol === 'https:' ? requestHttps : requestHttp
  const upstream = send(url, { method: request.method, headers, timeout: SILENCE })
  upstream.on('response', (answer) => {
    // The page has gone away meanwhile; a reload does that. Piping to it would throw, here where nobody catches it.
    if (response.destroyed) {
      answer.resume()
      return
    }
    const { statusCode = 502 } = answer
    if (REPEATED.includes(statusCode)) {
      answer.resume()
      lose(response)
      return
    }
    response.writeHead(statusCode, {
      ...pick(answer.headers, RETURNED),
      'cache-control': 'no-store',
    })
    // An answer that is cut off is cut off for the page, too.
    pipeline(answer, response, () => {})
  })
  upstream.on('timeout', () => upstream.destroy())
  upstream.on('error', () => lose(response))
  pipeline(request, upstream, () => {})
}

/**
 * True for requests of the shop's own page. Every current browser says where a request comes from, and no page can make it
 * say something else. Programs can: who may order is for `apiKeyFor` to know.
 */
function isFromPage({ method, headers }: IncomingMessage, origins: readonly string[]): boolean {
  const { origin, 'sec-fetch-site': site } = headers
  if (site !== 'same-origin') return false
  // Browsers name the origin with a POST, and leave it out where a page reads from its own.
  return origin === undefined ? method === 'GET' : origins.includes(origin)
}

/**
 * No answer came: nobody knows whether the order was made, and 504 says no more than that. Nothing is repeated here, and the
 * connection is not just closed either: a browser may then repeat the request by itself, unseen by the page, and the page would
 * take the second answer for the first.
 */
function lose(response: ServerResponse): void {
  if (response.headersSent) response.destroy()
  else
    response
      .writeHead(504, { 'content-type': 'text/plain', 'cache-control': 'no-store' })
      .end('No answer came.')
}

/** Answers in the shape of the service's errors, so that the client knows: this was refused, and nothing was charged. */
function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response
    .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    .end(JSON.stringify({ code, message }))
}

function pick(headers: IncomingMessage['headers'], names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
}
