import { ConfigurationError } from '../errors/classes.ts'
import { CanonicalJsonError, canonicalJson } from '../identity/canonical.ts'
import { Bytes } from './bytes.ts'
import { type Body, forward, type Received } from './forward.ts'
import { type ProxyOptions, settingsOf } from './options.ts'

export type { ProxyLoss, ProxyOptions } from './options.ts'
export type { ProxyRoute } from './routes.ts'

/** A request of `node:http`, Express, Connect or Next.js (`pages/api`). */
export interface NodeMessage {
  /** HTTP method. */
  readonly method?: string | undefined
  /** Path and query. */
  readonly url?: string | undefined
  /** Set by Express and Connect, which shorten `url` for what is mounted below a path. */
  readonly originalUrl?: string | undefined
  /** Headers, with names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Set by a body parser. */
  readonly body?: unknown
  /** True if a body parser has read the stream. */
  readonly readableDidRead: boolean
  /** Listens to the stream of the body. */
  on(event: 'data' | 'end' | 'error' | 'close', listener: (chunk: Uint8Array | string) => void): unknown
}

/** A request of Fastify. */
export interface FastifyMessage {
  /** The request of `node:http`. */
  readonly raw: NodeMessage
  /** Path and query, before Fastify rewrote them. */
  readonly originalUrl: string
  /** Set by a content type parser. */
  readonly body?: unknown
}

/** A response of `node:http`, Express, Connect or Next.js (`pages/api`). */
export interface NodeReply {
  /** HTTP status. */
  statusCode: number
  /** True once the response cannot be changed. */
  readonly headersSent: boolean
  /** True if the connection closed before the response was sent. */
  readonly destroyed?: boolean
  /** The stream of a response over HTTP/2. */
  readonly stream?: { readonly destroyed?: boolean }
  /** Sets a header. */
  setHeader(name: string, value: string | string[]): unknown
  /** Sends the response. */
  end(content?: Uint8Array): unknown
  /** Listens to the end of the response or of the connection. */
  on(event: 'close', listener: () => void): unknown
}

/** A reply of Fastify. */
export interface FastifyReply {
  /** The response of `node:http`. */
  readonly raw: NodeReply
  /** Sets the HTTP status. */
  code(status: number): unknown
  /** Sets headers. */
  headers(values: Record<string, string | string[]>): unknown
  /** Sends the response. */
  send(content: Uint8Array): unknown
}

/**
 * Handles one request.
 *
 * If one of your functions fails, calls `next` with the error; without `next`, responds with 500
 * and rejects with the error, or lets Fastify respond.
 */
export type NodeProxy<Incoming> = (
  request: Incoming,
  response: NodeReply | FastifyReply,
  next?: (error?: unknown) => void,
) => Promise<void>

/**
 * Creates the same proxy as `createProxy` of `customer-ordering-sdk/proxy` for servers with their
 * own request objects: Express 4 and 5, Fastify, Connect, Vite, and `node:http`.
 *
 * Mount it at `/api`, or at the path in `mountPath`, before or after a body parser. `authorize` and
 * `apiKey` get the request of your framework.
 *
 * @throws {ConfigurationError} naming the option that is missing, unknown or wrong
 * @example
 * const proxy = createNodeProxy<express.Request>({
 *   baseUrl: 'https://api.example.com',
 *   apiKey: process.env.CUSTOMER_ORDERING_API_KEY ?? '',
 *   authorize: (request, route) => request.session.mayOrder || route.operation === 'listServices',
 * })
 * app.use('/api', proxy)
 */
export function createNodeProxy<Incoming extends NodeMessage | FastifyMessage = NodeMessage>(
  options: ProxyOptions<Incoming>,
): NodeProxy<Incoming> {
  const settings = settingsOf('createNodeProxy', options)
  return async (request, response, next) => {
    try {
      await send(response, await forward(settings, receivedFrom(request, response)))
    } catch (error) {
      if (typeof next === 'function') return next(error)
      if (!('code' in response) && !response.headersSent) {
        response.statusCode = 500
        response.end()
      }
      throw error
    }
  }
}

function receivedFrom<Incoming extends NodeMessage | FastifyMessage>(
  request: Incoming,
  response: NodeReply | FastifyReply,
): Received<Incoming> {
  const message: NodeMessage = 'raw' in request ? request.raw : request
  if (typeof message?.on !== 'function') {
    throw new ConfigurationError(
      'The handler of createNodeProxy was given something else than a request of Node. Nothing was' +
        ' sent. For a Fetch Request, use createProxy from customer-ordering-sdk/proxy.',
    )
  }
  const { method = 'GET', headers } = message
  const url = request.originalUrl ?? message.url ?? ''
  return {
    request,
    method,
    // Never resolved against a base: anybody can send `//elsewhere.example`. A request for `*` or
    // for a whole URL has no path.
    url: url.startsWith('/') ? new URL(`http://localhost${url}`) : undefined,
    header: (name) => {
      const value = headers[name]
      return value === undefined ? null : String(value)
    },
    left: leftOf('raw' in response ? response.raw : response),
    readBody: (limit) =>
      message.readableDidRead ? parsedBody(request.body, limit) : readMessage(message, limit),
  }
}

/** Watches the response, because a request closes as soon as its body has been read. */
function leftOf(reply: NodeReply): AbortSignal {
  const left = new AbortController()
  if (reply.destroyed === true || reply.stream?.destroyed === true) left.abort()
  else reply.on('close', () => left.abort())
  return left.signal
}

/**
 * A body that is too large is read to its end without being kept: Node would not read the next
 * request of the connection, and closing the connection could lose the response.
 */
function readMessage(message: NodeMessage, limit: number): Promise<Body> {
  const bytes = new Bytes(limit)
  return new Promise((resolve) => {
    message.on('data', (chunk) => {
      if (!bytes.add(typeof chunk === 'string' ? encode(chunk) : chunk)) resolve('too_large')
    })
    message.on('end', () => resolve(bytes.all()))
    for (const event of ['error', 'close'] as const) message.on(event, () => resolve('cut_off'))
  })
}

/**
 * The client sends canonical JSON, so writing a parsed body as canonical JSON gives the bytes that
 * the client sent.
 */
async function parsedBody(body: unknown, limit: number): Promise<Body> {
  const bytes = new Bytes(limit)
  if (body instanceof Uint8Array) return bytes.add(body) ? bytes.all() : 'too_large'
  if (body === undefined) {
    throw new ConfigurationError(
      'The request body was read before the proxy got the request, and is not in request.body. Nothing' +
        ' was sent. Mount the proxy first, or after a parser of JSON.',
    )
  }
  try {
    return bytes.add(encode(typeof body === 'string' ? body : canonicalJson(body)))
      ? bytes.all()
      : 'too_large'
  } catch (error) {
    if (error instanceof CanonicalJsonError) return 'not_json'
    throw error
  }
}

async function send(reply: NodeReply | FastifyReply, response: Response): Promise<void> {
  const headers: Record<string, string | string[]> = Object.fromEntries(response.headers)
  const cookies = response.headers.getSetCookie()
  if (cookies.length > 0) headers['set-cookie'] = cookies
  const content = new Uint8Array(await response.arrayBuffer())
  if ('code' in reply) {
    reply.code(response.status)
    reply.headers(headers)
    reply.send(content)
    return
  }
  reply.statusCode = response.status
  for (const [name, value] of Object.entries(headers)) reply.setHeader(name, value)
  reply.end(content)
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}
