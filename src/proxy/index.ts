import { ConfigurationError } from '../errors/classes.ts'
import { Bytes } from './bytes.ts'
import { type Body, forward } from './forward.ts'
import { type ProxyOptions, settingsOf } from './options.ts'

export type { ProxyLoss, ProxyOptions } from './options.ts'
export type { ProxyRoute } from './routes.ts'

/**
 * Creates a handler that forwards a page's calls to the service and adds the API key, which never
 * leaves the server.
 *
 * It works with Hono, Next.js, Workers, Bun, Deno, and anything that handles a Fetch `Request`; for
 * Express, Fastify and `node:http`, see `customer-ordering-sdk/proxy/node`. Mount it at `/api` or
 * at the path in `mountPath`. In the page, create the client with the address of the proxy as
 * `baseUrl`, `apiKey: null`, and the service's own address as `server`.
 *
 * - It forwards only the calls that a page needs, and returns only the headers that the client
 *   reads.
 * - It sends each request once and follows no redirects. If the service does not respond, or
 *   responds with a redirect, 408 or 421, the handler returns 502 or 504. For a POST, the client
 *   then assumes that the order may exist, and no browser silently repeats the request.
 * - It sends nothing once `timeout` has passed since it received the request, or once the client has
 *   left (`request.signal`). It then returns 425, and the client may send the order again.
 * - It adds a short tag of the API key to its responses, so that the client never repeats an
 *   ambiguous order with another API key.
 *
 * The handler's promise rejects only if it is given something else than an unread `Request`, or if one of
 * your functions fails in time: `authorize` throws, or `apiKey` throws or returns an invalid key,
 * before anything is sent; or `onLost` throws afterwards.
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
  const settings = settingsOf('createProxy', options)
  return async (request) => {
    assertRequest(request)
    return await forward(settings, {
      request,
      method: request.method,
      url: new URL(request.url),
      header: (name) => request.headers.get(name),
      left: request.signal,
      readBody: (limit) => readStream(request.body, limit),
    })
  }
}

function assertRequest(request: Request): void {
  if (request?.headers instanceof Headers && typeof request.url === 'string') return
  throw new ConfigurationError(
    'The handler of createProxy was given something else than a Fetch Request. Nothing was sent.' +
      ' In Hono, pass c.req.raw. In Express, Fastify and node:http, use createNodeProxy from' +
      ' customer-ordering-sdk/proxy/node.',
  )
}

/**
 * Does not cancel a body that is too large: some servers would then close the connection before
 * they send the response.
 */
async function readStream(body: Request['body'], limit: number): Promise<Body> {
  const bytes = new Bytes(limit)
  if (body === null) return bytes.all()
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return bytes.all()
      if (!bytes.add(value)) return 'too_large'
    }
  } catch {
    return 'cut_off'
  } finally {
    reader.releaseLock()
  }
}
