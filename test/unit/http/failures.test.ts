import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
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
import type { AttemptResult, BodyProblem } from '../../../src/http/attempt.ts'
import type { Endpoint } from '../../../src/http/call.ts'
import { type CallContext, errorOf, UNKNOWN_CALL } from '../../../src/http/failures.ts'
import { requestIdOf } from '../../../src/http/redact.ts'
import type { Unsent } from '../../../src/http/transport.ts'
import { effort } from '../../support/effort.ts'

const CREATE: Endpoint = {
  operation: 'orders.create',
  method: 'POST',
  permission: 'orders:write',
  missing: 'service_or_customer',
}

const NOW = Date.UTC(2026, 0, 1)
const context: CallContext = { ...UNKNOWN_CALL, endpoint: CREATE, path: '/v1/orders', now: NOW }

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
  const trail = { attempts, retries: 0, last, cutByDeadline: deadline === 'total', secrets: new Set(secrets) }
  return errorOf({ end: outOfTime ? 'deadline' : 'judged', trail }, { ...context, ...known })
}

type ErrorClass = new (message: string) => CustomerOrderingError
/** `inDoubt` is true if the advice also fits a wallet that may have been charged. */
type Advice = [next: string, inDoubt?: boolean]

const SIGN_IN = 'Check the API key or sign in at the proxy'
const NETWORK = 'Check the network and baseUrl'
const RENEW = 'Create a new transport and client'
const BETWEEN = 'Check any proxy or gateway in between'
const LOWER_LIMIT = 'Check baseUrl (or lower the limit of a list)'
const CHECK_SCHEME = 'Check the scheme and port of baseUrl (the server may not speak TLS there)'
const NO_TLS = 'ERR_SSL_WRONG_VERSION_NUMBER'
const DESTROYED = 'UND_ERR_DESTROYED'
const UNTRUSTED = "could not connect: the server's certificate is not trusted"
const CLOSED = 'could not be sent: the transport is closed'
const NEVER = 'Do not order again under another reference or key.'
const IN_DOUBT = `The wallet may have been charged. Call create() again with the same request and reference (or key), or run orders.recover(). If the outcome stays unknown, settle the order with orders.resolve(). ${NEVER}`

/** A message states what happened, whether the wallet may be charged, and what to do. */
function expectMessages(result: AttemptResult, what: string, ...[next, inDoubt = false]: Advice): void {
  const message = (charged?: 'no' | 'yes' | 'unknown'): string => {
    const error = fail(result, charged === undefined ? {} : { charged })
    expect(error.charged).toBe(charged ?? 'no')
    return error.message
  }
  const first = inDoubt ? `${next}. ` : ''
  expect(message()).toBe(`POST /v1/orders ${what}. ${next}, then call again.`)
  expect(message('no')).toBe(`POST /v1/orders ${what}. The wallet was not charged. ${next}, then call again.`)
  expect(message('unknown')).toBe(`POST /v1/orders ${what}. ${first}${IN_DOUBT}`)
  expect(message('yes')).toBe(`POST /v1/orders ${what}. ${first}The wallet was charged. ${NEVER}`)
}

test.each([
  [404, NotFoundError],
  [403, PermissionDeniedError],
  [401, AuthenticationError],
])('an HTML page with status %i points to baseUrl, not to ids or permissions', (status, Class) => {
  const page = answer(status, '\n<!doctype html><title>Not Found</title>')
  expect(fail(page)).toBeInstanceOf(Class)
  const what = `returned ${status} (HTML or XML, not this service's response)`
  expectMessages(page, what, 'Check baseUrl and any proxy or gateway in between', true)
})

describe('an error status', () => {
  const statuses: [status: number, Class: ErrorClass, code: string, meaning: string, ...Advice][] = [
    [400, BadRequestError, 'bad_request', 'invalid request body or headers', 'Correct the request'],
    [401, AuthenticationError, 'authentication', 'missing or invalid API key', SIGN_IN, true],
    [402, PaymentRequiredError, 'payment_required', 'payment required', 'Top up the wallet', true],
    [404, NotFoundError, 'not_found', 'not found', 'Check the ids, the API key and baseUrl'],
    [409, ConflictError, 'conflict', 'conflict', 'Wait'],
    [422, OrderNotAcceptedError, 'order_not_accepted', 'order cannot be accepted', 'Change the order'],
    [429, RateLimitError, 'rate_limit', 'too many requests', 'Wait'],
  ]
  for (const status of [500, 501, 502, 503, 504, 507, 511, 520, 599])
    statuses.push([status, ServerError, 'server', 'server error', 'Wait'])
  for (const status of [408, 425]) statuses.push([status, ApiError, 'api', 'unexpected status', 'Wait'])
  for (const status of [100, 199, 300, 405, 406, 410, 411, 413, 414, 415, 418, 431, 451, 499])
    statuses.push([status, ApiError, 'api', 'unexpected status', 'Check baseUrl and the request'])

  test.each(statuses)(
    'the status %i becomes the error class, code and message of its meaning',
    (status, Class, code, meaning, ...advice) => {
      const result = answer(status, { message: 'x' })
      expect(fail(result).constructor).toBe(Class)
      expect(fail(result)).toMatchObject({ code, status, attempts: 2 })
      expectMessages(result, `returned ${status} (${meaning})`, ...advice)
    },
  )

  test('the status 403 names the permission that the call needs', () => {
    expect(fail(answer(403)).constructor).toBe(PermissionDeniedError)
    expect(fail(answer(403))).toMatchObject({ code: 'permission_denied', status: 403, attempts: 2 })
    const what = 'returned 403 (the API key lacks a permission). The call needs the permission orders:write'
    expectMessages(answer(403, ''), what, 'Give this API key that permission', true)
  })

  test.each([
    ['IDEMPOTENCY_CONFLICT', IdempotencyConflictError],
    ['IDEMPOTENCY_IN_PROGRESS', IdempotencyInProgressError],
  ] as const)('the status 409 %s has its own class', (serverCode, Class) => {
    const error = fail(answer(409, { error: { code: serverCode } }))
    expect(error.constructor).toBe(Class)
    expect(error.serverCode).toBe(serverCode)
    expect((error as IdempotencyConflictError).local ?? false).toBe(false)
  })

  test('a 409 with both codes, or an undocumented one, is an unknown conflict', () => {
    const both = { code: 'IDEMPOTENCY_CONFLICT', detail: 'IDEMPOTENCY_IN_PROGRESS' }
    expect(fail(answer(409, both)).constructor).toBe(ConflictError)
    expect(fail(answer(409, '<html>')).constructor).toBe(ConflictError)
  })

  test('another status than 409 keeps its class, whatever its code', () => {
    expect(fail(answer(422, { code: 'IDEMPOTENCY_CONFLICT' })).constructor).toBe(OrderNotAcceptedError)
    expect(fail(answer(503, { code: 'IDEMPOTENCY_IN_PROGRESS' })).constructor).toBe(ServerError)
  })

  test("an error has the service's code, and its text only in a field that is not printed", () => {
    const error = fail(answer(402, { code: 'NO_FUNDS', message: 'You owe us.' }))
    expect(error.message).toBe(
      'POST /v1/orders returned 402 (payment required, code NO_FUNDS). Top up the wallet, then call again.',
    )
    expect([error.serverCode, error.serverMessage]).toEqual(['NO_FUNDS', 'You owe us.'])
  })
})

test('only a 403 names a permission, and only a 404 names what is missing', () => {
  for (const status of [400, 401, 402, 409, 422, 429, 500]) {
    const error = fail(answer(status))
    expect(error).not.toHaveProperty('requiredPermission')
    expect(error).not.toHaveProperty('resource')
  }
})

test('an unknown endpoint has neither permission nor resource', () => {
  const endpoint = { operation: 'request', method: 'GET' }
  expect(fail(answer(403), { endpoint })).not.toHaveProperty('requiredPermission')
  expect(fail(answer(404), { endpoint })).not.toHaveProperty('resource')
  expect(fail(answer(403), { endpoint }).message).not.toContain('needs')
})

function failed(
  unsent: false | Unsent,
  code?: string,
  syscall?: string,
): AttemptResult & { readonly kind: 'failed' } {
  const named = { ...(code === undefined ? {} : { code }), ...(syscall === undefined ? {} : { syscall }) }
  return { kind: 'failed', unsent, closed: false, detail: { name: 'TypeError', ...named } }
}

describe('a failure without an answer', () => {
  test.each([
    ['could not connect', 'unreachable', 'ECONNREFUSED', 'connect', 'network'],
    [UNTRUSTED, 'certificate', 'CERT_HAS_EXPIRED', undefined, 'certificate'],
    ['got no complete response', false, 'ECONNRESET', 'read', 'network'],
    ['got no complete response', false, 'ECONNREFUSED', 'connect', 'network'],
  ] as const)('%s', (what, unsent, code, syscall, suspect) => {
    const error = fail(failed(unsent, code, syscall))
    const shown = syscall === undefined ? code : `${code} ${syscall}`
    expect(error.constructor).toBe(ConnectionError)
    const next = `Check the ${suspect} and baseUrl, then call again.`
    expect(error.message).toBe(`POST /v1/orders ${what} (${shown}). ${next}`)
    expect(error.code).toBe('connection')
    expect(error.cause).toEqual(Object.assign(new Error(shown), { code, ...(syscall && { syscall }) }))
    expect(Object.getPrototypeOf(error.cause)).toBe(Error.prototype)
  })

  test.each([
    ['connected too late to send', 'late', 'LATE', 'Keep the machine awake'],
    ['could not connect', 'unreachable', 'BAD_PORT', 'Use a port in baseUrl that fetch does not block'],
    [CLOSED, 'transport_closed', 'UND_ERR_CLOSED', RENEW],
    [CLOSED, 'transport_closed', DESTROYED, RENEW],
  ] as const)('the message "%s" (%s, %s) suggests: %s', (what, unsent, code, next) => {
    const message = (told: Told): string => fail(failed(unsent, code), told).message
    expect(message({})).toBe(`POST /v1/orders ${what} (${code}). ${next}, then call again.`)
    expect(message({ charged: 'unknown' })).toBe(
      `POST /v1/orders ${what}, but an earlier attempt or another process may have sent the request (${code}). ${next}. ${IN_DOUBT}`,
    )
    expect(message({ charged: 'no' })).toBe(
      `POST /v1/orders ${what}, so this attempt sent nothing (${code}). The wallet was not charged. ${next}, then call again.`,
    )
  })

  test('a timeout states which time is over', () => {
    const attempt = fail({ kind: 'timeout' }, { deadline: 'attempt' })
    expect(attempt).toBeInstanceOf(TimeoutError)
    expect(attempt).toMatchObject({ code: 'timeout', deadline: 'attempt' })
    const total = fail({ kind: 'timeout' }, { deadline: 'total' })
    expect(total).toMatchObject({ code: 'timeout', deadline: 'total' })
    expect(total.message).toContain('within the total time of the call (totalTimeout).')
    expect(fail({ kind: 'timeout' })).toMatchObject({ deadline: 'attempt' })
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
    expect(error.message).toMatch(/redirect.*, which is never followed\. Check baseUrl, then call again\.$/)
    expect(error.message).not.toContain('elsewhere')
    expect(error).toMatchObject({ status, requestId: 'req_1' })
  })
})

const WITHIN = 'within the time of one attempt (timeout)'
const invalid = { code: 'invalid_response', issues: [] }
const timeout = { code: 'timeout', deadline: 'total' }

test.each<[problem: BodyProblem | undefined, ErrorClass, facts: object, why: string, ...Advice]>([
  ['cut', ConnectionError, { code: 'connection' }, 'was cut off: the connection was lost', NETWORK],
  ['timeout', TimeoutError, timeout, `did not arrive ${WITHIN}`, 'Allow more time'],
  ['too_large', InvalidResponseError, invalid, 'exceeds the size limit', LOWER_LIMIT],
  ['undecodable', InvalidResponseError, invalid, 'could not be decompressed', BETWEEN, true],
  ['aborted', InvalidResponseError, invalid, 'is not as documented', 'Check baseUrl'],
  [undefined, InvalidResponseError, invalid, 'is not as documented', 'Check baseUrl'],
])(
  'a success whose body is %s is an error of its kind with a status',
  (problem, Class, facts, why, ...advice) => {
    const result = { ...answer(200, '{', { 'x-request-id': 'req_1' }), problem } as AttemptResult
    const error = fail(result, { deadline: 'total' })
    expect(error.constructor).toBe(Class)
    expect(error).toMatchObject({ status: 200, requestId: 'req_1', ...facts })
    expectMessages(result, `returned 200, but the body ${why}`, ...advice)
  },
)

describe('what a message says', () => {
  const results: Record<string, AttemptResult> = {
    'an answer': answer(401),
    'a server error': answer(500),
    'an unreadable success': { ...answer(200), problem: 'too_large' } as AttemptResult,
    'a cut success': { ...answer(200), problem: 'cut' } as AttemptResult,
    'a stalled success': { ...answer(200), problem: 'timeout' } as AttemptResult,
    'a redirect': { kind: 'redirect', status: 307, headers: new Headers() },
    'a failure': { kind: 'failed', unsent: false, closed: true, detail: { name: 'Error' } },
    'a timeout': { kind: 'timeout' },
    'an abort': { kind: 'aborted' },
  }

  describe.each(Object.entries(results))('of %s', (_name, result) => {
    test('a message of this kind has the names of the order, and omits unknown names', () => {
      const names = { idempotencyKey: 'key_1', externalOrderId: 'ref_1', orderId: 'ord_1' }
      const error = fail(result, names)
      expect(error).toMatchObject(names)
      expect(error.supportReference).toEqual(names)
      const unnamed = fail(result, { idempotencyKey: undefined, externalOrderId: undefined })
      expect(unnamed).not.toHaveProperty('idempotencyKey')
      expect(unnamed).not.toHaveProperty('externalOrderId')
    })
  })

  test('a message of this kind states that no time was left for a retry', () => {
    const sentence = 'No time was left for another attempt.'
    for (const name of ['a server error', 'a failure', 'a cut success']) {
      expect(fail(results[name] as AttemptResult, { outOfTime: true }).message).toContain(sentence)
      expect(fail(results[name] as AttemptResult).message).not.toContain(sentence)
    }
  })

  test('a message of this kind states that the service requires too long a wait', () => {
    const waiting = answer(429, {}, { 'retry-after': '600' })
    const sentence = 'The service asked the client to wait 600000 ms. No time was left for another attempt.'
    expect(fail(waiting, { outOfTime: true }).message).toContain(sentence)
    expect(fail(waiting).message).not.toContain('asked the client to wait')
    expect(fail(waiting)).toMatchObject({ code: 'rate_limit', retryAfter: 600_000 })
  })
})

describe('a whole message', () => {
  const UNKNOWN_EFFECT =
    'The request may have taken effect and charged the wallet. Check its effect before you send it again: the client has no record of it.'
  const redirect = (status: number): AttemptResult => ({ kind: 'redirect', status, headers: new Headers() })
  const coded = (status: number, code: string): AttemptResult => answer(status, { code })

  test.each<[result: AttemptResult, what: string, ...Advice]>([
    [
      coded(409, 'IDEMPOTENCY_IN_PROGRESS'),
      'returned 409 (an earlier request with this key is still running, code IDEMPOTENCY_IN_PROGRESS)',
      'Wait',
    ],
    [redirect(307), 'returned a redirect (307), which is never followed', 'Check baseUrl', true],
    [redirect(0), 'returned a redirect, which is never followed', 'Check baseUrl', true],
    [{ kind: 'timeout' }, `got no complete response ${WITHIN}`, 'Allow more time'],
    [{ kind: 'aborted' }, "was aborted by the caller's signal", 'If you still need the result'],
    [failed(false), 'got no complete response (TypeError)', NETWORK],
    [failed(false, 'ECONNRESET'), 'got no complete response (ECONNRESET)', NETWORK],
    [failed(false, NO_TLS), `got no complete response (${NO_TLS})`, CHECK_SCHEME, true],
    [failed(false, DESTROYED), `got no complete response (${DESTROYED})`, RENEW, true],
  ])('a message states what happened, whether the wallet may be charged, and what to do (%#)', expectMessages)

  test.each([
    [undefined, 'Give each order its own reference or key, then call again.'],
    ['no', 'The existing order was not charged. A different order needs its own reference or key.'],
    ['yes', 'The existing order was charged. A different order needs its own reference or key.'],
    [
      'unknown',
      'The existing order may have been charged. A different order needs its own reference or key. Close the existing order with orders.resolve() once you know its outcome. Processes that use the same references must share one store.',
    ],
  ] as const)('a message about a key of another order, which is charged: %s', (charged, rest) => {
    const error = fail(coded(409, 'IDEMPOTENCY_CONFLICT'), charged === undefined ? {} : { charged })
    expect(error.message).toBe(
      `POST /v1/orders returned 409 (this key belongs to an order with another payload, code IDEMPOTENCY_CONFLICT). ${rest}`,
    )
  })

  test.each([
    [undefined, '', `${NETWORK}, then call again.`],
    ['no', ', so this attempt sent nothing', `The wallet was not charged. ${NETWORK}, then call again.`],
    ['yes', '', `The wallet was charged. ${NEVER}`],
    ['unknown', ', but an earlier attempt or another process may have sent the request', IN_DOUBT],
  ] as const)('a message about an unsent request of a charged order: %s', (charged, sent, rest) => {
    const given = charged === undefined ? {} : { charged }
    expect(fail(failed('unreachable', 'ENOTFOUND'), given).message).toBe(
      `POST /v1/orders could not connect${sent} (ENOTFOUND). ${rest}`,
    )
    expect(fail(failed('certificate', 'CERT_HAS_EXPIRED'), given).message).toBe(
      `POST /v1/orders ${UNTRUSTED}${sent} (CERT_HAS_EXPIRED). ${rest.replace('the network', 'the certificate')}`,
    )
  })

  test.each([
    ['unknown', 'The wallet may have been charged.'],
    ['yes', 'The wallet was charged.'],
  ] as const)(
    'of a read of an order repeats the read and not create(), where it is charged: %s',
    (charged, money) => {
      const endpoint: Endpoint = { operation: 'orders.resolve', method: 'GET', missing: 'order' }
      const told = { endpoint, path: '/v1/orders/o_1', charged }
      expect(fail(answer(404, ''), told).message).toBe(
        `GET /v1/orders/o_1 returned 404 (not found). Check the ids, the API key and baseUrl, then call again. ${money} ${NEVER}`,
      )
      expect(fail(failed('unreachable', 'ECONNREFUSED'), told).message).toBe(
        `GET /v1/orders/o_1 could not connect (ECONNREFUSED). Check the network and baseUrl, then call again. ${money} ${NEVER}`,
      )
    },
  )

  test.each([
    ['no', 'The wallet was not charged. Allow more time, then call again.'],
    ['unknown', UNKNOWN_EFFECT],
  ] as const)('a message about a custom request names its effect, and no order: %s', (charged, rest) => {
    const endpoint = { operation: 'request', method: 'PUT' }
    expect(fail({ kind: 'timeout' }, { endpoint, charged, path: '/v1/x' }).message).toBe(
      `PUT /v1/x got no complete response within the time of one attempt (timeout). ${rest}`,
    )
  })

  test('a conflict of a custom request does not suggest orders.resolve(), which has no record of it', () => {
    const endpoint = { operation: 'request', method: 'POST' }
    const result = coded(409, 'IDEMPOTENCY_CONFLICT')
    expect(fail(result, { endpoint, charged: 'unknown', path: '/v1/x' }).message).toBe(
      `POST /v1/x returned 409 (this key belongs to an order with another payload, code IDEMPOTENCY_CONFLICT). ${UNKNOWN_EFFECT}`,
    )
  })

  test('a message about a timeout before the first attempt states that nothing was sent', () => {
    expect(fail({ kind: 'timeout' }, { attempts: 0, charged: 'no', deadline: 'total' }).message).toBe(
      'POST /v1/orders was not sent within the total time of the call (totalTimeout). The wallet was not charged. Allow more time, then call again.',
    )
  })
})

test("the cause names what a caller's fetch threw, and where", () => {
  const frames = '    at fetch (app.ts:1:2)'
  const { cause } = fail({ ...failed(false), detail: { name: 'RangeError', frames } })
  expect(cause).toMatchObject({ name: 'RangeError', message: 'RangeError', stack: `RangeError\n${frames}` })
})

describe('retryAfter', () => {
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
})

describe('the request id', () => {
  test.each(['x-request-id', 'request-id', 'x-correlation-id', 'x-amzn-requestid', 'cf-ray'])(
    'the request id is taken from %s',
    (name) => {
      expect(fail(answer(500, {}, { [name]: 'req-1/a=' })).requestId).toBe('req-1/a=')
      expect(fail(answer(500, {}, { [name]: '7' })).requestId).toBe('7')
    },
  )

  test('the request id is taken from the first header with a usable value', () => {
    const headers = new Headers({ 'x-request-id': 'not usable', 'request-id': 'second', 'cf-ray': 'last' })
    expect(requestIdOf(headers, [])).toBe('second')
  })

  test.each(['', 'two words', 'x'.repeat(201), 'ümlaut'])('the request id is not %j', (value) => {
    expect(requestIdOf(new Headers({ 'x-request-id': value }), [])).toBeUndefined()
    expect(fail(answer(500, {}, { 'x-request-id': value }))).not.toHaveProperty('requestId')
  })

  test('API keys are removed from the request id', () => {
    expect(requestIdOf(new Headers({ 'x-request-id': 'for-secret-key' }), ['secret-key'])).toBe(
      'for-[redacted]',
    )
  })
})

describe('an error body', () => {
  const bodies: Record<string, string> = {
    'plain text': 'upstream connect error or disconnect/reset before headers',
    nothing: '',
    'half a JSON text': '{"code":"NO_FUNDS","mess',
    'a JSON text that is no object': '[1,2,3]',
    'an object without code or message': '{"status":402}',
  }
  test.each(Object.entries(bodies))('an error body that is %s leaves only the status', (_what, text) => {
    const error = fail(answer(402, text))
    expect(error).toBeInstanceOf(PaymentRequiredError)
    expect(error.message).toMatch(/^POST \/v1\/orders returned 402 \(payment required\)\. Top up/)
    expect(error).not.toHaveProperty('serverCode')
    expect(error).not.toHaveProperty('serverMessage')
  })

  test('an error body may have any content type', () => {
    const error = fail(answer(402, { code: 'NO_FUNDS' }, { 'content-type': 'text/html' }))
    expect(error.serverCode).toBe('NO_FUNDS')
  })

  test.each(['cut', 'timeout', 'too_large'] as const)(
    'an error body that is %s is read as far as possible',
    (problem) => {
      const result = { ...answer(402, '{"code":"NO_FUN'), problem } as AttemptResult
      expect(fail(result)).toMatchObject({ code: 'payment_required', status: 402 })
    },
  )

  test('the text of an error body is truncated', () => {
    expect(fail(answer(400, { message: 'x'.repeat(10_000) })).serverMessage).toBe('x'.repeat(500))
  })

  test('API keys are removed from an error body before its text is truncated', () => {
    const secret = 'sk_live_0123456789abcdef'
    const secrets = [secret]
    const code = fail(answer(401, { code: `bad:${secret}`, message: 'x' }), { secrets })
    expect(code.serverCode).toBe('bad:[redacted]')
    expect(code.message).toContain('code bad:[redacted]')
    const text = `${'x'.repeat(490)}${secret}`
    expect(fail(answer(401, { message: text }), { secrets }).serverMessage).toBe(
      `${'x'.repeat(490)}[redacted]`,
    )
  })
})

test("any status with any bytes becomes an error without the server's text in its message", () => {
  const bytes = fc.oneof(fc.string({ unit: 'binary' }), fc.json())
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
