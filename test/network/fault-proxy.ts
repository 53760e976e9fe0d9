import { request as sendRequest } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { listening, parseRequest, type RawRequest } from '../support/raw-http.ts'

/** What the service answered. */
export interface ServiceAnswer {
  readonly status: number
  readonly headers: readonly string[]
  readonly body: string
}

/** One request that has arrived completely, and what can be done with it. */
export interface Exchange {
  readonly socket: Socket
  readonly request: RawRequest
  /** Has the service act on the request, and says what it answered. May be called again. */
  forward(): Promise<ServiceAnswer>
  /** Tells the caller that its time is up. */
  timeUp(): void
  /** The same as soon as the caller has read the headers of an answer. */
  timeUpAfterHeaders(): void
}

/** What happens between a caller and the service. Reacts to events only: nothing here waits for time to pass. */
export interface Behaviour {
  /** A connection has just been accepted. */
  readonly onConnection?: (socket: Socket) => void
  /** The first byte of a request has arrived. True if nothing more happens to it. */
  readonly onFirstByte?: (socket: Socket) => boolean
  /** Nothing means that it is forwarded and answered. */
  readonly onRequest?: (exchange: Exchange) => Promise<void> | void
}

/** A TCP proxy in front of one service that misbehaves as told. */
export interface FaultProxy {
  readonly url: string
  /** What is done to connections and requests from now on; nothing for a proxy in good order. */
  behaviour: Behaviour
  /** Every complete request. */
  readonly requests: readonly RawRequest[]
  /** Number of the connection that the newest byte came on, from 1 on. */
  readonly lastConnection: () => number
  /** Resolves when nothing is under way between the proxy and the service. */
  quiet(): Promise<void>
  /** Ends every connection after some last bytes, and resolves when the callers have ended theirs. */
  endConnections(last?: string): Promise<void>
  /** Refuses connections from now on; the open ones stay. */
  refuse(): Promise<void>
  /** Accepts connections again, on the same port; nothing if it does already. */
  accept(): Promise<void>
  close(): Promise<void>
}

interface Callbacks {
  readonly timeUp: () => void
  readonly timeUpAfterHeaders: () => void
}

/** Listens on any free port in front of the service at `target`. */
export async function faultProxy(target: string, callbacks: Callbacks): Promise<FaultProxy> {
  const requests: RawRequest[] = []
  const sockets = new Set<Socket>()
  const underWay = new Set<Promise<void>>()
  let connections = 0
  let lastConnection = 0

  const onSocket = (socket: Socket): void => {
    const connection = ++connections
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    // Resets are part of the game.
    socket.on('error', () => {})
    socket.on('end', () => socket.end())
    let received = Buffer.alloc(0)
    let lost = false
    socket.on('data', (chunk) => {
      if (lost) return
      lastConnection = connection
      if (received.length === 0 && proxy.behaviour.onFirstByte?.(socket) === true) {
        lost = true
        return
      }
      received = Buffer.concat([received, chunk])
      for (let found = parseRequest(received); found !== undefined; found = parseRequest(received)) {
        received = received.subarray(found.length)
        const request = { connection, ...found.request }
        requests.push(request)
        const serving = serve({ socket, request, forward: () => forward(target, request), ...callbacks })
        underWay.add(serving)
        void serving.finally(() => underWay.delete(serving))
      }
    })
    proxy.behaviour.onConnection?.(socket)
  }
  const serve = async (exchange: Exchange): Promise<void> => {
    if (proxy.behaviour.onRequest !== undefined) await proxy.behaviour.onRequest(exchange)
    else exchange.socket.write(bytesOf(await exchange.forward()))
  }
  let server: Server = createServer({ allowHalfOpen: true }, onSocket)
  const port = await listening(server)
  const closed = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
    })

  const proxy: FaultProxy = {
    url: `http://127.0.0.1:${port}`,
    behaviour: {},
    requests,
    lastConnection: () => lastConnection,
    quiet: async () => void (await Promise.all(underWay)),
    endConnections: async (last = '') => {
      const ended = [...sockets].map((socket) => {
        socket.end(last)
        return new Promise((resolve) => socket.once('close', resolve))
      })
      await Promise.all(ended)
    },
    // Its callback waits for the open connections, which is not what refusing means.
    refuse: async () => void server.close(),
    accept: async () => {
      if (server.listening) return
      server = createServer({ allowHalfOpen: true }, onSocket)
      await listening(server, port)
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      if (server.listening) await closed()
    },
  }
  return proxy
}

/** One request to the service, on a connection of its own. */
function forward(target: string, { line, headers, body }: RawRequest): Promise<ServiceAnswer> {
  const [method, path] = line.split(' ')
  return new Promise((resolve, reject) => {
    const request = sendRequest(
      new URL(path ?? '', target),
      { method: method ?? '', agent: false, headers: Object.fromEntries(headers) },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: [`content-type: ${response.headers['content-type']}`],
            body: Buffer.concat(chunks).toString('utf8'),
          }),
        )
      },
    )
    request.on('error', reject)
    request.end(body)
  })
}

/** The first line and the headers of an answer, without the empty line that ends them. */
export function headOf({ status, headers }: ServiceAnswer, ...more: readonly string[]): string {
  return [`HTTP/1.1 ${status} Some Reason`, ...headers, ...more].join('\r\n')
}

/** A whole answer with its length. */
export function bytesOf(answer: ServiceAnswer): string {
  return `${headOf(answer, `content-length: ${Buffer.byteLength(answer.body)}`)}\r\n\r\n${answer.body}`
}
