import { describe, expect, test } from 'vitest'
import { balanceSchema } from '../../../src/schemas/balance.ts'
import { check, issuesText } from '../../../src/schemas/check.ts'
import { createOrderRequestSchema, orderSchema } from '../../../src/schemas/order.ts'
import { serviceSchema } from '../../../src/schemas/service.ts'
import type { StandardSchemaV1 } from '../../../src/schemas/standard-schema.ts'
import { throwing } from '../../support/calls.ts'

/** The issues of a value, as `path: message` lines. */
const wrong = (schema: StandardSchemaV1, value: unknown): string[] => {
  const checked = check(schema, value)
  if (checked instanceof Promise) throw new Error('answered later')
  return 'issues' in checked ? checked.issues.map(({ path, message }) => `${path}: ${message}`) : []
}

const order = { id: 'ord_1', status: 'pending', amount: 250 }
const rules = { minQuantity: 0.5, maxQuantity: 1000, stepQuantity: 0.5 }
const service = { productId: 'svc_1', amount: 5, currency: 'EUR', ...rules }
const balance = { amount: -5, currency: 'EUR' }
const request = { serviceId: 'svc_1', target: '@x', quantity: 1 }

describe.each([
  ['an order', orderSchema as StandardSchemaV1, order],
  ['a service', serviceSchema, service],
  ['a balance', balanceSchema, balance],
  ['a request', createOrderRequestSchema, request],
])('%s', (_name, schema, valid) => {
  test('a shape passes with its documented fields, and keeps undocumented ones', () => {
    const more = { ...valid, stockState: 'in_stock', nested: { list: [1, null] }, constructor: 'x' }
    expect(check(schema, more)).toEqual({ value: more })
  })

  test.each(Object.keys(valid))('a shape without %s is rejected', (field) => {
    const { [field]: _left, ...rest } = valid as Record<string, unknown>
    expect(wrong(schema, rest)).toEqual([expect.stringMatching(new RegExp(`^${field}: `))])
  })

  test.each([null, undefined, [], 'x', 1, true])('a shape is not %j', (value) => {
    expect(wrong(schema, value)).toHaveLength(1)
  })

  test('a shape cannot change what its object inherits', () => {
    const polluted = JSON.parse(JSON.stringify(valid).replace('{', '{"__proto__":{"admin":true},'))
    const checked = check(schema, polluted)
    expect(checked).toEqual({ value: expect.anything() })
    const { value } = checked as { value: object }
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect((value as { admin?: unknown }).admin).toBeUndefined()
  })
})

describe('an amount', () => {
  const schemas: [string, StandardSchemaV1, object][] = [
    ['an order', orderSchema, order],
    ['a service', serviceSchema, service],
    ['a balance', balanceSchema, balance],
  ]
  test.each(schemas)('an amount of %s is a safe integer', (_name, schema, valid) => {
    const issuesOf = (amount: unknown): number => wrong(schema, { ...valid, amount }).length
    const right = [0, 1, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]
    expect(right.filter((amount) => issuesOf(amount) !== 0)).toEqual([])
    const unsafe = [2 ** 53, -(2 ** 53), 1e300, 0.1, 99.5, Number.NaN, Infinity]
    expect([...unsafe, '100', null, [1], {}, true].filter((amount) => issuesOf(amount) !== 1)).toEqual([])
  })

  test('an amount that JSON has already rounded is rejected', () => {
    const amount = JSON.parse('9007199254740993')
    expect(wrong(orderSchema, { ...order, amount })).toEqual([
      'amount: must be an integer between -(2^53 - 1) and 2^53 - 1',
    ])
  })
})

test.each<[string, StandardSchemaV1, object, wrong: unknown[], right: unknown[]]>([
  ['id', orderSchema, order, ['', ' ', 1, null], ['x']],
  ['status', orderSchema, order, [null], ['', 'whatever comes']],
  ['minQuantity', serviceSchema, service, ['2', Number.NaN], [2.5]],
  ['maxQuantity', serviceSchema, service, ['2', Number.NaN], [2.5]],
  ['stepQuantity', serviceSchema, service, ['2', Number.NaN], [2.5]],
  ['quantity', createOrderRequestSchema, request, [0, -1, 1.5, 2 ** 53, '1', Number.NaN], [1]],
  ['metadata', createOrderRequestSchema, request, [[]], [{ externalOrderId: 'a', tags: ['x'] }]],
])('the field %s has its documented values', (field, schema, valid, wrongValues, right) => {
  const issuesOf = (value: unknown): number => wrong(schema, { ...valid, [field]: value }).length
  expect(right.filter((value) => issuesOf(value) !== 0)).toEqual([])
  expect(wrongValues.filter((value) => issuesOf(value) !== 1)).toEqual([])
})

test.each(['', '  ', 7, null])('a request cannot have the externalOrderId %j', (externalOrderId) => {
  expect(wrong(createOrderRequestSchema, { ...request, metadata: { externalOrderId } })).toEqual([
    expect.stringMatching(/^metadata\.externalOrderId: /),
  ])
})

describe("a caller's schema", () => {
  const schemaOf = (validate: (value: unknown) => unknown): StandardSchemaV1 => ({
    '~standard': { version: 1, vendor: 'test', validate: validate as never },
  })
  const threw = { issues: [{ path: '', message: 'made the schema throw instead of reporting issues' }] }

  test('a schema may return its own kind of promise', async () => {
    const answered = (answer: unknown): StandardSchemaV1 =>
      schemaOf(() => {
        // biome-ignore lint/suspicious/noThenProperty: it is what makes it a promise.
        return { then: (resolve: (value: unknown) => void) => resolve(answer) }
      })
    const good = check(answered({ value: 7 }), 1)
    expect(good).toBeInstanceOf(Promise)
    await expect(good).resolves.toEqual({ value: 7 })
    await expect(check(answered({ issues: [{ message: 'no' }] }), 1)).resolves.toEqual({
      issues: [{ path: '', message: 'no' }],
    })
  })

  test.each([
    ['throws', throwing('secret')],
    ['answers nothing', () => undefined],
    ['answers null', () => null],
    ['answers issues that are none', () => ({ issues: 7 })],
    ['has a path that is none', () => ({ issues: [{ message: 'x', path: 7 }] })],
    ['has a key that is none', () => ({ issues: [{ message: 'x', path: [null] }] })],
  ])('a schema counts as one issue if it %s', async (_how, validate) => {
    expect(check(schemaOf(validate), 1)).toEqual(threw)
    const later = schemaOf(async () => validate())
    await expect(check(later, 1)).resolves.toEqual(threw)
  })

  test("a schema's paths are written as in JavaScript", () => {
    const path = ['list', 0, { key: 'a' }, { key: 1 }, Symbol('s')]
    const schema = schemaOf(() => ({ issues: [{ message: 'no', path }] }))
    expect(check(schema, 1)).toEqual({ issues: [{ path: 'list[0].a[1].Symbol(s)', message: 'no' }] })
  })
})

test("a schema's issues are one line of three at most", () => {
  const issue = (path: string): { path: string; message: string } => ({ path, message: 'is wrong' })
  expect(issuesText([issue('')])).toBe('it is wrong')
  expect(issuesText([issue('a'), issue('b[1]')])).toBe('`a` is wrong, `b[1]` is wrong')
  expect(issuesText(['a', 'b', 'c', 'd', 'e'].map(issue))).toBe(
    '`a` is wrong, `b` is wrong, `c` is wrong and 2 more',
  )
  const forged = { path: 'a\u202e', message: 'is not "x\u20282026 FORGED \u001b[2J"' }
  expect(issuesText([forged])).toBe('`a ` is not "x 2026 FORGED  [2J"')
})
