import { expect } from 'vitest'
import type { CreateManyRow } from '../../../src/call-options.ts'
import type { CreateOrderRequest } from '../../../src/schemas/order.ts'
import { throwing } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { failure, type Lab, order } from '../../support/lab.ts'
import { on } from '../../support/stores.ts'

const metadata = { externalOrderId: 'r1' }
const invalid = order('r1', { quantity: -1 })

/** The error of the only row of createMany(). */
async function failureOf(lab: Lab, row: unknown): Promise<unknown> {
  const { failures } = await lab.orders.createMany([row as CreateManyRow])
  return failures[0]?.error
}

it.each([
  ['charged', (lab: Lab) => lab.create(), 'yes'],
  ['in doubt', (lab: Lab) => lab.doubted(), 'unknown'],
])(
  'an order that is %s is reported as remembered, even if its record is no longer valid',
  async (lab, _what, leave, charged) => {
    await leave(lab)
    const told = {
      code: 'invalid_request',
      charged,
      externalOrderId: 'r1',
      idempotencyKey: lab.posts[0]?.key,
    }
    expect(await failure(lab.create(invalid))).toMatchObject(told)
    expect(await failureOf(lab, invalid)).toMatchObject(told)
    lab.sandbox.expectCharges(1)
  },
)

it.each<[string, (lab: Lab) => Promise<unknown>]>([
  ['an option of create()', (lab) => failure(lab.create(order('r1'), { timeout: -1 }))],
  ['a key of create()', (lab) => failure(lab.create(order('r1'), { idempotencyKey: 'a b' }))],
  ['a row of createMany()', (lab) => failureOf(lab, { request: { ...order('r1'), quantity: 'many' } })],
])('a charged order is reported as charged if %s is wrong', async (lab, _what, failing) => {
  const { id } = await lab.create()
  expect(await failing(lab)).toMatchObject({ code: 'invalid_request', charged: 'yes', orderId: id })
  lab.sandbox.expectCharges(1)
})

/** An invalid request whose reference comes from a getter. */
const got = (read: () => object): object =>
  Object.defineProperty({ ...invalid }, 'metadata', { get: read, enumerable: true })

it.each<[string, () => object]>([
  ['toJSON()', () => ({ toJSON: () => invalid })],
  ['a getter', () => got(() => metadata)],
  ['toJSON() of metadata', () => ({ ...invalid, metadata: { toJSON: () => metadata } })],
  [
    'toJSON() of the reference',
    () => ({ ...invalid, metadata: { externalOrderId: { toJSON: () => 'r1' } } }),
  ],
])(
  'a charged order is reported as charged if its invalid request names it by %s',
  async (lab, _how, make) => {
    const { id } = await lab.create()
    const request = make() as CreateOrderRequest
    const wrong = { code: 'invalid_request', charged: 'yes', orderId: id }
    expect(await failure(lab.create(request))).toMatchObject(wrong)
    expect(await failure(lab.create(request, { timeout: -1 }))).toMatchObject(wrong)
    expect(await failureOf(lab, request)).toMatchObject(wrong)
  },
)

it('an invalid request whose getter fails reports charged no', async (lab) => {
  const request = got(throwing('no reference')) as CreateOrderRequest
  await expect(lab.create(request)).rejects.toThrow('no reference')
  expect(await failure(lab.create(request, { timeout: -1 }))).toMatchObject({ charged: 'no' })
})

it('an invalid order reports charged no if nothing is remembered, and unknown if the store cannot be read', async (lab) => {
  expect(await failure(lab.create(invalid))).toMatchObject({ charged: 'no' })
  const blind = lab.elsewhere({}, on('get', 'rejects')).orders.create(invalid)
  expect(await failure(blind)).toMatchObject({ code: 'invalid_request', charged: 'unknown' })
})
