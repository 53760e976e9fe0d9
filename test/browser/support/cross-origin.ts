import { Agent, type IncomingHttpHeaders, type IncomingMessage, request as send } from 'node:http'
import type { Socket } from 'node:net'
import { listen } from './listen.ts'

/** Headers that a page may send in addition to the CORS-safelisted ones. */
export const ALLOWED = ['authorization', 'content-type', 'idempotency-key'] as const

/** An order as received. The browser may have resent it on its own. */
export interface Arrival {
  readonly idempotencyKey: string | undefined
  /** True if the connection had carried another request before. */
  readonly reused: boolean
}

/** The server between the page and the service. */
export interface FrontOptions {
  /** True to return 504 instead of 408 and 421, after which a browser may resend a request unseen. */
  readonly gateway?: boolean
  readonly read?: Readonly<Record<string, string>>
}

/** Statuses after which Chromium resends a POST on its own. */
export const REPEATED_STATUSES = [408, 421] as const

/**
 * Headers that RFC 9110 (7.6.1) and its predecessors limit to one connection. `host` names this
 * server.
 */
const OF_ONE_CONNECTION =
  'connection host keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade'.split(
    ' ',
  )

function passedOn(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = String(headers.connection ?? '').split(',')
  const dropped = new Set([...OF_ONE_CONNECTION, ...named.map((name) => name.trim().toLowerCase())])
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)))
}

/**
 * Puts a service behind CORS: one allowed origin, a fixed list of headers, and no exposed headers,
 * so that pages can read only the safelisted response headers. Keeps connections alive, as a
 * service does. If the service closes the connection, this server does, too.
 */
export async function serveCrossOrigin(
  baseUrl: string,
  origin: string,
  { gateway = false, read = {} }: FrontOptions = {},
) {
  /** Headers that browsers requested in preflights, in lower case. */
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
      // A truncated or stalled body is truncated or stalled for the page, too.
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
/** A service as a page of another origin sees it. */
export type CrossOriginService = Awaited<ReturnType<typeof serveCrossOrigin>>
