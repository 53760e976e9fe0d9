import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { balanceSchema } from '../../src/schemas/balance.ts'
import { anyObject } from '../../src/schemas/check.ts'
import { createOrderRequestSchema, orderSchema } from '../../src/schemas/order.ts'
import { serviceSchema } from '../../src/schemas/service.ts'
import type { Shape } from '../../src/schemas/shape.ts'
import type { StandardSchemaV1 } from '../../src/schemas/standard-schema.ts'
import { effort } from '../support/effort.ts'

type Fields = readonly (readonly [name: string, json: string])[]

/** JSON values of every kind, including those at the limits of the schemas. */
const odd = fc.oneof(
  fc.constantFrom(...'null true false 0 -0 1 -1 0.5 1e999 -1e999 1e300 9007199254740991'.split(' ')),
  fc.constantFrom('9007199254740992', '-9007199254740991', '-9007199254740992', '5e-324', '"1"', '""', '" "'),
  fc.constantFrom(...['\u00a0', '\ufeff', '\u200b', '\n', '\ud800', 'x'].map((text) => JSON.stringify(text))),
  fc.constantFrom(
    ...'[] {} [{}] {"__proto__":{"a":1}} {"externalOrderId":"e"} {"externalOrderId":""}'.split(' '),
  ),
  fc.constantFrom('{"externalOrderId":null}', '{"externalOrderId":"e","__proto__":[1]}', '{"toString":1}'),
  fc.jsonValue().map((value) => JSON.stringify(value)),
)
/** Names of fields, and names with a meaning in JavaScript. */
const name = fc.oneof(
  fc.constantFrom(...'id status amount currency productId minQuantity maxQuantity stepQuantity'.split(' ')),
  fc.constantFrom('serviceId', 'target', 'quantity', 'metadata', 'externalOrderId'),
  fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', '', '0', 'then'),
  fc.string(),
)

type Mutation =
  | { readonly kind: 'leave out'; readonly at: number }
  | { readonly kind: 'repeat'; readonly at: number }
  | { readonly kind: 'change'; readonly at: number; readonly json: string }
  | { readonly kind: 'add'; readonly at: number; readonly name: string; readonly json: string }

const at = fc.nat({ max: 7 })
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ kind: fc.constant('leave out' as const), at }),
  fc.record({ kind: fc.constant('repeat' as const), at }),
  fc.record({ kind: fc.constant('change' as const), at, json: odd }),
  fc.record({ kind: fc.constant('add' as const), at, name, json: odd }),
)

function mutated(fields: Fields, change: Mutation): Fields {
  const place = change.at % (fields.length + 1)
  const [before, after] = [fields.slice(0, place), fields.slice(place + 1)]
  const field = fields[place]
  if (change.kind === 'add') return [...before, [change.name, change.json], ...fields.slice(place)]
  if (field === undefined) return fields
  if (change.kind === 'leave out') return [...before, ...after]
  if (change.kind === 'repeat') return [...fields, field]
  return [...before, [field[0], change.json], ...after]
}

const textOf = (fields: Fields): string =>
  `{${fields.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(',')}}`

const money = { amount: 5, currency: 'EUR' }
const rules = { minQuantity: 1, maxQuantity: 9.5, stepQuantity: 0.5 }
const request = { serviceId: 's', target: 't', quantity: 1, metadata: { externalOrderId: 'e' } }

const cases: readonly [name: string, schema: Shape<object>, valid: Readonly<Record<string, unknown>>][] = [
  ['an order', orderSchema, { id: 'o', status: 's', ...money, metadata: {} }],
  ['a balance', balanceSchema, money],
  ['a service', serviceSchema, { productId: 'p', ...money, ...rules }],
  ['a request', createOrderRequestSchema, request],
]

const answerOf = (schema: StandardSchemaV1, value: unknown): StandardSchemaV1.Result<unknown> => {
  const result = schema['~standard'].validate(value)
  if ('then' in result) throw new Error('answered later')
  return result
}
/**
 * The schema's decision and its reason. Compare with Node's assert, because `expect` takes a field
 * `constructor` for a class.
 */
const decision = (result: StandardSchemaV1.Result<unknown>): unknown =>
  result.issues === undefined
    ? { value: result.value }
    : { issues: result.issues.map(({ message, path }) => ({ message, path })) }

describe.each(cases)('%s', (_name, schema, valid) => {
  const whole = schema.schema()
  const accessor = { get: () => 1, enumerable: true }
  const fields: Fields = Object.entries(valid).map(([key, value]) => [key, JSON.stringify(value)])

  test('the check at sight agrees with the schema for any JSON', () => {
    let accepted = 0
    let refused = 0
    fc.assert(
      fc.property(fc.array(mutation, { maxLength: 4 }), (mutations) => {
        const text = textOf(mutations.reduce(mutated, fields))
        const result = answerOf(schema, JSON.parse(text))
        deepStrictEqual(decision(result), decision(answerOf(whole, JSON.parse(text))))
        if (result.issues === undefined) accepted++
        else refused++
      }),
      { numRuns: effort(2_000, 5_000) },
    )
    // A generator that made only one of the two would prove nothing.
    expect(Math.min(accepted, refused)).toBeGreaterThan(500)
  })

  test('the check at sight agrees with the schema for a value that is not an object', () => {
    fc.assert(
      fc.property(odd, (text) => {
        const value: unknown = JSON.parse(text)
        deepStrictEqual(decision(answerOf(schema, value)), decision(answerOf(whole, value)))
      }),
    )
  })

  test.each([
    ['without a prototype', () => Object.assign(Object.create(null), valid)],
    ['of a class', () => Object.assign(new (class Row {})(), valid)],
    ['that inherits its fields', () => Object.create(valid)],
    ['with an accessor', () => Object.defineProperty({ ...valid }, 'more', accessor)],
    ['with an undefined field', () => ({ ...valid, more: undefined })],
    ['with metadata that is undefined', () => ({ ...valid, metadata: undefined })],
    ['that is a proxy', () => new Proxy({ ...valid }, {})],
  ])('the check at sight agrees with the schema for an object %s', (_what, value) => {
    expect(decision(answerOf(schema, value()))).toEqual(decision(answerOf(whole, value())))
  })

  test('a valid value is returned without a copy, so that a page is not copied', () => {
    const value = JSON.parse(textOf(fields))
    expect(answerOf(schema, value)).toEqual({ value })
    expect((answerOf(schema, value) as { readonly value: unknown }).value).toBe(value)
  })
})

test('any object is accepted without members that change its prototype, and nothing else is', () => {
  expect(anyObject(JSON.parse('{"a":1,"__proto__":{"b":2}}'))).toStrictEqual({ a: 1 })
  for (const value of [null, undefined, [], [{}], 'text', 1, true]) expect(anyObject(value)).toBeUndefined()
})
