/**
 * The package's proxy behind `node:http`: it passes the page's calls on to the service and adds the API key, which never leaves
 * this side. The page and the proxy have one origin, so the browser asks for no CORS, and no other site can use the proxy
 * through a visitor's browser.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { createProxy } from 'customer-ordering-sdk/proxy'

/** Where calls go. */
export interface Upstream {
  /** Address of the service, before `/v1`. */
  readonly baseUrl: string
  /** Origins of the page, as browsers name them: `https://shop.example.com`. */
  readonly origins: readonly string[]
  /** The API key of the wallet that this visitor may read and spend; undefined refuses the call. */
  readonly apiKeyFor: (request: IncomingMessage) => string | undefined
}

/** Handles what came for `/api`; `path` begins after that. */
export async function passOn(
  { baseUrl, origins, apiKeyFor }: Upstream,
  path: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const apiKey = apiKeyFor(incoming)
  const proxy = createProxy({
    baseUrl,
    apiKey: () => apiKey ?? '',
    authorize: () => (isFromPage(incoming, origins) ? apiKey !== undefined : FOREIGN()),
    onLost: (loss) => console.error(loss),
  })
  const { method = 'GET', headers } = incoming
  const named = Object.entries(headers).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as [string, string]] : [],
  )
  const body = method === 'POST' ? { body: Readable.toWeb(incoming), duplex: 'half' } : {}
  // Not resolved against a base: anybody can send `//elsewhere.example`.
  const response = await proxy(
    new Request(`http://page${path}`, { method, headers: named, ...body } as RequestInit),
  )
  const content = Buffer.from(await response.arrayBuffer())
  outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(content)
}

/** In the shape of the service's errors, so that the client knows: this was refused, and nothing was charged. */
const FOREIGN = (): Response =>
  Response.json({ code: 'FORBIDDEN', message: 'The proxy serves its own page only.' }, { status: 403 })

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
