import { request as sendRequest } from 'node:http'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { listening, parseRequest, type RawRequest } from '../../support/raw-http.ts'

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
  /** Resolves when the connection is closed. */
  closed(): Promise<void>
  /** Does something when the next other request has been answered. */
  afterNext(act: () => Promise<unknown>): void
}

/** A place inside a request: right behind its headers, or amid its body. */
export type Inside = 'behind the head' | 'amid the body'

/** What happens between a caller and the service. Reacts to events only: nothing here waits for time to pass. */
export interface Behaviour {
  /** A connection has just been accepted. */
  readonly onConnection?: (socket: Socket) => void
  /** The first byte of a request has arrived. True if nothing more happens to it. */
  readonly onFirstByte?: (socket: Socket) => boolean
  /** How far the first request comes, and what then becomes of its connection, and of that to the service. */
  readonly breaks?: { readonly where: Inside; readonly how: 'reset' | 'end' }
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
  /** How many requests were broken off in their midst. */
  readonly partial: () => number
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
  /** What waits until another request has been answered. */
  const postponed: (() => Promise<unknown>)[] = []
  let connections = 0
  let lastConnection = 0
  let partial = 0

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
      const { breaks } = proxy.behaviour
      if (breaks !== undefined) {
        const part = partOf(received, breaks.where)
        if (part === undefined) return
        // The rest of it is read, and goes nowhere.
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
  const closed = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
    })

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

const closedOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    if (socket.closed) resolve()
    else socket.once('close', () => resolve())
  })

/** A request up to some place inside of it; nothing as long as it has not come so far. */
function partOf(received: Buffer, where: Inside): Buffer | undefined {
  const head = received.indexOf('\r\n\r\n') + 4
  if (head < 4) return undefined
  if (where === 'behind the head') return received.subarray(0, head)
  const length = Number(/content-length: (\d+)/i.exec(received.subarray(0, head).toString('latin1'))?.[1])
  const end = head + (length >> 1)
  return received.length < end ? undefined : received.subarray(0, end)
}

/** Hands the service a part of a request, and breaks both connections off when the service has it. */
async function breakOff(target: string, socket: Socket, part: Buffer, how: 'reset' | 'end'): Promise<void> {
  const { hostname, port } = new URL(target)
  const service = connect(Number(port), hostname)
  service.on('error', () => {})
  // What the service answers to half of a request is of no interest.
  service.resume()
  await new Promise((resolve) => service.write(part, resolve))
  for (const each of [service, socket])
    if (how === 'reset') each.resetAndDestroy()
    else each.end()
  await closedOf(service)
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
