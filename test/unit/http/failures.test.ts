import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  ApiError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  ConnectionError,
  CustomerOrderingError,
  IdempotencyConflictError,
  IdempotencyInProgressError,
  InvalidResponseError,
  NotFoundError,
  OrderNotAcceptedError,
  PaymentRequiredError,
  PermissionDeniedError,
  RateLimitError,
  RequestAbortedError,
  ServerError,
  TimeoutError,
} from '../../../src/errors/classes.ts'
import { STATUSES } from '../../../src/errors/statuses.ts'
import { type AttemptResult, answerOf, type BodyProblem } from '../../../src/http/attempt.ts'
import { type Endpoint, noTrail } from '../../../src/http/call.ts'
import { type CallContext, errorOf, UNKNOWN_CALL } from '../../../src/http/failures.ts'
import { requestIdOf } from '../../../src/http/redact.ts'
import { parseRetryAfter } from '../../../src/http/retry.ts'
import type { Unsent } from '../../../src/http/transport.ts'
import { plainError } from '../../../src/stores/failure.ts'
import { character } from '../../support/character.ts'
import { effort } from '../../support/effort.ts'

const CREATE: Endpoint = {
  operation: 'orders.create',
  method: 'POST',
  permission: 'orders:write',
  missing: 'service_or_customer',
}

const NOW = Date.UTC(2026, 0, 1)
const context: CallContext = { ...UNKNOWN_CALL, endpoint: CREATE, path: '/v1/orders' }

/** The details of a call and of its result, as a test sets them. */
interface Told extends Partial<CallContext> {
  readonly attempts?: number
  readonly secrets?: Iterable<string>
  readonly outOfTime?: boolean
  readonly deadline?: 'attempt' | 'total'
}

const answer = (
  status: number,
  body: unknown = { code: 'SOME_CODE', message: 'Some text.' },
  headers: Record<string, string> = {},
): AttemptResult => ({
  kind: 'answer',
  status,
  headers: new Headers(headers),
  text: typeof body === 'string' ? body : JSON.stringify(body),
})
function fail(last: AttemptResult, told: Told = {}): CustomerOrderingError {
  const { attempts = 2, secrets = [], outOfTime = false, deadline = 'attempt', ...known } = told
  const retryAfter = parseRetryAfter(answerOf(last)?.headers.get('retry-after') ?? null, NOW)
  const trail = { ...noTrail(deadline === 'total'), attempts, last, retryAfter, secrets: new Set(secrets) }
  return errorOf({ end: outOfTime ? 'deadline' : 'stopped', trail }, { ...context, ...known })
}

type ErrorClass = new (message: string) => CustomerOrderingError
describe('an error status', () => {
  const statuses: [status: number, Class: ErrorClass, code: string][] = [
    [400, BadRequestError, 'bad_request'],
    [401, AuthenticationError, 'authentication'],
    [402, PaymentRequiredError, 'payment_required'],
    [403, PermissionDeniedError, 'permission_denied'],
    [404, NotFoundError, 'not_found'],
    [409, ConflictError, 'conflict'],
    [422, OrderNotAcceptedError, 'order_not_accepted'],
    [429, RateLimitError, 'rate_limit'],
  ]
  for (const status of [500, 501, 502, 503, 504, 507, 511, 520, 599])
    statuses.push([status, ServerError, 'server'])
  for (const status of [100, 199, 300, 405, 406, 408, 410, 411, 413, 414, 415, 418, 425, 431, 499])
    statuses.push([status, ApiError, 'api'])

  test('the table has each status that has a row of its own', () => {
    const listed = new Set(statuses.map(([status]) => String(status)))
    expect(Object.keys(STATUSES).filter((status) => !listed.has(status))).toEqual([])
  })

  test.each(statuses)(
    'the status %i becomes the error class and code of its meaning',
    (status, Class, code) => {
      const error = fail(answer(status, { message: 'x' }))
      expect(error.constructor).toBe(Class)
      expect(error).toMatchObject({ code, status, attempts: 2, charged: 'no' })
      expect('requiredPermission' in error && error.requiredPermission).toBe(status === 403 && 'orders:write')
      expect('resource' in error && error.resource).toBe(status === 404 && 'service_or_customer')
      for (const charged of ['no', 'yes', 'unknown'] as const)
        expect(fail(answer(status), { charged }).charged).toBe(charged)
    },
  )

  const CONFLICT = 'IDEMPOTENCY_CONFLICT'
  const IN_PROGRESS = 'IDEMPOTENCY_IN_PROGRESS'
  test.each<[status: number, body: unknown, Class: ErrorClass]>([
    [409, { error: { code: CONFLICT } }, IdempotencyConflictError],
    [409, { error: { code: IN_PROGRESS } }, IdempotencyInProgressError],
    [409, { code: CONFLICT, detail: IN_PROGRESS }, ConflictError],
    [409, '<html>', ConflictError],
    [422, { code: CONFLICT }, OrderNotAcceptedError],
    [503, { code: IN_PROGRESS }, ServerError],
  ])('an error %i with %j has a class of its own only for a 409 with one code', (status, body, Class) => {
    const error = fail(answer(status, body))
    expect(error.constructor).toBe(Class)
    expect('local' in error && error.local).toBe(false)
  })

  test("an error has the service's code from a body of any content type, and its text only in a field that is not printed", () => {
    const body = { code: 'NO_FUNDS', message: 'You owe us.' }
    const error = fail(answer(402, body, { 'content-type': 'text/html' }))
    expect(error.message).toContain('NO_FUNDS')
    expect(error.message).not.toContain('You owe us')
    expect([error.serverCode, error.serverMessage]).toEqual(['NO_FUNDS', 'You owe us.'])
  })
})

test('an unknown endpoint has neither permission nor resource', () => {
  const endpoint = { operation: 'request', method: 'GET' }
  expect(fail(answer(403), { endpoint })).not.toHaveProperty('requiredPermission')
  expect(fail(answer(404), { endpoint })).not.toHaveProperty('resource')
})

function failed(
  unsent: false | Unsent,
  code?: string,
  syscall?: string,
): AttemptResult & { readonly kind: 'failed' } {
  const named = { ...(code === undefined ? {} : { code }), ...(syscall === undefined ? {} : { syscall }) }
  return { kind: 'failed', unsent, closed: false, detail: { name: 'TypeError', ...named } }
}

test.each([
  ['unreachable', 'ECONNREFUSED', 'connect'],
  ['certificate', 'CERT_HAS_EXPIRED', undefined],
  [false, 'ECONNRESET', 'read'],
  [false, 'ECONNREFUSED', 'connect'],
] as const)('a failure (%s, %s, %s) is a ConnectionError with its cause', (unsent, code, syscall) => {
  const error = fail(failed(unsent, code, syscall))
  const shown = syscall === undefined ? code : `${code} ${syscall}`
  expect(error.constructor).toBe(ConnectionError)
  expect(error.message).toContain(`(${shown})`)
  expect(error.code).toBe('connection')
  expect(error.cause).toEqual(Object.assign(new Error(shown), { code, ...(syscall && { syscall }) }))
  expect(Object.getPrototypeOf(error.cause)).toBe(Error.prototype)
})

test('a timeout states which time is over', () => {
  for (const deadline of ['attempt', 'total'] as const) {
    const error = fail({ kind: 'timeout' }, { deadline })
    expect(error).toBeInstanceOf(TimeoutError)
    expect(error).toMatchObject({ code: 'timeout', deadline })
    expect(error.message.includes('totalTimeout')).toBe(deadline === 'total')
  }
})

test("an abort keeps the signal's reason as its cause", () => {
  const reason = { why: 'the user left' }
  const error = fail({ kind: 'aborted' }, { reason })
  expect(error).toBeInstanceOf(RequestAbortedError)
  expect(error.code).toBe('aborted')
  expect(error.cause).toBe(reason)
})

test.each([301, 302, 303, 304, 307, 308, 0])('redirect %i is never followed', (status) => {
  const headers = new Headers({ location: 'https://elsewhere.example', 'x-request-id': 'req_1' })
  const error = fail({ kind: 'redirect', status, headers })
  expect(error).toBeInstanceOf(InvalidResponseError)
  expect(error.message).not.toContain('elsewhere')
  expect(error).toMatchObject({ status, requestId: 'req_1' })
})

test.each<[problem: BodyProblem | undefined, ErrorClass, facts: object]>([
  ['cut', ConnectionError, { code: 'connection' }],
  ['timeout', TimeoutError, { code: 'timeout', deadline: 'total' }],
  ['too_large', InvalidResponseError, { code: 'invalid_response', issues: [] }],
  ['undecodable', InvalidResponseError, { code: 'invalid_response', issues: [] }],
  ['aborted', InvalidResponseError, { code: 'invalid_response', issues: [] }],
  [undefined, InvalidResponseError, { code: 'invalid_response', issues: [] }],
])('a success whose body is %s is an error of its kind with a status', (problem, Class, facts) => {
  const result = { ...answer(200, '{', { 'x-request-id': 'req_1' }), problem } as AttemptResult
  const error = fail(result, { deadline: 'total' })
  expect(error.constructor).toBe(Class)
  expect(error).toMatchObject({ status: 200, requestId: 'req_1', ...facts })
})

const everyResult: [string, AttemptResult][] = [
  ['an answer', answer(401)],
  ['a server error', answer(500)],
  ['an unreadable success', { ...answer(200), problem: 'too_large' } as AttemptResult],
  ['a cut success', { ...answer(200), problem: 'cut' } as AttemptResult],
  ['a stalled success', { ...answer(200), problem: 'timeout' } as AttemptResult],
  ['a redirect', { kind: 'redirect', status: 307, headers: new Headers() }],
  ['a failure', failed(false)],
  ['a timeout', { kind: 'timeout' }],
  ['an abort', { kind: 'aborted' }],
]
test.each(everyResult)('the error of %s has the names of the order, and omits unknown names', (_, result) => {
  const names = { idempotencyKey: 'key_1', externalOrderId: 'ref_1', orderId: 'ord_1' }
  const error = fail(result, names)
  expect(error).toMatchObject(names)
  expect(error.supportReference).toEqual(names)
  const unnamed = fail(result, { idempotencyKey: undefined, externalOrderId: undefined })
  for (const name of ['idempotencyKey', 'externalOrderId']) expect(unnamed).not.toHaveProperty(name)
})

test.each([true, false])(
  "the cause names what a caller's fetch threw, and where: prototypes %s",
  (writable) => {
    const frames = '    at fetch (app.ts:1:2)'
    // As in a program that freezes `Error.prototype`.
    Object.defineProperty(Error.prototype, 'name', { writable })
    onTestFinished(() => void Object.defineProperty(Error.prototype, 'name', { writable: true }))
    const { cause } = fail({ ...failed(false), detail: { name: 'RangeError', frames } })
    expect(cause).toMatchObject({ name: 'RangeError', message: 'RangeError', stack: `RangeError\n${frames}` })
    expect(plainError(new RangeError('secret'), 'CODE')).toMatchObject({
      name: 'RangeError',
      message: 'CODE',
    })
  },
)

test.each([
  [429, '7', 7000],
  [503, '7', 7000],
  [409, '7', 7000],
  [429, new Date(NOW + 90_000).toUTCString(), 90_000],
  [429, 'soon', undefined],
  [429, '-7', undefined],
])('retryAfter of %i with %s is %s', (status, header, milliseconds) => {
  const error = fail(answer(status, {}, { 'retry-after': header })) as ApiError
  expect(error.retryAfter).toBe(milliseconds)
  expect('retryAfter' in error).toBe(milliseconds !== undefined)
})

test.each(['x-request-id', 'request-id', 'x-correlation-id', 'x-amzn-requestid', 'cf-ray'])(
  'the request id is taken from %s',
  (name) => {
    expect(fail(answer(500, {}, { [name]: 'req-1/a=' })).requestId).toBe('req-1/a=')
    expect(fail(answer(500, {}, { [name]: '7' })).requestId).toBe('7')
  },
)

test('the request id is the first usable one, without API keys', () => {
  const headers = { 'x-request-id': 'not usable', 'request-id': 'for-secret-key', 'cf-ray': 'last' }
  expect(requestIdOf(new Headers(headers), ['secret-key'])).toBe('for-[redacted]')
})

test.each(['', 'two words', 'x'.repeat(201), 'ümlaut'])('the request id is not %j', (value) => {
  expect(requestIdOf(new Headers({ 'x-request-id': value }), [])).toBeUndefined()
  expect(fail(answer(500, {}, { 'x-request-id': value }))).not.toHaveProperty('requestId')
})

describe('an error body', () => {
  const bodies: Record<string, string> = {
    'an HTML page': '\n<!doctype html><title>Not Found</title>',
    'plain text': 'upstream connect error or disconnect/reset before headers',
    nothing: '',
    'half a JSON text': '{"code":"NO_FUNDS","mess',
    'a JSON text that is no object': '[1,2,3]',
    'an object without code or message': '{"status":402}',
  }
  const problems = [undefined, 'cut', 'timeout', 'too_large'] as const
  test.each(Object.entries(bodies))(
    'an error body that is %s, or a part of it, leaves only the status',
    (_, text) => {
      for (const problem of problems) {
        const error = fail({ ...answer(402, text), problem } as AttemptResult)
        expect(error).toBeInstanceOf(PaymentRequiredError)
        expect(error).toMatchObject({ code: 'payment_required', status: 402 })
        for (const name of ['serverCode', 'serverMessage']) expect(error).not.toHaveProperty(name)
      }
    },
  )

  test('the text of an error body is truncated after API keys are removed', () => {
    const secret = 'sk_live_0123456789abcdef'
    const secrets = [secret]
    const code = fail(answer(401, { code: `bad:${secret}`, message: 'x' }), { secrets })
    expect(code.serverCode).toBe('bad:[redacted]')
    expect(code.message).toContain('code bad:[redacted]')
    const start = 'x'.repeat(490)
    const messageFrom = (message: string) => fail(answer(401, { message }), { secrets }).serverMessage
    expect(messageFrom(start + secret)).toBe(`${start}[redacted]`)
    expect(messageFrom('x'.repeat(10_000))).toBe('x'.repeat(500))
  })
})

test("any status with any bytes becomes an error without the server's text in its message", () => {
  const bytes = fc.oneof(fc.string({ unit: character }), fc.json())
  const header = fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((c) => String.fromCharCode(c)) })
  const status = fc.oneof(
    fc.integer({ min: 100, max: 999 }),
    fc.constantFrom(400, 401, 402, 403, 404, 409, 422, 429),
  )
  const problem = fc.option(fc.constantFrom('cut', 'timeout', 'aborted', 'too_large'), { nil: undefined })
  fc.assert(
    fc.property(status, bytes, header, header, problem, (code, text, requestId, retryAfter, cut) => {
      const headers = new Headers({ 'x-request-id': requestId, 'retry-after': retryAfter })
      const problem = cut && { problem: cut }
      const result = { kind: 'answer', status: code, headers, text, ...problem } as AttemptResult
      const error = fail(result, { charged: 'unknown' })
      expect(error).toBeInstanceOf(CustomerOrderingError)
      expect(error.status).toBe(code)
      expect(error.message).toMatch(/^[ -~]+$/)
      expect(error.message.length).toBeLessThan(600)
      expect(() => JSON.stringify(error)).not.toThrow()
    }),
    { numRuns: effort(200, 2000) },
  )
})
