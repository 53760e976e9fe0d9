import { request as sendRequest } from 'node:http'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { listening, parseRequest, type RawRequest } from '../../support/raw-server.ts'

export interface ServiceAnswer {
  readonly status: number
  readonly headers: readonly string[]
  readonly body: string
}

export interface Exchange {
  readonly socket: Socket
  readonly request: RawRequest
  /** Forwards the request to the service, and returns the response. May be called again. */
  forward(): Promise<ServiceAnswer>
  timeUp(): void
  /** Ends the caller's time as soon as the caller has read the headers of a response. */
  timeUpAfterHeaders(): void
  closed(): Promise<void>
  /** Runs something after the next other response. */
  afterNext(act: () => Promise<unknown>): void
}

export type Inside = 'behind the head' | 'amid the body'

/** Actions between a caller and the service. They react only to events and never to time. */
export interface Behaviour {
  readonly onConnection?: (socket: Socket) => void
  /** The first byte of a request arrived. True means that nothing more happens to it. */
  readonly onFirstByte?: (socket: Socket) => boolean
  /** How much of the first request is forwarded, and what happens then to its two connections. */
  readonly breaks?: { readonly where: Inside; readonly how: 'reset' | 'end' }
  /** By default, the request is forwarded and gets its response. */
  readonly onRequest?: (exchange: Exchange) => Promise<void> | void
}

/** A TCP proxy with faults in front of one service. */
export interface FaultProxy {
  readonly url: string
  /** The fault for connections and requests from now on. Undefined means none. */
  behaviour: Behaviour
  readonly requests: readonly RawRequest[]
  readonly partial: () => number
  /** Number of the connection with the newest byte, from 1. */
  readonly lastConnection: () => number
  /** Resolves when no data is in transit between the proxy and the service. */
  quiet(): Promise<void>
  /** Ends every connection after some last bytes. Resolves when the callers have ended theirs. */
  endConnections(last?: string): Promise<void>
  /** Refuses new connections. Open ones stay open. */
  refuse(): Promise<void>
  /** Accepts connections again on the same port. Does nothing if it already does. */
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
  /** Actions that wait for the next other response. */
  const postponed: (() => Promise<unknown>)[] = []
  let connections = 0
  let lastConnection = 0
  let partial = 0

  const onSocket = (socket: Socket): void => {
    const connection = ++connections
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    // Ignore connection resets, which are expected.
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
      const { breaks } = proxy.behaviour
      if (breaks !== undefined) {
        const part = partOf(received, breaks.where)
        if (part === undefined) return
        lost = true
        partial++
        track(breakOff(target, socket, part, breaks.how))
        return
      }
      for (let found = parseRequest(received); found !== undefined; found = parseRequest(received)) {
        received = received.subarray(found.length)
        const request = { connection, ...found.request }
        requests.push(request)
        track(
          serve({
            socket,
            request,
            forward: () => forward(target, request),
            closed: () => closedOf(socket),
            afterNext: (act) => postponed.push(act),
            ...callbacks,
          }),
        )
      }
    })
    proxy.behaviour.onConnection?.(socket)
  }
  const track = (work: Promise<void>): void => {
    underWay.add(work)
    void work.finally(() => underWay.delete(work))
  }
  const serve = async (exchange: Exchange): Promise<void> => {
    const waiting = postponed.splice(0)
    if (proxy.behaviour.onRequest !== undefined) await proxy.behaviour.onRequest(exchange)
    else exchange.socket.write(bytesOf(await exchange.forward()))
    for (const act of waiting) await act()
  }
  let server: Server = createServer({ allowHalfOpen: true }, onSocket)
  const port = await listening(server)

  const proxy: FaultProxy = {
    url: `http://127.0.0.1:${port}`,
    behaviour: {},
    requests,
    partial: () => partial,
    lastConnection: () => lastConnection,
    quiet: async () => void (await Promise.all(underWay)),
    endConnections: async (last = '') => {
      const ended = [...sockets].map((socket) => {
        socket.end(last)
        return new Promise((resolve) => socket.once('close', resolve))
      })
      await Promise.all(ended)
    },
    // Do not wait for the callback, which waits until the open connections end.
    refuse: async () => void server.close(),
    accept: async () => {
      if (server.listening) return
      server = createServer({ allowHalfOpen: true }, onSocket)
      await listening(server, port)
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    },
  }
  return proxy
}

const closedOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    if (socket.closed) resolve()
    else socket.once('close', () => resolve())
  })

/** A request up to a place within it. Undefined until that place has arrived. */
function partOf(received: Buffer, where: Inside): Buffer | undefined {
  const head = received.indexOf('\r\n\r\n') + 4
  if (head < 4) return undefined
  if (where === 'behind the head') return received.subarray(0, head)
  const length = Number(/content-length: (\d+)/i.exec(received.subarray(0, head).toString('latin1'))?.[1])
  const end = head + (length >> 1)
  return received.length < end ? undefined : received.subarray(0, end)
}

/**
 * Sends a part of a request to the service, and cuts both connections when the service has received
 * it.
 */
async function breakOff(target: string, socket: Socket, part: Buffer, how: 'reset' | 'end'): Promise<void> {
  const { hostname, port } = new URL(target)
  const service = connect(Number(port), hostname)
  service.on('error', () => {})
  // Ignore the service's response to half a request.
  service.resume()
  await new Promise((resolve) => service.write(part, resolve))
  for (const each of [service, socket])
    if (how === 'reset') each.resetAndDestroy()
    else each.end()
  await closedOf(service)
}

/** Sends one request to the service on a separate connection. */
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

/** The status line and the headers of a response, without the final empty line. */
export function headOf({ status, headers }: ServiceAnswer, ...more: readonly string[]): string {
  return [`HTTP/1.1 ${status} Some Reason`, ...headers, ...more].join('\r\n')
}

export function bytesOf(answer: ServiceAnswer): string {
  return `${headOf(answer, `content-length: ${Buffer.byteLength(answer.body)}`)}\r\n\r\n${answer.body}`
}
