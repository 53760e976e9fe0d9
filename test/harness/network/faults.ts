import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { OutcomeKind } from '../../../src/orders/outcome.ts'
import { EXPIRED, OTHER_HOST, SELF_SIGNED } from '../../support/certificates.ts'
import { answerText } from '../../support/raw-http.ts'
import { type Behaviour, bytesOf, type Exchange, headOf, type ServiceAnswer } from './fault-proxy.ts'

/** The age of a connection when the fault strikes. */
export type ConnectionAge = 'fresh' | 'reused'

/** The address for the client instead of the proxy's. */
export type Elsewhere =
  | 'unknown host'
  | 'full backlog'
  | 'no TLS'
  | 'half of TLS'
  | 'old TLS'
  | { readonly certificate: string }

type ErrorCode = 'connection' | 'timeout' | 'invalid_response' | 'server' | 'api' | 'aborted'

/** The transports. */
export type TransportName = 'global fetch' | 'undici'

/** One fault and its expected result. */
export interface Fault {
  readonly name: string
  /** Row of the outcome table. Two rows if the system's timing decides between them. */
  readonly row: OutcomeKind | readonly [OutcomeKind, OutcomeKind]
  /** The caller's error code. Undefined if the order is returned. */
  readonly code?: ErrorCode | readonly ErrorCode[]
  /** Number of requests of one attempt that reach the service. */
  readonly reaches: 0 | 1 | 2
  /** The transport with this result. Default: both. */
  readonly transport?: TransportName
  /** Possible ages of the connection. Default: both. */
  readonly ages?: readonly ConnectionAge[]
  /** What the proxy does. */
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

/** Forwards the request first, so that the service has acted on it. */
const served =
  (act: (exchange: Exchange, answer: ServiceAnswer) => unknown): ((exchange: Exchange) => Promise<void>) =>
  async (exchange) =>
    void act(exchange, await exchange.forward())

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

const onFirstByte = (act: (socket: Socket) => void): Behaviour => ({
  onFirstByte: (socket) => {
    act(socket)
    return true
  },
})

/** The bytes of a server for a connection without a request in time. */
const IDLE_TIMEOUT = 'HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'

/** Faults before anything is sent. */
const CONNECTING: readonly Fault[] = [
  {
    name: 'the connection is refused',
    row: 'unreachable',
    code: 'connection',
    reaches: 0,
    ages: ['fresh'],
    before: 'refuse',
  },
  {
    name: 'the idle connection has ended and the next one is refused',
    row: 'unreachable',
    code: 'connection',
    reaches: 0,
    ages: ['reused'],
    before: 'refuse and end idle connections',
  },
  {
    name: 'the host has no address',
    row: 'unreachable',
    code: 'connection',
    reaches: 0,
    ages: ['fresh'],
    elsewhere: 'unknown host',
  },
  {
    name: 'nobody takes the connection until connecting is given up',
    row: 'unreachable',
    code: 'connection',
    reaches: 0,
    ages: ['fresh'],
    elsewhere: 'full backlog',
  },
  {
    name: 'nobody takes the connection until the time of the attempt is up',
    row: 'timed_out',
    code: 'timeout',
    reaches: 0,
    ages: ['fresh'],
    elsewhere: 'full backlog',
    timeUp: 'when sending',
  },
  {
    name: 'the connection is reset as soon as it is made',
    row: ['connection_closed', 'unreachable'],
    code: 'connection',
    reaches: 0,
    ages: ['fresh'],
    behaviour: { onConnection: (socket) => void socket.resetAndDestroy() },
  },
  {
    name: 'the connection is ended as soon as it is made',
    row: 'connection_closed',
    code: 'connection',
    reaches: 0,
    ages: ['fresh'],
    behaviour: { onConnection: (socket) => void socket.end(), ...onFirstByte((socket) => socket.end()) },
  },
  ...(
    [
      ['is self-signed', SELF_SIGNED],
      ['is for another host', OTHER_HOST],
      ['has expired', EXPIRED],
    ] as const
  ).map(
    ([what, certificate]): Fault => ({
      name: `the TLS certificate ${what}`,
      row: 'untrusted',
      code: 'connection',
      reaches: 0,
      ages: ['fresh'],
      elsewhere: { certificate },
    }),
  ),
]

/** Faults in which the request does not reach the service. */
const LOST: readonly Fault[] = [
  {
    name: 'the connection is reset at the first byte of the request',
    row: 'connection_closed',
    code: 'connection',
    reaches: 0,
    behaviour: onFirstByte((socket) => socket.resetAndDestroy()),
  },
  {
    name: 'the connection is ended at the first byte of the request',
    row: 'connection_closed',
    code: 'connection',
    reaches: 0,
    behaviour: onFirstByte((socket) => socket.end()),
  },
  ...(['behind the head', 'amid the body'] as const).flatMap((where) =>
    (['reset', 'end'] as const).map(
      (how): Fault => ({
        name: `the connection is ${how === 'reset' ? 'reset' : 'ended'} inside the request, ${where}`,
        row: 'connection_closed',
        code: 'connection',
        reaches: 0,
        long: true,
        behaviour: { breaks: { where, how } },
      }),
    ),
  ),
  {
    name: 'nobody reads the request',
    row: 'timed_out',
    code: 'timeout',
    reaches: 0,
    ages: ['fresh'],
    behaviour: { onConnection: (socket) => void socket.pause() },
    timeUp: 'when sending',
  },
  {
    name: 'the request is read and never answered',
    row: 'timed_out',
    code: 'timeout',
    reaches: 0,
    behaviour: { onRequest: ({ timeUp }) => timeUp() },
  },
  {
    name: 'the caller gives up while the request waits for an answer',
    row: 'aborted',
    code: 'aborted',
    reaches: 0,
    behaviour: { onRequest: ({ timeUp }) => timeUp() },
    aborts: true,
  },
  {
    name: 'a gateway answers 503 and does not pass the request on',
    row: 'server_error',
    code: 'server',
    reaches: 0,
    behaviour: { onRequest: ({ socket }) => void socket.write(answerText(503, '<html>')) },
  },
  {
    name: 'a portal answers 200 with a page of its own',
    row: 'success_unreadable',
    code: 'invalid_response',
    reaches: 0,
    behaviour: { onRequest: ({ socket }) => void socket.write(answerText(200, '<html>')) },
  },
  {
    name: 'a portal redirects',
    row: 'redirected',
    code: 'invalid_response',
    reaches: 0,
    behaviour: {
      onRequest: ({ socket }) => void socket.write(answerText(307, '', ['location: http://127.0.0.1:9/'])),
    },
  },
  {
    name: 'the answer 408 for an idle connection crosses the request',
    row: 'request_timeout',
    code: 'api',
    reaches: 0,
    behaviour: onFirstByte((socket) => socket.end(IDLE_TIMEOUT)),
  },
  {
    name: 'the server answers in another protocol',
    row: 'connection_lost',
    code: 'connection',
    reaches: 0,
    behaviour: { onRequest: ({ socket }) => void socket.end('220 mail.example ESMTP ready\r\n\r\n') },
  },
]

/** Faults after the service has created the order, before its status arrives. */
const UNANSWERED: readonly Fault[] = [
  {
    name: 'the order is made and the connection reset',
    row: 'connection_closed',
    code: 'connection',
    reaches: 1,
    behaviour: { onRequest: served(({ socket }) => socket.resetAndDestroy()) },
  },
  {
    name: 'the order is made and the connection ended',
    row: 'connection_closed',
    code: 'connection',
    reaches: 1,
    behaviour: { onRequest: served(({ socket }) => socket.end()) },
  },
  {
    name: 'the connection is half closed while the order is made',
    row: 'connection_closed',
    code: 'connection',
    reaches: 1,
    behaviour: {
      onRequest: async ({ socket, forward }) => {
        socket.end()
        await forward()
      },
    },
  },
  {
    name: 'the order is made and never answered',
    row: 'timed_out',
    code: 'timeout',
    reaches: 1,
    behaviour: { onRequest: served(({ timeUp }) => timeUp()) },
  },
  {
    name: 'the caller gives up when the order is made',
    row: 'aborted',
    code: 'aborted',
    reaches: 1,
    behaviour: { onRequest: served(({ timeUp }) => timeUp()) },
    aborts: true,
  },
  {
    name: 'interim answers come and no other one',
    row: 'timed_out',
    code: 'timeout',
    reaches: 1,
    behaviour: {
      onRequest: served(({ socket, timeUp }) =>
        socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(100), () => setImmediate(timeUp)),
      ),
    },
  },
  {
    name: 'the headers drip and never end',
    row: 'timed_out',
    code: 'timeout',
    reaches: 1,
    behaviour: {
      onRequest: served(({ socket, timeUp }, answer) => drip(socket, half(headOf(answer)), timeUp)),
    },
  },
  {
    name: 'the connection is reset amid the status line',
    row: 'connection_closed',
    code: 'connection',
    reaches: 1,
    behaviour: { onRequest: served(({ socket }) => resetAfter(socket, 'HTTP/1.1 20')) },
  },
  {
    name: 'the connection is ended amid the headers',
    row: 'connection_closed',
    code: 'connection',
    reaches: 1,
    behaviour: { onRequest: served(({ socket }, answer) => socket.end(headOf(answer, 'content-le'))) },
  },
  {
    name: 'the connection is reset amid the headers',
    row: 'connection_closed',
    code: 'connection',
    reaches: 1,
    behaviour: {
      onRequest: served(({ socket }, answer) => resetAfter(socket, headOf(answer, 'content-le'))),
    },
  },
  {
    name: 'garbage comes before the status line',
    row: 'connection_lost',
    code: 'connection',
    reaches: 1,
    behaviour: {
      onRequest: served(({ socket }, answer) => socket.write(`\u0007garbage\r\n${bytesOf(answer)}`)),
    },
  },
  {
    name: 'the headers are larger than anybody reads',
    row: 'connection_lost',
    code: 'connection',
    reaches: 1,
    behaviour: {
      onRequest: served(({ socket }, answer) =>
        socket.write(`${headOf(answer, `x-large: ${'x'.repeat(200_000)}`, 'content-length: 0')}\r\n\r\n`),
      ),
    },
  },
  {
    name: 'the answer has two lengths that differ',
    row: 'connection_lost',
    code: 'connection',
    reaches: 1,
    behaviour: {
      onRequest: served(({ socket }, answer) =>
        socket.write(`${headOf(answer, 'content-length: 1', 'content-length: 2')}\r\n\r\n${answer.body}`),
      ),
    },
  },
  {
    name: 'the order is made and a gateway answers 502',
    row: 'server_error',
    code: 'server',
    reaches: 1,
    behaviour: { onRequest: served(({ socket }) => socket.write(answerText(502, '<html>Bad Gateway'))) },
  },
]

/** Faults in which something arrives that nothing waits for. */
const LATE: readonly Fault[] = (
  [
    ['its time is up', { row: 'timed_out', code: 'timeout' }],
    ['the caller has given up', { row: 'aborted', code: 'aborted', aborts: true }],
  ] as const
).flatMap(([end, given]): readonly Fault[] => {
  return [
    {
      ...given,
      name: `the order is made and answered after ${end}`,
      reaches: 1,
      behaviour: {
        onRequest: async ({ socket, timeUp, forward }) => {
          const answer = await forward()
          await new Promise((resolve) => {
            // When the caller's side of the connection is closed, but not this side.
            socket.prependOnceListener('end', () => socket.write(bytesOf(answer), resolve))
            timeUp()
          })
        },
      },
    },
    {
      ...given,
      name: `the request is delivered after ${end}`,
      reaches: 1,
      behaviour: {
        onRequest: async ({ timeUp, closed, forward }) => {
          timeUp()
          await closed()
          await forward()
        },
      },
    },
    {
      ...given,
      name: `the request is delivered after ${end}, and after the next one was answered`,
      reaches: 0,
      reachesLater: true,
      behaviour: {
        onRequest: ({ timeUp, forward, afterNext }) => {
          afterNext(forward)
          timeUp()
        },
      },
    },
  ]
})

/** Faults of a 201 response. */
const CUT: readonly Fault[] = (
  [
    ['is ended amid a body of known length', ({ socket }, answer) => socket.end(halfOf(answer))],
    ['is reset amid a body of known length', ({ socket }, answer) => resetAfter(socket, halfOf(answer))],
    [
      'is ended amid a chunk',
      ({ socket }, answer) => socket.end(`${chunkedHead(answer)}ff\r\n${half(answer.body)}`),
    ],
    [
      'is ended between chunks',
      ({ socket }, answer) => socket.end(chunkedHead(answer) + chunk(half(answer.body))),
    ],
    [
      'is ended amid a body of unknown length',
      ({ socket }, answer) => socket.end(`${headOf(answer)}\r\n\r\n${half(answer.body)}`),
    ],
    [
      'brings a chunk that is none',
      ({ socket }, answer) => socket.write(`${chunkedHead(answer) + chunk(half(answer.body))}zz\r\n`),
    ],
    [
      'brings a body that is longer than its length',
      ({ socket }, answer) =>
        socket.write(`${headOf(answer, `content-length: ${answer.body.length >> 1}`)}\r\n\r\n${answer.body}`),
    ],
    [
      'brings a body that is shorter than its length and then nothing',
      ({ socket, timeUpAfterHeaders }, answer) => {
        timeUpAfterHeaders()
        socket.write(halfOf(answer))
      },
    ],
    [
      'brings a body that drips and never ends',
      ({ socket, timeUpAfterHeaders }, answer) => {
        timeUpAfterHeaders()
        socket.write(chunkedHead(answer))
        drip(socket, `ff\r\n${half(answer.body)}`)
      },
    ],
    [
      'brings a body that is no gzip although it says so',
      ({ socket }, answer) =>
        socket.write(bytesOf({ ...answer, headers: [...answer.headers, 'content-encoding: gzip'] })),
    ],
    [
      'is ended amid a compressed body',
      ({ socket }, answer) => {
        const body = gzipSync(answer.body)
        const head = headOf(answer, 'content-encoding: gzip', `content-length: ${body.length}`)
        socket.end(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body.subarray(0, body.length >> 1)]))
      },
    ],
    ['brings an empty body', ({ socket }, answer) => socket.write(bytesOf({ ...answer, body: '' }))],
  ] as const satisfies readonly (readonly [string, (exchange: Exchange, answer: ServiceAnswer) => unknown])[]
).map(([what, act]) => ({
  name: `the connection ${what}`,
  row: 'created_unreadable',
  code: 'invalid_response',
  reaches: 1,
  behaviour: { onRequest: served(act) },
}))

/** Events that look like faults, but the order is returned. */
const HARMLESS: readonly Fault[] = (
  [
    ['nothing happens', ({ socket }, answer) => socket.write(bytesOf(answer))],
    ['the answer drips', ({ socket }, answer) => drip(socket, bytesOf(answer))],
    [
      'the answer comes in chunks of one byte',
      ({ socket }, answer) =>
        drip(socket, `${chunkedHead(answer)}${[...answer.body].map(chunk).join('')}0\r\n\r\n`),
    ],
    [
      'the answer ends with the connection',
      ({ socket }, answer) => socket.end(`${headOf(answer)}\r\n\r\n${answer.body}`),
    ],
    [
      'the answer is of HTTP/1.0',
      ({ socket }, answer) => socket.end(bytesOf(answer).replace('HTTP/1.1', 'HTTP/1.0')),
    ],
    [
      'an early hint comes first',
      ({ socket }, answer) =>
        socket.write(`HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n${bytesOf(answer)}`),
    ],
    ['the answer comes twice', ({ socket }, answer) => socket.write(bytesOf(answer).repeat(2))],
  ] as const satisfies readonly (readonly [string, (exchange: Exchange, answer: ServiceAnswer) => unknown])[]
).map(([name, act]) => ({ name, row: 'created', reaches: 1, behaviour: { onRequest: served(act) } }))

/** Faults that need more than one response. */
const OTHERS: readonly Fault[] = [
  {
    name: 'an answer 100 comes that nobody asked for',
    row: 'connection_closed',
    code: 'connection',
    reaches: 1,
    behaviour: {
      onRequest: served(({ socket }, answer) =>
        socket.write(`HTTP/1.1 100 Continue\r\n\r\n${bytesOf(answer)}`),
      ),
    },
  },
  {
    name: 'an answer 101 comes that nobody asked for',
    row: 'connection_closed',
    code: 'connection',
    reaches: 1,
    behaviour: {
      onRequest: served(({ socket }) =>
        socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'),
      ),
    },
  },
  {
    name: 'the request is delivered twice',
    row: 'created',
    reaches: 2,
    behaviour: {
      onRequest: async ({ socket, forward }) => {
        await forward()
        socket.write(bytesOf(await forward()))
      },
    },
  },
  {
    name: 'the idle connection has ended',
    row: 'created',
    reaches: 1,
    ages: ['reused'],
    before: 'end idle connections',
    reconnects: true,
  },
  {
    name: 'the idle connection was answered 408 and ended',
    row: 'created',
    reaches: 1,
    ages: ['reused'],
    before: 'answer the idle',
    reconnects: true,
  },
  {
    // An established connection can fail with the same code, and fetch reports nothing else.
    name: 'the server speaks no TLS',
    row: 'connection_lost',
    code: 'connection',
    reaches: 0,
    transport: 'global fetch',
    ages: ['fresh'],
    elsewhere: 'no TLS',
  },
  {
    name: 'the server speaks no TLS, as the connector of undici saw',
    row: 'unreachable',
    code: 'connection',
    reaches: 0,
    transport: 'undici',
    ages: ['fresh'],
    elsewhere: 'no TLS',
  },
  {
    name: 'the server speaks no version of TLS that anybody trusts',
    row: 'connection_lost',
    code: 'connection',
    reaches: 0,
    ages: ['fresh'],
    elsewhere: 'old TLS',
  },
  {
    name: 'the connection ends amid the TLS handshake',
    row: 'connection_closed',
    code: 'connection',
    reaches: 0,
    ages: ['fresh'],
    elsewhere: 'half of TLS',
  },
]

/** All faults. */
export const FAULTS: readonly Fault[] = [
  ...CONNECTING,
  ...LOST,
  ...UNANSWERED,
  ...LATE,
  ...CUT,
  ...HARMLESS,
  ...OTHERS,
]
