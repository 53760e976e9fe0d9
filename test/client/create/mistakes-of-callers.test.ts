import { type CreateOrderRequest, InvalidRequestError } from 'customer-ordering-sdk'
import { expect } from 'vitest'
import { deferred } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { anonymousOrder, failure, type Lab, order } from '../../support/lab.ts'

it('the error of an order that is not valid names the reference of that order', async (lab) => {
  const error = await failure(lab.create(order('r1', { quantity: 1.5 })))
  expect(error).toMatchObject({ code: 'invalid_request', charged: 'no', externalOrderId: 'r1' })
  expect(error.supportReference).toEqual({ externalOrderId: 'r1' })
  lab.sandbox.expectCharges(0)
})

it('an option of another library is answered with ours: parallel', (lab) => {
  // @ts-expect-error as a program in JavaScript may pass it
  expect(() => lab.orders.createMany([], { parallel: 4 })).toThrow('concurrency')
})

it.each([
  ['is misspelt', { as: 'Created', orderId: 'ord_1' }],
  ['is missing', {}],
  ['names no order although it states that one was created', { as: 'created' }],
  ['names an order although it abandons it', { as: 'abandoned', orderId: 'ord_1' }],
])("a person's decision is rejected if it %s, and the record does not change", async (lab, _, resolution) => {
  await lab.doubted()
  const before = await lab.row('ref:r1')
  // @ts-expect-error as a form or a script may send it
  const decided = lab.orders.resolve({ externalOrderId: 'r1' }, resolution)
  await expect(decided).rejects.toThrow(InvalidRequestError)
  expect(await lab.row('ref:r1')).toEqual(before)
})

it.each(['resolve', 'forget', 'remembered'] as const)(
  '%s rejects a decision that identifies an order by two names',
  async ({ orders }, method) => {
    const names = { externalOrderId: 'r2', idempotencyKey: 'other' }
    const call = async (): Promise<unknown> =>
      method === 'resolve' ? orders.resolve(names, { as: 'abandoned' }) : orders[method](names)
    await expect(call()).rejects.toThrow(InvalidRequestError)
  },
)

const bare = anonymousOrder()
const reactive = (name: string): object =>
  Object.defineProperty({}, name, { enumerable: true, get: () => undefined })
it.each<[string, object, object?]>([
  ['options.idempotencyKey', bare, { idempotencyKey: undefined }],
  ['options.idempotencyKey', bare, reactive('idempotencyKey')],
  ['', bare, Object.create(Object.assign(Object.create(null), { idempotencyKey: 'k1' }))],
  ['metadata', { ...bare, metadata: undefined }],
  // Vue makes a getter of each field.
  ['metadata.externalOrderId', { ...bare, metadata: reactive('externalOrderId') }],
  ['idempotencyKey', { ...bare, idempotencyKey: 'k1' }],
  ['idempotencyKey', { ...bare, idempotencyKey: undefined }],
  ['metdata', { ...bare, metdata: { externalOrderId: 'inv-1' } }],
  ['signal', { ...order('inv-1'), signal: new AbortController().signal }],
  ['timeout', { ...order('inv-1'), timeout: 5000 }],
  ['quantitiy', { ...order('inv-1'), quantitiy: 2 }],
])(
  'an order whose name is missing is rejected before anything is sent: %s',
  async (lab, path, wrong, options) => {
    const request = wrong as CreateOrderRequest
    const refused = { code: 'invalid_request', charged: 'no', issues: [{ path }] }
    expect(await failure(lab.create(request, options))).toMatchObject(refused)
    if (options === undefined && !path.startsWith('metadata')) {
      const { failures } = await lab.orders.createMany([{ request, idempotencyKey: 'k1' }])
      expect(failures).toMatchObject([{ charged: 'no', error: refused }])
    }
    expect(lab.sandbox.requests).toEqual([])
  },
)

it.each([
  ['a new order', async () => {}],
  ['a refused order', (lab: Lab) => lab.refused()],
] as const)(
  'an invalid or aborted call does not report an order as uncharged while another call places it: %s',
  async (lab, _what, before) => {
    await before(lab)
    const gate = deferred()
    const { orders } = lab.client({ apiKey: () => gate.promise.then(() => lab.sandbox.apiKey) })
    const { ending } = await lab.begin(() => orders.create(order('r1')))
    const wrong = await failure(orders.create(order('r1', { quantity: -1 })))
    expect(wrong).toMatchObject({ code: 'invalid_request', charged: 'unknown', externalOrderId: 'r1' })
    const aborted = await failure(orders.create(order('r1'), { signal: AbortSignal.abort() }))
    expect(aborted).toMatchObject({ code: 'aborted', charged: 'unknown' })
    gate.resolve()
    await ending
    lab.charged()
  },
)

it('an undefined name does not prevent an order with another name from being placed once', async (lab) => {
  const request = { ...order('inv-1'), sourceSystem: 'shop', note: 'quick', services: 2 }
  for (let call = 0; call < 2; call++) await lab.create(request, { idempotencyKey: undefined })
  lab.charged('inv-1')
  expect(JSON.parse(lab.posts[0]?.body ?? '')).toEqual(request)
})

it('a row of createMany() that is none fails, and the other rows are placed', async (lab) => {
  // @ts-expect-error as a program without types may send it
  const summary = await lab.orders.createMany(['x', null, {}, { request: {} }, order('r6')])
  expect(summary).toMatchObject({ created: 1, failed: 4 })
  for (const { charged, error } of summary.failures)
    expect([charged, error.code]).toEqual(['no', 'invalid_request'])
  lab.charged('r6')
})
