/**
 * The package's proxy behind `node:http`: it passes the page's calls on to the service and adds the
 * API key, which never leaves this side. The page and the proxy have the same origin, so they need
 * no CORS, and no other site can use the proxy through a visitor's browser.
 */
import type { IncomingMessage } from 'node:http'
import { createNodeProxy, type NodeProxy } from 'customer-ordering-sdk/proxy/node'

/** The service, and the pages and visitors that may call it. */
export interface Upstream {
  /** Address of the service, before `/v1`. */
  readonly baseUrl: string
  /** Returns the origins of the page, as browsers name them: `https://shop.example.com`. */
  readonly origins: () => readonly string[]
  /**
   * Returns the API key of the wallet that this visitor may read and spend, or undefined to reject
   * the call.
   */
  readonly apiKeyFor: (request: IncomingMessage) => string | undefined
}

/** Handles requests below `/api`. */
export function createShopProxy({ baseUrl, origins, apiKeyFor }: Upstream): NodeProxy<IncomingMessage> {
  return createNodeProxy<IncomingMessage>({
    baseUrl,
    apiKey: (request) => apiKeyFor(request) ?? '',
    authorize: (request) => (isFromPage(request, origins()) ? apiKeyFor(request) !== undefined : FOREIGN()),
    onLost: (loss) => console.error(loss),
  })
}

/** Has the shape of the service's errors, so that the client knows that nothing was charged. */
const FOREIGN = (): Response =>
  Response.json({ code: 'FORBIDDEN', message: 'The proxy serves its own page only.' }, { status: 403 })

/**
 * True for requests of the shop's own page. Every current browser sends the origin of a request,
 * and no page can forge it. Other programs can, so `apiKeyFor` must decide who may order.
 */
function isFromPage({ method, headers }: IncomingMessage, origins: readonly string[]): boolean {
  const { origin, 'sec-fetch-site': site } = headers
  if (site !== 'same-origin') return false
  // Browsers send the origin with every POST, but not with a GET to the page's own origin.
  return origin === undefined ? method === 'GET' : origins.includes(origin)
}
