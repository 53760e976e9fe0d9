import { describe, expect, test } from 'vitest'
import { type Logger, type LogLevel, Reporter } from '../../src/hooks.ts'
import { throwing } from '../support/calls.ts'
import { unhandledBy } from './unhandled.ts'

const request = {
  callId: 'c1',
  operation: 'orders.create',
  method: 'POST',
  path: '/v1/orders',
  attempt: 1,
  idempotencyKey: 'k1',
}
const response = { ...request, outcome: 'answer', status: 201, durationMs: 5 } as const
const retry = { ...request, reason: 'backoff', delayMs: 100 } as const
const { attempt: _attempt, ...call } = request
const settled = { ...call, ok: true, attempts: 1, durationMs: 7 }

const DOUBT = { ok: false, charged: 'unknown' } as const

type Line = readonly [level: string, message: string, fields: unknown]

function logging(): { readonly lines: Line[]; readonly logger: Logger } {
  const lines: Line[] = []
  const at =
    (level: string) =>
    (message: string, fields?: object): void =>
      void lines.push([level, message, fields])
  return { lines, logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}

function tellAll(reporter: Reporter): void {
  reporter.request({ ...request })
  reporter.response({ ...response })
  reporter.retry({ ...retry })
  reporter.settled({ ...settled })
}

const throws = throwing('mine')

describe('hooks', () => {
  /** Values that look like promises, with this as `then`. */
  const promiseLike = (descriptor: PropertyDescriptor): unknown =>
    Object.defineProperty({}, 'then', descriptor)
  const reject = (_resolve: unknown, rejected: (error: Error) => void) => rejected(new Error('mine'))

  test.each([
    ['throw', throws],
    ['reject', async () => throws()],
    ['return what only looks like a promise', () => promiseLike({ value: reject })],
    ['return what throws when it is looked at', () => promiseLike({ get: throws })],
  ])('hooks that %s change nothing, and are logged without their error', async (_how, hook) => {
    const { lines, logger } = logging()
    const bad = hook as () => void
    const hooks = { onRequest: bad, onResponse: bad, onRetry: bad, onSettled: bad }
    expect(await unhandledBy(() => tellAll(new Reporter(hooks, logger, 'error')))).toEqual([])
    const events = [request, response, retry, settled]
    expect(lines).toEqual(events.map((event) => ['error', 'customer-ordering-sdk: a hook threw', event]))
  })

  test('hooks that try to change an event change nothing', () => {
    const { lines, logger } = logging()
    const onRequest = (event: object): void => void Object.assign(event, { path: '/elsewhere' })
    new Reporter({ onRequest }, logger, 'debug').request({ ...request })
    expect(lines.map(([level]) => level)).toEqual(['error', 'debug'])
    expect(lines[1]?.[2]).toEqual(request)
  })
})

test.each<LogLevel>(['info', 'warn', 'error', 'off'])('at level %s, a good call logs nothing', (level) => {
  const { lines, logger } = logging()
  tellAll(new Reporter({}, logger, level))
  expect(lines).toEqual([])
})

test('a log line states what happened, with the event as fields', () => {
  const { lines, logger } = logging()
  tellAll(new Reporter({}, logger, 'debug'))
  expect(lines).toEqual([
    ['debug', 'customer-ordering-sdk: request sent', request],
    ['debug', 'customer-ordering-sdk: request ended', response],
    ['debug', 'customer-ordering-sdk: trying again', retry],
    ['debug', 'customer-ordering-sdk: call ended', settled],
  ])
})

test.each([
  ['a refusal', { ok: false, charged: 'no', code: 'payment_required' }, 'info', 'call failed'],
  ['a charge in doubt', { ...DOUBT, code: 'timeout' }, 'warn', 'call failed'],
  ['an ending that could not be stored', { ok: true, remembered: false }, 'warn', 'call ended'],
  ['an order of a twin', { ...DOUBT, code: 'duplicate_order' }, 'info', 'call failed'],
  ['an order of a healthy peer', { ...DOUBT, recovery: 'in_progress' }, 'debug', 'call failed'],
  ['an order left open', { ...DOUBT, recovery: 'still_open' }, 'info', 'call failed'],
  ['an order for a person', { charged: 'yes', recovery: 'needs_attention' }, 'info', 'call ended'],
] as const)('log lines for %s: %j have level %s', (_what, fields, level, message) => {
  const { lines, logger } = logging()
  new Reporter({}, logger, 'debug').settled({ ...settled, ...fields })
  expect(lines).toEqual([[level, `customer-ordering-sdk: ${message}`, { ...settled, ...fields }]])
})

test('a logger is called with itself as this, and no logger means no lines', () => {
  class Lines implements Logger {
    readonly seen: string[] = []
    debug(message: string): void {
      this.seen.push(message)
    }
    info = this.debug
    warn = this.debug
    error = this.debug
  }
  const logger = new Lines()
  tellAll(new Reporter({}, logger, 'debug'))
  expect(logger.seen).toHaveLength(4)
  expect(() => tellAll(new Reporter({}, undefined, 'debug'))).not.toThrow()
})

test.each([
  ['throws', throws],
  ['rejects', async () => throws()],
])('log lines to a logger that %s change nothing', async (_how, log) => {
  const logger = { debug: log, info: log, warn: log, error: log }
  expect(await unhandledBy(() => tellAll(new Reporter({}, logger, 'debug')))).toEqual([])
})
