import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import * as errors from '../../../src/errors/classes.ts'
import {
  type AnyCustomerOrderingError,
  ApiError,
  CustomerOrderingError,
  type ErrorFacts,
  isCustomerOrderingError,
  NotFoundError,
  supportReference,
} from '../../../src/errors/classes.ts'
import * as entry from '../../../src/index.ts'

/** The module as the other module format loads it: the same text with other classes. */
const copyOf = './../../../src/errors/classes.ts?copy'
const copy: typeof errors = await import(/* @vite-ignore */ copyOf)

type Code = AnyCustomerOrderingError['code'] | 'error'
type ErrorClass = new (message: string, facts?: ErrorFacts) => CustomerOrderingError

/** Every class with its code and the classes it extends, nearest first. */
const classes: [name: keyof typeof errors, Code, bases: (keyof typeof errors)[]][] = [
  ['CustomerOrderingError', 'error', []],
  ['ConfigurationError', 'configuration', []],
  ['InvalidRequestError', 'invalid_request', []],
  ['StoreError', 'store', []],
  ['DuplicateOrderError', 'duplicate_order', []],
  ['UnresolvedOrderError', 'unresolved_order', []],
  ['ConnectionError', 'connection', []],
  ['TimeoutError', 'timeout', ['ConnectionError']],
  ['RequestAbortedError', 'aborted', []],
  ['InvalidResponseError', 'invalid_response', []],
  ['ApiError', 'api', []],
  ['BadRequestError', 'bad_request', ['ApiError']],
  ['AuthenticationError', 'authentication', ['ApiError']],
  ['PaymentRequiredError', 'payment_required', ['ApiError']],
  ['PermissionDeniedError', 'permission_denied', ['ApiError']],
  ['NotFoundError', 'not_found', ['ApiError']],
  ['ConflictError', 'conflict', ['ApiError']],
  ['IdempotencyConflictError', 'idempotency_conflict', ['ConflictError', 'ApiError']],
  ['IdempotencyInProgressError', 'idempotency_in_progress', ['ConflictError', 'ApiError']],
  ['OrderNotAcceptedError', 'order_not_accepted', ['ApiError']],
  ['RateLimitError', 'rate_limit', ['ApiError']],
  ['ServerError', 'server', ['ApiError']],
]

const classOf = (from: typeof errors, name: keyof typeof errors): ErrorClass => from[name] as ErrorClass

const everything: ErrorFacts = {
  charged: 'unknown',
  attempts: 3,
  status: 402,
  serverCode: 'NO_FUNDS',
  serverMessage: 'text of the server',
  requestId: 'req_1',
  idempotencyKey: 'key_1',
  externalOrderId: 'ref_1',
  orderId: 'ord_1',
  issues: [{ path: 'amount', message: 'is wrong' }],
  requiredPermission: 'orders:write',
  resource: 'order',
  retryAfter: 1000,
  local: true,
  fields: ['quantity'],
  deadline: 'attempt',
}

test('every error class is in the table of this test, and is exported by the package', () => {
  const exported = Object.entries(errors)
    .filter(([, value]) => typeof value === 'function' && value.prototype instanceof Error)
    .map(([name]) => name)
  expect(classes.map(([name]) => name).sort()).toEqual(exported.sort())
  expect(Object.keys(entry)).toEqual(expect.arrayContaining(exported))
})

describe.each(classes)('%s', (name, code, bases) => {
  const family = new Set([name, ...bases, 'CustomerOrderingError'])
  const make = (from: typeof errors): CustomerOrderingError => new (classOf(from, name))('text', everything)

  test(`the error has the code ${code} and its own name`, () => {
    const error = make(errors)
    expect([error.code, error.name, error.message]).toEqual([code, name, 'text'])
    expect(error.stack).toMatch(new RegExp(`^${name}: text\n`))
    expect(error).toBeInstanceOf(Error)
    expect(Object.keys(error)).not.toContain('name')
  })

  test('the error is an instance of its own class and its bases only, across copies of the module', () => {
    for (const made of [make(errors), make(copy)]) {
      for (const asked of [errors, copy]) {
        for (const [other] of classes) {
          expect(made instanceof classOf(asked, other), `instanceof ${other}`).toBe(family.has(other))
        }
      }
      expect(isCustomerOrderingError(made)).toBe(true)
      expect(copy.isCustomerOrderingError(made)).toBe(true)
    }
  })

  test('the error shows only what it was given', () => {
    const error = new (classOf(errors, name))('text')
    expect([error.charged, error.attempts, error.cause]).toEqual(['no', 0, undefined])
    expect('cause' in error).toBe(false)
    const fields: Record<string, unknown> = { ...error }
    const { issues: _issues, fields: _fields, local: _local, deadline: _deadline, ...rest } = fields
    expect(rest).toEqual({ code, charged: 'no', attempts: 0 })
  })
})

test('the two copies of the module differ', () => {
  expect(copy.ApiError).not.toBe(errors.ApiError)
  expect(Object.getPrototypeOf(new copy.ApiError('x'))).not.toBe(errors.ApiError.prototype)
})

test.each([null, undefined, 1, 'x', {}, [], new Error('x'), new TypeError('x'), Object.create(null)])(
  'instanceof is false for %s',
  (value) => {
    expect(value instanceof CustomerOrderingError).toBe(false)
    expect(value instanceof NotFoundError).toBe(false)
    expect(isCustomerOrderingError(value)).toBe(false)
  },
)

test('instanceof is false for a look-alike with the same name and code', () => {
  const alike = Object.assign(new Error('x'), { name: 'ApiError', code: 'api', charged: 'no' })
  expect(alike instanceof ApiError).toBe(false)
})

test("instanceof of a caller's subclass does not match its base", () => {
  class MineError extends NotFoundError {}
  class MoreError extends MineError {}
  const mine = new MineError('x')
  expect(mine instanceof MineError).toBe(true)
  expect(mine instanceof NotFoundError).toBe(true)
  expect(mine instanceof copy.NotFoundError).toBe(true)
  expect(mine instanceof CustomerOrderingError).toBe(true)
  expect(mine instanceof MoreError).toBe(false)
  expect(new NotFoundError('x') instanceof MineError).toBe(false)
  expect(new copy.NotFoundError('x') instanceof MineError).toBe(false)
  expect(new MoreError('x') instanceof MineError).toBe(true)
})

describe('the printed form of an error', () => {
  const error = new errors.PermissionDeniedError('text', { ...everything, cause: new Error('cause text') })

  test('toJSON contains the fields of an allow-list', () => {
    expect(error.toJSON()).toEqual({
      name: 'PermissionDeniedError',
      message: 'text',
      code: 'permission_denied',
      charged: 'unknown',
      attempts: 3,
      status: 402,
      serverCode: 'NO_FUNDS',
      requestId: 'req_1',
      idempotencyKey: 'key_1',
      externalOrderId: 'ref_1',
      orderId: 'ord_1',
      requiredPermission: 'orders:write',
      resource: 'order',
      retryAfter: 1000,
    })
    expect(JSON.parse(JSON.stringify({ error }))).toEqual({ error: error.toJSON() })
  })

  test('toJSON omits properties added later', () => {
    const changed = Object.assign(new ApiError('text'), { request: 'secret', headers: { a: 'secret' } })
    expect(JSON.stringify(changed)).not.toContain('secret')
    expect(inspect(changed)).not.toContain('secret')
  })

  test('toJSON contains the fields of specific classes', () => {
    const json = (made: CustomerOrderingError): object => made.toJSON()
    const { issues, local, fields } = everything
    expect(json(new errors.IdempotencyConflictError('x', everything))).toMatchObject({ local, fields })
    expect(json(new errors.TimeoutError('x', everything))).toMatchObject({ deadline: 'attempt' })
    expect(json(new errors.InvalidRequestError('x', everything))).toMatchObject({ issues })
    expect(json(new errors.InvalidResponseError('x', everything))).toHaveProperty('issues')
    expect(json(new errors.ServerError('x', everything))).not.toHaveProperty('issues')
  })

  test("inspect shows the stack and the fields, but neither the cause nor the server's text", () => {
    const shown = inspect(error)
    expect(shown).toMatch(/^PermissionDeniedError: text\n {4}at /)
    expect(shown).toContain("charged: 'unknown'")
    expect(shown).toContain("idempotencyKey: 'key_1'")
    for (const depth of [0, 2, Number.POSITIVE_INFINITY]) {
      const all = inspect({ nested: [error] }, { showHidden: true, depth })
      expect(all).not.toContain('text of the server')
      expect(all).not.toContain('cause text')
    }
  })

  test("inspect without Node's inspect function prints the fields as JSON", () => {
    const method = (error as unknown as Record<symbol, (depth: number, options: object) => string>)[
      Symbol.for('nodejs.util.inspect.custom')
    ]
    expect(method?.call(error, 2, {})).toContain('"charged":"unknown"')
  })

  test("the server's text is available only by name", () => {
    expect(error.serverMessage).toBe('text of the server')
    expect(Object.keys(error)).not.toContain('serverMessage')
    expect(JSON.stringify(error)).not.toContain('text of the server')
    expect(String(error)).toBe('PermissionDeniedError: text')
    expect({ ...error }).not.toHaveProperty('serverMessage')
  })

  test("structuredClone keeps the message and nothing of the server's text", () => {
    const clone = structuredClone(error)
    expect(clone.message).toBe('text')
    expect(inspect(clone, { showHidden: true })).not.toContain('text of the server')
  })

  test('optional fields of an error cannot be changed or removed afterwards', () => {
    expect(() => Object.assign(error, { status: 200 })).toThrow(TypeError)
    expect(() => Object.assign(error, { serverMessage: 'x' })).toThrow(TypeError)
  })
})

test('the support reference contains what the service asks callers to quote, as far as it is known', () => {
  const quote = { orderId: 'ord_1', idempotencyKey: 'key_1', externalOrderId: 'ref_1' }
  expect(new ApiError('x', everything).supportReference).toEqual(quote)
  expect(supportReference({ ...quote, extra: 1 } as object)).toEqual(quote)
  const named = { idempotencyKey: 'key_1' }
  expect(new ApiError('x', named).supportReference).toEqual(named)
  expect(new ApiError('x').supportReference).toEqual({})
})

test('the fields of one class have a default', () => {
  expect(new errors.IdempotencyConflictError('x').local).toBe(false)
  expect(new copy.TimeoutError('x').deadline).toBe('total')
  expect(new errors.InvalidRequestError('x').issues).toEqual([])
})
