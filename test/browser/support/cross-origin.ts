import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Headers that a request of a page may carry beyond those that every page may send anywhere. */
export const ALLOWED = ['authorization', 'content-type', 'idempotency-key'] as const

/** A service as a page of another origin meets it. */
export interface CrossOriginService {
  readonly url: string
  /** Headers that browsers asked for in preflights, in lower case. */
  readonly asked: ReadonlySet<string>
  /** Requests that were preflights. */
  readonly preflights: number
  close(): Promise<void>
}

/**
 * Puts a service behind plain CORS rules: one origin that may call, a fixed list of headers, nothing exposed, so that
 * pages can read no header of an answer but the few that all may read.
 */
export async function serveCrossOrigin(baseUrl: string): Promise<CrossOriginService> {
  const asked = new Set<string>()
  let preflights = 0
  const server = createServer((request, response) => {
    const origin = request.headers.origin ?? ''
    const cors = { 'access-control-allow-origin': origin, vary: 'origin' }
    if (request.method === 'OPTIONS') {
      preflights++
      for (const name of String(request.headers['access-control-request-headers'] ?? '').split(','))
        if (name !== '') asked.add(name.trim().toLowerCase())
      response
        .writeHead(204, {
          ...cors,
          'access-control-allow-methods': 'GET, POST',
          'access-control-allow-headers': ALLOWED.join(', '),
        })
        .end()
      return
    }
    const { method, url, headers } = request
    const passed = send(`${baseUrl}${url}`, { method, headers: { ...headers, connection: 'close' } })
    passed.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, { ...answer.headers, ...cors })
      // A body that is cut off or stops halfway does so for the page, too.
      response.flushHeaders()
      answer.on('data', (chunk) => response.write(chunk))
      answer.on('end', () => response.end())
      answer.on('error', () => response.destroy())
    })
    passed.on('error', () => request.socket.resetAndDestroy())
    request.on('error', () => passed.destroy())
    response.on('close', () => passed.destroy())
    request.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    get preflights() {
      return preflights
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
