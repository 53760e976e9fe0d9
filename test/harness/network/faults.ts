import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { EXPIRED, OTHER_HOST, SELF_SIGNED } from '../../support/certificates.ts'
import { answerText } from '../../support/raw-server.ts'
import type { OutcomeKind } from '../core.ts'
import { type Behaviour, bytesOf, type Exchange, headOf, type ServiceAnswer } from './fault-proxy.ts'

type ConnectionAge = 'fresh' | 'reused'

export type Elsewhere =
  | 'unknown host'
  | 'full backlog'
  | 'no TLS'
  | 'half of TLS'
  | 'old TLS'
  | { readonly certificate: string }

type ErrorCode = 'connection' | 'timeout' | 'invalid_response' | 'server' | 'api' | 'aborted'

const TRANSPORTS = ['global fetch', 'undici'] as const
type TransportName = (typeof TRANSPORTS)[number]

export interface Fault {
  readonly name: string
  /** Row of the outcome table. Two rows if the system's timing decides between them. */
  readonly row: OutcomeKind | readonly [OutcomeKind, OutcomeKind]
  readonly code?: ErrorCode | readonly ErrorCode[]
  /** Number of requests of one attempt that reach the service. */
  readonly reaches: 0 | 1 | 2
  /** The transport with this result. Default: both. */
  readonly transport?: TransportName
  readonly ages?: readonly ConnectionAge[]
  readonly behaviour?: Behaviour
  readonly elsewhere?: Elsewhere
  /** Prepares the proxy before the order is placed. A reused connection is already open. */
  readonly before?: 'refuse' | 'end idle connections' | 'refuse and end idle connections' | 'answer the idle'
  /**
   * When the caller's time for the attempt ends, unless the proxy decides: by default, when the
   * system gives up.
   */
  readonly timeUp?: 'when sending'
  /** The caller aborts at the end of its time. */
  readonly aborts?: true
  /** True if the request reaches the service again after the next response. */
  readonly reachesLater?: true
  /** True if the request has a long body, so that it arrives in several pieces. */
  readonly long?: true
  /** True if the client must open another connection, although one was open. */
  readonly reconnects?: true
}

/** What happens after the service has acted on the request. */
type Act = (exchange: Exchange, answer: ServiceAnswer) => unknown
/** What a fault shows, if it is not the default of its table. */
type Shows = Partial<Fault> & Pick<Fault, 'row'>

const UNREACHABLE = { row: 'unreachable', code: 'connection' } as const
const UNTRUSTED = { row: 'untrusted', code: 'connection' } as const
const CLOSED = { row: 'connection_closed', code: 'connection' } as const
const BROKEN_OFF = { row: 'connection_lost', code: 'connection' } as const
const TIMED_OUT = { row: 'timed_out', code: 'timeout' } as const
const ABORTED = { row: 'aborted', code: 'aborted', aborts: true } as const
const SERVER_ERROR = { row: 'server_error', code: 'server' } as const
const CUT = { row: 'created_unreadable', code: 'invalid_response' } as const
const CREATED = { row: 'created' } as const
const FRESH: readonly ConnectionAge[] = ['fresh']
const REUSED: readonly ConnectionAge[] = ['reused']

/** A fault whose attempts do not reach the service. */
const lost = (shows: Shows, name: string, more: Partial<Fault>): Fault => ({
  ...{ name, reaches: 0 },
  ...shows,
  ...more,
})

/** The request reaches a gateway or a portal, which does not forward it. */
const unserved = (shows: Shows, name: string, act: (socket: Socket, timeUp: () => void) => unknown): Fault =>
  lost(shows, name, { behaviour: { onRequest: ({ socket, timeUp }) => void act(socket, timeUp) } })

const atFirstByte = (act: (socket: Socket) => unknown): Behaviour => ({
  onFirstByte: (socket) => {
    act(socket)
    return true
  },
})

/** The service has acted on the request once. */
const handled = (shows: Shows, name: string, onRequest: Behaviour['onRequest'] & {}): Fault => ({
  ...{ name, reaches: 1, behaviour: { onRequest } },
  ...shows,
})

/** Forwards the request first, so that the service has acted on it. */
const served = (shows: Shows, name: string, act: Act): Fault =>
  handled(shows, name, async (exchange) => void act(exchange, await exchange.forward()))

/** Writes bytes and then resets, without losing the bytes to the reset. */
const resetAfter = (socket: Socket, bytes: string): void =>
  void socket.write(bytes, () => setImmediate(() => socket.resetAndDestroy()))

const half = (text: string): string => text.slice(0, text.length >> 1)
/** A response with its full length and half of its body. */
const halfOf = (answer: ServiceAnswer): string => bytesOf(answer).slice(0, -(answer.body.length >> 1))
const chunkedHead = (answer: ServiceAnswer): string =>
  `${headOf(answer, 'transfer-encoding: chunked')}\r\n\r\n`
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

/** Sends one byte at a time, each after the previous one. */
function drip(socket: Socket, bytes: string, done: () => void = () => {}): void {
  let at = 0
  const next = (): void => {
    if (at === bytes.length) done()
    else if (!socket.destroyed) socket.write(bytes.charAt(at++), () => setImmediate(next))
  }
  next()
}

/** The bytes of a server for a connection without a request in time. */
export const IDLE_TIMEOUT = 'HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'

const CONNECTING: readonly Fault[] = [
  lost(UNREACHABLE, 'the connection is refused', { ages: FRESH, before: 'refuse' }),
  lost(UNREACHABLE, 'the idle connection has ended and the next one is refused', {
    ages: REUSED,
    before: 'refuse and end idle connections',
  }),
  lost(UNREACHABLE, 'the host has no address', { ages: FRESH, elsewhere: 'unknown host' }),
  lost(UNREACHABLE, 'nobody takes the connection until connecting is given up', {
    ages: FRESH,
    elsewhere: 'full backlog',
  }),
  lost(TIMED_OUT, 'nobody takes the connection until the time of the attempt is up', {
    ages: FRESH,
    elsewhere: 'full backlog',
    timeUp: 'when sending',
  }),
  lost(CLOSED, 'the connection is reset as soon as it is made', {
    row: ['connection_closed', 'unreachable'],
    ages: FRESH,
    behaviour: { onConnection: (socket) => void socket.resetAndDestroy() },
  }),
  lost(CLOSED, 'the connection is ended as soon as it is made', {
    ages: FRESH,
    behaviour: { onConnection: (socket) => void socket.end(), ...atFirstByte((socket) => socket.end()) },
  }),
  ...(
    [
      ['is self-signed', SELF_SIGNED],
      ['is for another host', OTHER_HOST],
      ['has expired', EXPIRED],
    ] as const
  ).map(([what, certificate]) =>
    lost(UNTRUSTED, `the TLS certificate ${what}`, { ages: FRESH, elsewhere: { certificate } }),
  ),
  // An established connection can fail with the same code, and fetch reports nothing else.
  lost(BROKEN_OFF, 'the server speaks no TLS', {
    transport: 'global fetch',
    ages: FRESH,
    elsewhere: 'no TLS',
  }),
  lost(UNREACHABLE, 'the server speaks no TLS, as the connector of undici saw', {
    transport: 'undici',
    ages: FRESH,
    elsewhere: 'no TLS',
  }),
  lost(BROKEN_OFF, 'the server speaks no version of TLS that anybody trusts', {
    ages: FRESH,
    elsewhere: 'old TLS',
  }),
  lost(CLOSED, 'the connection ends amid the TLS handshake', { ages: FRESH, elsewhere: 'half of TLS' }),
]

/** Faults in which the request does not reach the service. */
const LOST: readonly Fault[] = [
  lost(CLOSED, 'the connection is reset at the first byte of the request', {
    behaviour: atFirstByte((socket) => socket.resetAndDestroy()),
  }),
  lost(CLOSED, 'the connection is ended at the first byte of the request', {
    behaviour: atFirstByte((socket) => socket.end()),
  }),
  ...(['behind the head', 'amid the body'] as const).flatMap((where) =>
    (['reset', 'end'] as const).map((how) =>
      lost(CLOSED, `the connection is ${how === 'reset' ? 'reset' : 'ended'} inside the request, ${where}`, {
        long: true,
        behaviour: { breaks: { where, how } },
      }),
    ),
  ),
  lost(TIMED_OUT, 'nobody reads the request', {
    ages: FRESH,
    behaviour: { onConnection: (socket) => void socket.pause() },
    timeUp: 'when sending',
  }),
  unserved(TIMED_OUT, 'the request is read and never answered', (_, end) => end()),
  unserved(ABORTED, 'the caller gives up while the request waits for an answer', (_, end) => end()),
  unserved(SERVER_ERROR, 'a gateway answers 503 and does not pass the request on', (socket) =>
    socket.write(answerText(503, '<html>')),
  ),
  unserved(
    { row: 'success_unreadable', code: 'invalid_response' },
    'a portal answers 200 with a page of its own',
    (socket) => socket.write(answerText(200, '<html>')),
  ),
  unserved({ row: 'redirected', code: 'invalid_response' }, 'a portal redirects', (socket) =>
    socket.write(answerText(307, '', ['location: http://127.0.0.1:9/'])),
  ),
  lost({ row: 'request_timeout', code: 'api' }, 'the answer 408 for an idle connection crosses the request', {
    behaviour: atFirstByte((socket) => socket.end(IDLE_TIMEOUT)),
  }),
  unserved(BROKEN_OFF, 'the server answers in another protocol', (socket) =>
    socket.end('220 mail.example ESMTP ready\r\n\r\n'),
  ),
]

/** Faults after the service has created the order, before its status arrives. */
const UNANSWERED: readonly Fault[] = [
  served(CLOSED, 'the order is made and the connection reset', ({ socket }) => socket.resetAndDestroy()),
  served(CLOSED, 'the order is made and the connection ended', ({ socket }) => socket.end()),
  served(TIMED_OUT, 'the order is made and never answered', ({ timeUp }) => timeUp()),
  served(ABORTED, 'the caller gives up when the order is made', ({ timeUp }) => timeUp()),
  served(TIMED_OUT, 'interim answers come and no other one', ({ socket, timeUp }) =>
    socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(100), () => setImmediate(timeUp)),
  ),
  served(TIMED_OUT, 'the headers drip and never end', ({ socket, timeUp }, answer) =>
    drip(socket, half(headOf(answer)), timeUp),
  ),
  served(CLOSED, 'the connection is reset amid the status line', ({ socket }) =>
    resetAfter(socket, 'HTTP/1.1 20'),
  ),
  served(CLOSED, 'the connection is ended amid the headers', ({ socket }, answer) =>
    socket.end(headOf(answer, 'content-le')),
  ),
  served(CLOSED, 'the connection is reset amid the headers', ({ socket }, answer) =>
    resetAfter(socket, headOf(answer, 'content-le')),
  ),
  served(BROKEN_OFF, 'garbage comes before the status line', ({ socket }, answer) =>
    socket.write(`\u0007garbage\r\n${bytesOf(answer)}`),
  ),
  served(BROKEN_OFF, 'the headers are larger than anybody reads', ({ socket }, answer) =>
    socket.write(`${headOf(answer, `x-large: ${'x'.repeat(200_000)}`, 'content-length: 0')}\r\n\r\n`),
  ),
  served(BROKEN_OFF, 'the answer has two lengths that differ', ({ socket }, answer) =>
    socket.write(`${headOf(answer, 'content-length: 1', 'content-length: 2')}\r\n\r\n${answer.body}`),
  ),
  served(SERVER_ERROR, 'the order is made and a gateway answers 502', ({ socket }) =>
    socket.write(answerText(502, '<html>Bad Gateway')),
  ),
  served(CLOSED, 'an answer 100 comes that nobody asked for', ({ socket }, answer) =>
    socket.write(`HTTP/1.1 100 Continue\r\n\r\n${bytesOf(answer)}`),
  ),
  served(CLOSED, 'an answer 101 comes that nobody asked for', ({ socket }) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'),
  ),
  handled(CLOSED, 'the connection is half closed while the order is made', async ({ socket, forward }) => {
    socket.end()
    await forward()
  }),
]

/** Faults in which something arrives that nothing waits for. */
const LATE: readonly Fault[] = (
  [
    ['its time is up', TIMED_OUT],
    ['the caller has given up', ABORTED],
  ] as const
).flatMap(([end, shows]) => [
  handled(shows, `the order is made and answered after ${end}`, async ({ socket, timeUp, forward }) => {
    const answer = await forward()
    await new Promise((resolve) => {
      // When the caller's side of the connection is closed, but not this side.
      socket.prependOnceListener('end', () => socket.write(bytesOf(answer), resolve))
      timeUp()
    })
  }),
  handled(shows, `the request is delivered after ${end}`, async ({ timeUp, closed, forward }) => {
    timeUp()
    await closed()
    await forward()
  }),
  handled(
    { ...shows, reaches: 0, reachesLater: true },
    `the request is delivered after ${end}, and after the next one was answered`,
    ({ timeUp, forward, afterNext }) => {
      afterNext(forward)
      timeUp()
    },
  ),
])

const CUT_OFF: readonly Fault[] = [
  served(CUT, 'the connection is ended amid a body of known length', ({ socket }, answer) =>
    socket.end(halfOf(answer)),
  ),
  served(CUT, 'the connection is reset amid a body of known length', ({ socket }, answer) =>
    resetAfter(socket, halfOf(answer)),
  ),
  served(CUT, 'the connection is ended amid a chunk', ({ socket }, answer) =>
    socket.end(`${chunkedHead(answer)}ff\r\n${half(answer.body)}`),
  ),
  served(CUT, 'the connection is ended between chunks', ({ socket }, answer) =>
    socket.end(chunkedHead(answer) + chunk(half(answer.body))),
  ),
  served(CUT, 'the connection is ended amid a body of unknown length', ({ socket }, answer) =>
    socket.end(`${headOf(answer)}\r\n\r\n${half(answer.body)}`),
  ),
  served(CUT, 'the connection brings a chunk that is none', ({ socket }, answer) =>
    socket.write(`${chunkedHead(answer) + chunk(half(answer.body))}zz\r\n`),
  ),
  served(CUT, 'the connection brings a body that is longer than its length', ({ socket }, answer) =>
    socket.write(`${headOf(answer, `content-length: ${answer.body.length >> 1}`)}\r\n\r\n${answer.body}`),
  ),
  served(
    CUT,
    'the connection brings a body that is shorter than its length and then nothing',
    (exchange, answer) => {
      exchange.timeUpAfterHeaders()
      exchange.socket.write(halfOf(answer))
    },
  ),
  served(CUT, 'the connection brings a body that drips and never ends', (exchange, answer) => {
    exchange.timeUpAfterHeaders()
    exchange.socket.write(chunkedHead(answer))
    drip(exchange.socket, `ff\r\n${half(answer.body)}`)
  }),
  served(CUT, 'the connection brings a body that is no gzip although it says so', ({ socket }, answer) =>
    socket.write(bytesOf({ ...answer, headers: [...answer.headers, 'content-encoding: gzip'] })),
  ),
  served(CUT, 'the connection is ended amid a compressed body', ({ socket }, answer) => {
    const body = gzipSync(answer.body)
    const head = headOf(answer, 'content-encoding: gzip', `content-length: ${body.length}`)
    socket.end(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body.subarray(0, body.length >> 1)]))
  }),
  served(CUT, 'the connection brings an empty body', ({ socket }, answer) =>
    socket.write(bytesOf({ ...answer, body: '' })),
  ),
]

/** Events that look like faults, but the order is returned. */
const HARMLESS: readonly Fault[] = [
  served(CREATED, 'nothing happens', ({ socket }, answer) => socket.write(bytesOf(answer))),
  served(CREATED, 'the answer drips', ({ socket }, answer) => drip(socket, bytesOf(answer))),
  served(CREATED, 'the answer comes in chunks of one byte', ({ socket }, answer) =>
    drip(socket, `${chunkedHead(answer)}${[...answer.body].map(chunk).join('')}0\r\n\r\n`),
  ),
  served(CREATED, 'the answer ends with the connection', ({ socket }, answer) =>
    socket.end(`${headOf(answer)}\r\n\r\n${answer.body}`),
  ),
  served(CREATED, 'the answer is of HTTP/1.0', ({ socket }, answer) =>
    socket.end(bytesOf(answer).replace('HTTP/1.1', 'HTTP/1.0')),
  ),
  served(CREATED, 'an early hint comes first', ({ socket }, answer) =>
    socket.write(`HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n${bytesOf(answer)}`),
  ),
  served(CREATED, 'the answer comes twice', ({ socket }, answer) => socket.write(bytesOf(answer).repeat(2))),
  handled({ ...CREATED, reaches: 2 }, 'the request is delivered twice', async ({ socket, forward }) => {
    await forward()
    socket.write(bytesOf(await forward()))
  }),
  lost({ ...CREATED, reaches: 1 }, 'the idle connection has ended', {
    ages: REUSED,
    before: 'end idle connections',
    reconnects: true,
  }),
  lost({ ...CREATED, reaches: 1 }, 'the idle connection was answered 408 and ended', {
    ages: REUSED,
    before: 'answer the idle',
    reconnects: true,
  }),
]

export const FAULTS: readonly Fault[] = [CONNECTING, LOST, UNANSWERED, LATE, CUT_OFF, HARMLESS].flat()

export interface Cell {
  /** The row of the outcome table that it checks, and the fault that causes it. */
  readonly name: string
  readonly fault: Fault
  readonly age: ConnectionAge
  readonly transport: TransportName
}

export const CELLS: readonly Cell[] = FAULTS.flatMap((fault) =>
  (fault.ages ?? [...FRESH, ...REUSED]).flatMap((age) =>
    (fault.transport === undefined ? TRANSPORTS : [fault.transport]).map((transport) => ({
      name: `${[fault.row].flat().join(' or ')}: ${fault.name} (${age} connection, ${transport})`,
      fault,
      age,
      transport,
    })),
  ),
)
