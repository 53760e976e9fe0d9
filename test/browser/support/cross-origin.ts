import { Agent, type IncomingHttpHeaders, type IncomingMessage, request as send } from 'node:http'
import type { Socket } from 'node:net'
import { listen } from './listen.ts'

/** Headers that a request of a page may carry beyond those that every page may send anywhere. */
export const ALLOWED = ['authorization', 'content-type', 'idempotency-key'] as const

/** An order as it came in, which a browser may have sent once more by itself. */
export interface Arrival {
  readonly idempotencyKey: string | undefined
  /** True if the connection had carried another request before. */
  readonly reused: boolean
}

/** A service as a page of another origin meets it. */
export interface CrossOriginService {
  readonly url: string
  /** Headers that browsers asked for in preflights, in lower case. */
  readonly asked: ReadonlySet<string>
  /** Requests that were preflights. */
  readonly preflights: number
  /** Every POST. */
  readonly arrivals: readonly Arrival[]
  close(): Promise<void>
}

/** What stands between the page and the service. */
export interface FrontOptions {
  /** Whether 408 and 421, which a browser may repeat unseen, go to the page as 504. */
  readonly gateway?: boolean
  /** Headers of every successful read. */
  readonly read?: Readonly<Record<string, string>>
}

/** Statuses after which Chromium sends a POST once more by itself. */
export const REPEATED_STATUSES = [408, 421] as const

/** What RFC 9110 (7.6.1) and its predecessors say of one connection only; `host` names this server. */
const OF_ONE_CONNECTION = [
  'connection',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** The headers that go on to the next connection. */
function passedOn(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = String(headers.connection ?? '').split(',')
  const dropped = new Set([...OF_ONE_CONNECTION, ...named.map((name) => name.trim().toLowerCase())])
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)))
}

/**
 * Puts a service behind plain CORS rules: one origin that may call, a fixed list of headers, nothing exposed, so that
 * pages can read no header of an answer but the few that all may read. Connections are kept, as a service keeps them. Where the
 * service hangs up, so does this.
 */
export async function serveCrossOrigin(
  baseUrl: string,
  origin: string,
  { gateway = false, read = {} }: FrontOptions = {},
): Promise<CrossOriginService> {
  const asked = new Set<string>()
  const arrivals: Arrival[] = []
  const used = new WeakSet<Socket>()
  const agent = new Agent({ keepAlive: true })
  let preflights = 0

  const corsOf = (request: IncomingMessage): Readonly<Record<string, string>> => ({
    vary: 'origin',
    ...(request.headers.origin === origin ? { 'access-control-allow-origin': origin } : {}),
  })

  const { url, close } = await listen((request, response) => {
    const { method, url: path, headers, socket } = request
    const cors = corsOf(request)
    const reused = used.has(socket)
    used.add(socket)
    if (method === 'OPTIONS') {
      preflights++
      for (const name of String(headers['access-control-request-headers'] ?? '').split(','))
        if (name !== '') asked.add(name.trim().toLowerCase())
      const allowed = {
        'access-control-allow-methods': 'GET, POST',
        'access-control-allow-headers': ALLOWED.join(', '),
      }
      response
        .writeHead(204, Object.hasOwn(cors, 'access-control-allow-origin') ? { ...cors, ...allowed } : cors)
        .end()
      return
    }
    if (method === 'POST') arrivals.push({ idempotencyKey: headers['idempotency-key']?.toString(), reused })
    const passed = send(`${baseUrl}${path}`, { agent, method, headers: passedOn(headers) })
    passed.on('response', (answer) => {
      const { statusCode = 502 } = answer
      if (gateway && REPEATED_STATUSES.some((status) => status === statusCode)) {
        answer.resume()
        response.writeHead(504, { ...cors, 'content-type': 'text/plain' }).end('No answer came.')
        return
      }
      const added = method === 'GET' && statusCode === 200 ? read : {}
      response.writeHead(statusCode, { ...passedOn(answer.headers), ...cors, ...added })
      // A body that is cut off or stops halfway does so for the page, too.
      response.flushHeaders()
      answer.on('data', (chunk) => response.write(chunk))
      answer.on('end', () => response.end())
      answer.on('error', () => response.destroy())
    })
    passed.on('error', () => socket.resetAndDestroy())
    request.on('error', () => passed.destroy())
    response.on('close', () => passed.destroy())
    request.pipe(passed)
  })
  return {
    url,
    asked,
    arrivals,
    get preflights() {
      return preflights
    },
    close: async () => {
      await close()
      agent.destroy()
    },
  }
}
