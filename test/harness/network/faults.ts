import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { EXPIRED, OTHER_HOST, SELF_SIGNED } from '../../support/certificates.ts'
import { answerText } from '../../support/raw-server.ts'
import type { OutcomeKind } from '../core.ts'
import { type Behaviour, bytesOf, type Exchange, headOf, type ServiceAnswer } from './fault-proxy.ts'

export type ConnectionAge = 'fresh' | 'reused'

export type Elsewhere =
  | 'unknown host'
  | 'full backlog'
  | 'no TLS'
  | 'half of TLS'
  | 'old TLS'
  | { readonly certificate: string }

type ErrorCode = 'connection' | 'timeout' | 'invalid_response' | 'server' | 'api' | 'aborted'

export type TransportName = 'global fetch' | 'undici'

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

/** Forwards the request first, so that the service has acted on it. */
const served = (act: Act): Behaviour => ({
  onRequest: async (exchange) => void act(exchange, await exchange.forward()),
})

const unserved = (act: (socket: Socket, timeUp: () => void) => unknown): Behaviour => ({
  onRequest: ({ socket, timeUp }) => void act(socket, timeUp),
})

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
export const IDLE_TIMEOUT = 'HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'

const UNREACHABLE = { row: 'unreachable', code: 'connection' } as const
const CLOSED = { row: 'connection_closed', code: 'connection' } as const
const BROKEN_OFF = { row: 'connection_lost', code: 'connection' } as const
const TIMED_OUT = { row: 'timed_out', code: 'timeout' } as const
const ABORTED = { row: 'aborted', code: 'aborted', aborts: true } as const
const FRESH: readonly ConnectionAge[] = ['fresh']
const REUSED: readonly ConnectionAge[] = ['reused']

/** Faults whose attempts reach the service that often. */
const reaching = (reaches: Fault['reaches'], faults: readonly Omit<Fault, 'reaches'>[]): Fault[] =>
  faults.map((fault) => ({ ...fault, reaches }))

const CONNECTING = reaching(0, [
  { ...UNREACHABLE, name: 'the connection is refused', ages: FRESH, before: 'refuse' },
  {
    ...UNREACHABLE,
    name: 'the idle connection has ended and the next one is refused',
    ages: REUSED,
    before: 'refuse and end idle connections',
  },
  { ...UNREACHABLE, name: 'the host has no address', ages: FRESH, elsewhere: 'unknown host' },
  {
    ...UNREACHABLE,
    name: 'nobody takes the connection until connecting is given up',
    ages: FRESH,
    elsewhere: 'full backlog',
  },
  {
    ...TIMED_OUT,
    name: 'nobody takes the connection until the time of the attempt is up',
    ages: FRESH,
    elsewhere: 'full backlog',
    timeUp: 'when sending',
  },
  {
    name: 'the connection is reset as soon as it is made',
    row: ['connection_closed', 'unreachable'],
    code: 'connection',
    ages: FRESH,
    behaviour: { onConnection: (socket) => void socket.resetAndDestroy() },
  },
  {
    ...CLOSED,
    name: 'the connection is ended as soon as it is made',
    ages: FRESH,
    behaviour: { onConnection: (socket) => void socket.end(), ...onFirstByte((socket) => socket.end()) },
  },
  ...(
    [
      ['is self-signed', SELF_SIGNED],
      ['is for another host', OTHER_HOST],
      ['has expired', EXPIRED],
    ] as const
  ).map(([what, certificate]) => ({
    name: `the TLS certificate ${what}`,
    row: 'untrusted' as const,
    code: 'connection' as const,
    ages: FRESH,
    elsewhere: { certificate },
  })),
])

/** Faults in which the request does not reach the service. */
const LOST = reaching(0, [
  {
    ...CLOSED,
    name: 'the connection is reset at the first byte of the request',
    behaviour: onFirstByte((socket) => socket.resetAndDestroy()),
  },
  {
    ...CLOSED,
    name: 'the connection is ended at the first byte of the request',
    behaviour: onFirstByte((socket) => socket.end()),
  },
  ...(['behind the head', 'amid the body'] as const).flatMap((where) =>
    (['reset', 'end'] as const).map((how) => ({
      ...CLOSED,
      name: `the connection is ${how === 'reset' ? 'reset' : 'ended'} inside the request, ${where}`,
      long: true as const,
      behaviour: { breaks: { where, how } },
    })),
  ),
  {
    ...TIMED_OUT,
    name: 'nobody reads the request',
    ages: FRESH,
    behaviour: { onConnection: (socket) => void socket.pause() },
    timeUp: 'when sending',
  },
  { ...TIMED_OUT, name: 'the request is read and never answered', behaviour: unserved((_, end) => end()) },
  {
    ...ABORTED,
    name: 'the caller gives up while the request waits for an answer',
    behaviour: unserved((_, end) => end()),
  },
  {
    name: 'a gateway answers 503 and does not pass the request on',
    row: 'server_error',
    code: 'server',
    behaviour: unserved((socket) => socket.write(answerText(503, '<html>'))),
  },
  {
    name: 'a portal answers 200 with a page of its own',
    row: 'success_unreadable',
    code: 'invalid_response',
    behaviour: unserved((socket) => socket.write(answerText(200, '<html>'))),
  },
  {
    name: 'a portal redirects',
    row: 'redirected',
    code: 'invalid_response',
    behaviour: unserved((socket) => socket.write(answerText(307, '', ['location: http://127.0.0.1:9/']))),
  },
  {
    name: 'the answer 408 for an idle connection crosses the request',
    row: 'request_timeout',
    code: 'api',
    behaviour: onFirstByte((socket) => socket.end(IDLE_TIMEOUT)),
  },
  {
    ...BROKEN_OFF,
    name: 'the server answers in another protocol',
    behaviour: unserved((socket) => socket.end('220 mail.example ESMTP ready\r\n\r\n')),
  },
])

/** Faults after the service has created the order, before its status arrives. */
const UNANSWERED: readonly Fault[] = [
  ...(
    [
      ['the order is made and the connection reset', CLOSED, ({ socket }) => socket.resetAndDestroy()],
      ['the order is made and the connection ended', CLOSED, ({ socket }) => socket.end()],
      ['the order is made and never answered', TIMED_OUT, ({ timeUp }) => timeUp()],
      ['the caller gives up when the order is made', ABORTED, ({ timeUp }) => timeUp()],
      [
        'interim answers come and no other one',
        TIMED_OUT,
        ({ socket, timeUp }) =>
          socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(100), () => setImmediate(timeUp)),
      ],
      [
        'the headers drip and never end',
        TIMED_OUT,
        ({ socket, timeUp }, answer) => drip(socket, half(headOf(answer)), timeUp),
      ],
      [
        'the connection is reset amid the status line',
        CLOSED,
        ({ socket }) => resetAfter(socket, 'HTTP/1.1 20'),
      ],
      [
        'the connection is ended amid the headers',
        CLOSED,
        ({ socket }, answer) => socket.end(headOf(answer, 'content-le')),
      ],
      [
        'the connection is reset amid the headers',
        CLOSED,
        ({ socket }, answer) => resetAfter(socket, headOf(answer, 'content-le')),
      ],
      [
        'garbage comes before the status line',
        BROKEN_OFF,
        ({ socket }, answer) => socket.write(`\u0007garbage\r\n${bytesOf(answer)}`),
      ],
      [
        'the headers are larger than anybody reads',
        BROKEN_OFF,
        ({ socket }, answer) =>
          socket.write(`${headOf(answer, `x-large: ${'x'.repeat(200_000)}`, 'content-length: 0')}\r\n\r\n`),
      ],
      [
        'the answer has two lengths that differ',
        BROKEN_OFF,
        ({ socket }, answer) =>
          socket.write(`${headOf(answer, 'content-length: 1', 'content-length: 2')}\r\n\r\n${answer.body}`),
      ],
      [
        'the order is made and a gateway answers 502',
        { row: 'server_error', code: 'server' },
        ({ socket }) => socket.write(answerText(502, '<html>Bad Gateway')),
      ],
      [
        'an answer 100 comes that nobody asked for',
        CLOSED,
        ({ socket }, answer) => socket.write(`HTTP/1.1 100 Continue\r\n\r\n${bytesOf(answer)}`),
      ],
      [
        'an answer 101 comes that nobody asked for',
        CLOSED,
        ({ socket }) =>
          socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'),
      ],
    ] as const satisfies readonly (readonly [string, Pick<Fault, 'row' | 'code' | 'aborts'>, Act])[]
  ).map(([name, end, act]): Fault => ({ ...end, name, reaches: 1, behaviour: served(act) })),
  {
    ...CLOSED,
    name: 'the connection is half closed while the order is made',
    reaches: 1,
    behaviour: {
      onRequest: async ({ socket, forward }) => {
        socket.end()
        await forward()
      },
    },
  },
]

/** Faults in which something arrives that nothing waits for. */
const LATE: readonly Fault[] = (
  [
    ['its time is up', TIMED_OUT],
    ['the caller has given up', ABORTED],
  ] as const
).flatMap(([end, given]): readonly Fault[] => [
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
])

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
  ] as const satisfies readonly (readonly [string, Act])[]
).map(([what, act]) => ({
  name: `the connection ${what}`,
  row: 'created_unreadable',
  code: 'invalid_response',
  reaches: 1,
  behaviour: served(act),
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
  ] as const satisfies readonly (readonly [string, Act])[]
).map(([name, act]) => ({ name, row: 'created', reaches: 1, behaviour: served(act) }))

/** Faults of which no other table has the shape. */
const OTHERS: readonly Fault[] = [
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
  ...(
    [
      ['the idle connection has ended', 'end idle connections'],
      ['the idle connection was answered 408 and ended', 'answer the idle'],
    ] as const
  ).map(
    ([name, before]): Fault => ({ name, row: 'created', reaches: 1, ages: REUSED, before, reconnects: true }),
  ),
  ...reaching(0, [
    {
      // An established connection can fail with the same code, and fetch reports nothing else.
      ...BROKEN_OFF,
      name: 'the server speaks no TLS',
      transport: 'global fetch',
      ages: FRESH,
      elsewhere: 'no TLS',
    },
    {
      ...UNREACHABLE,
      name: 'the server speaks no TLS, as the connector of undici saw',
      transport: 'undici',
      ages: FRESH,
      elsewhere: 'no TLS',
    },
    {
      ...BROKEN_OFF,
      name: 'the server speaks no version of TLS that anybody trusts',
      ages: FRESH,
      elsewhere: 'old TLS',
    },
    {
      ...CLOSED,
      name: 'the connection ends amid the TLS handshake',
      ages: FRESH,
      elsewhere: 'half of TLS',
    },
  ]),
]

export const FAULTS: readonly Fault[] = [
  ...CONNECTING,
  ...LOST,
  ...UNANSWERED,
  ...LATE,
  ...CUT,
  ...HARMLESS,
  ...OTHERS,
]
