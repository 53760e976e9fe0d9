import {
  ConfigurationError,
  type CreateOrderRequest,
  CustomerOrderingClient,
  InvalidRequestError,
} from 'customer-ordering-sdk'
import { describe, expect, it } from 'vitest'
import { Lab } from '../../support/lab.ts'

const order = (externalOrderId: string): CreateOrderRequest => ({
  serviceId: 'svc_standard',
  target: '@ada',
  quantity: 1,
  metadata: { externalOrderId },
})

function setUp() {
  const lab = new Lab()
  return { sandbox: lab.sandbox, client: lab.client() }
}

it('the error of an order that is not valid names the reference of that order', async () => {
  const { client, sandbox } = setUp()
  const error = await client.orders.create({ ...order('r1'), quantity: 1.5 }).catch((reason) => reason)
  expect(error).toMatchObject({ code: 'invalid_request', charged: 'no', externalOrderId: 'r1' })
  expect(error.supportReference).toEqual({ externalOrderId: 'r1' })
  sandbox.expectCharges(0)
})

it('an option of another library is answered with ours: parallel', async () => {
  const { client } = setUp()
  // @ts-expect-error as a program in JavaScript may pass it
  expect(() => client.orders.createMany([], { parallel: 4 })).toThrow('did you mean concurrency?')
})

it.each([
  ['is misspelt', { as: 'Created', orderId: 'ord_1' }],
  ['is missing', {}],
  ['names no order although it states that one was created', { as: 'created' }],
  ['names an order although it abandons it', { as: 'abandoned', orderId: 'ord_1' }],
])("a person's decision is rejected if it %s, and the record does not change", async (_, resolution) => {
  const { sandbox, client } = setUp()
  sandbox.faults.add({ action: { type: 'commitThenDrop' } })
  await expect(client.orders.create(order('r1'), { maxRetries: 0 })).rejects.toThrow()
  // @ts-expect-error as a form or a script may send it
  await expect(client.orders.resolve({ externalOrderId: 'r1' }, resolution)).rejects.toThrow(
    InvalidRequestError,
  )
  await client.orders.create(order('r1'))
  sandbox.expectChargedOnce('r1')
})

it.each(['resolve', 'forget', 'remembered'] as const)(
  '%s rejects a decision that identifies an order by two names',
  async (method) => {
    const { client } = setUp()
    const names = { externalOrderId: 'r2', idempotencyKey: 'other' }
    const call = async (): Promise<unknown> =>
      method === 'resolve' ? client.orders.resolve(names, { as: 'abandoned' }) : client.orders[method](names)
    await expect(call()).rejects.toThrow(InvalidRequestError)
  },
)

describe('a name of an order that did not arrive', () => {
  const bare = { serviceId: 'svc_standard', target: '@ada', quantity: 1 }
  it.each<[string, unknown, object | undefined]>([
    ['options.idempotencyKey', bare, { idempotencyKey: undefined }],
    ['metadata', { ...bare, metadata: undefined }, undefined],
    ['idempotencyKey', { ...bare, idempotencyKey: 'k1' }, undefined],
    ['idempotencyKey', { ...bare, idempotencyKey: undefined }, undefined],
    ['metdata', { ...bare, metdata: { externalOrderId: 'inv-1' } }, undefined],
    ['signal', { ...order('inv-1'), signal: new AbortController().signal }, undefined],
    ['timeout', { ...order('inv-1'), timeout: 5000 }, undefined],
    ['quantitiy', { ...order('inv-1'), quantitiy: 2 }, undefined],
  ])(
    'an order whose name is missing is rejected before anything is sent: %s',
    async (path, request, options) => {
      const { sandbox, client } = setUp()
      const { orders } = client
      const refused = { code: 'invalid_request', charged: 'no', issues: [{ path }] }
      await expect(orders.create(request as never, options)).rejects.toMatchObject(refused)
      if (options === undefined && path !== 'metadata') {
        const keyed = { request, idempotencyKey: 'k1' } as never
        for await (const result of orders.createMany([keyed]))
          expect(result).toMatchObject({ charged: 'no', error: refused })
      }
      expect(sandbox.requests).toEqual([])
    },
  )

  it('an undefined name does not prevent an order with another name from being placed once', async () => {
    const { sandbox, client } = setUp()
    const request = { ...order('inv-1'), sourceSystem: 'shop', note: 'quick', services: 2 }
    await client.orders.create(request, { idempotencyKey: undefined })
    await client.orders.create(request, { idempotencyKey: undefined })
    sandbox.expectChargedOnce('inv-1')
    expect(JSON.parse(sandbox.requests[0]?.body ?? '')).toEqual(request)
  })
})

it('a row of createMany() that is none fails, and the other rows are placed', async () => {
  const { sandbox, client } = setUp()
  // @ts-expect-error as a program without types may send it
  const summary = await client.orders.createMany(['x', null, {}, { request: {} }, order('r6')])
  expect(summary).toMatchObject({ created: 1, failed: 4 })
  for (const { charged, error } of summary.failures)
    expect([charged, error.code]).toEqual(['no', 'invalid_request'])
  sandbox.expectChargedOnce('r6')
})

it('the constructor rejects a base URL that contains the version', () => {
  const options = { baseUrl: 'https://api.example.com/v1/', apiKey: 'key', dangerouslyAllowBrowser: true }
  expect(() => new CustomerOrderingClient(options)).toThrow(ConfigurationError)
})
