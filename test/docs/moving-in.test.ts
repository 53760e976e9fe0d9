/** Tests the code of docs/guide/from-your-own-fetch.md on services that compare keys differently. */
import { randomUUID } from 'node:crypto'
import {
  type CreateOrderRequest,
  CustomerOrderingClient,
  isCustomerOrderingError,
  type Order,
} from 'customer-ordering-sdk'
import { createSandbox, type Sandbox, type SandboxPreset } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { orderInit } from '../sandbox/caller.ts'
import { exportsOf, programsOf } from './support/pages.ts'

interface Page {
  adopt(
    client: CustomerOrderingClient,
    rows: readonly { readonly reference: string; readonly orderId: string }[],
  ): Promise<string[]>
  settle(
    client: CustomerOrderingClient,
    reference: string,
    request: CreateOrderRequest,
    oldKey: string,
  ): Promise<Order>
}

const programs = programsOf('docs/guide/from-your-own-fetch.md').slice(0, 2)
const page = await exportsOf<Page>('moving-in', programs)

const withoutReference: CreateOrderRequest = { serviceId: 'svc_standard', target: '@ada', quantity: 1 }
const requestOf = (reference: string): CreateOrderRequest => ({
  ...withoutReference,
  metadata: { externalOrderId: reference },
})

/** The old code: a key for each request, and its own JSON. */
async function ownFetch({ baseUrl, apiKey, fetch }: Sandbox, request: CreateOrderRequest, key: string) {
  const response = await fetch(
    `${baseUrl}/v1/orders`,
    orderInit(apiKey, key, JSON.stringify(request, null, 1)),
  )
  return (await response.json()) as Order
}

/** A service with orders that the old code placed, and one whose response it lost. */
async function oldShop(preset: SandboxPreset, lostRequest = requestOf('invoice-4')) {
  // One preset requires a reference, but the case of an old body without one exists at every service.
  const sandbox = createSandbox({ preset, behaviour: { requiredFields: ['target'] } })
  const place = async (reference: string) => {
    const { id: orderId } = await ownFetch(sandbox, requestOf(reference), randomUUID())
    return { reference, orderId }
  }
  const placed = [await place('invoice-1'), await place('invoice-2'), await place('invoice-3')] as const
  const lost = { request: lostRequest, key: randomUUID() }
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
  await expect(ownFetch(sandbox, lost.request, lost.key)).rejects.toThrow()
  const { baseUrl, apiKey, fetch } = sandbox
  const client = new CustomerOrderingClient({ baseUrl, apiKey, fetch, account: 'example.com/shop-eu' })
  return { sandbox, client, placed, lost }
}

function errorCode(error: unknown): string {
  if (!isCustomerOrderingError(error)) throw error
  return error.code
}

describe.each(['default', 'strict-gateway', 'minimal-answers'] as const)(
  'at a service of kind %s',
  (preset) => {
    test('create() charges again for the orders of the old code, if nobody tells the client about them', async () => {
      const { sandbox, client, placed, lost } = await oldShop(preset)
      for (const { reference } of placed) await client.orders.create(requestOf(reference))
      await client.orders.create(lost.request)
      expect(sandbox.ledger).toHaveLength(8)
    })

    test.each([
      { body: 'with its reference', lostRequest: requestOf('invoice-4') },
      { body: 'without a reference', lostRequest: withoutReference },
    ])('after the steps of the page, an old order $body is not charged again', async ({ lostRequest }) => {
      const { sandbox, client, placed, lost } = await oldShop(preset, lostRequest)
      expect(await page.adopt(client, placed)).toEqual([])
      const settled = await page.settle(client, 'invoice-4', lost.request, lost.key).catch(errorCode)
      const conflicts = preset === 'strict-gateway'
      expect(settled).toEqual(conflicts ? 'idempotency_conflict' : expect.any(Object))
      const orderId = sandbox.ledger.at(-1)?.orderId ?? ''
      if (conflicts) {
        expect(await page.adopt(client, [{ reference: 'invoice-4', orderId }])).toEqual([])
        if (lost.request === withoutReference)
          await client.orders.resolve({ idempotencyKey: lost.key }, { as: 'created', orderId })
      }

      expect((await page.settle(client, 'invoice-4', lost.request, lost.key)).id).toBe(orderId)
      const requests = sandbox.requests.length
      expect(await client.orders.unresolved()).toEqual([])
      for (const row of [...placed, { reference: 'invoice-4', orderId }])
        expect((await client.orders.create(requestOf(row.reference))).id).toBe(row.orderId)
      expect(await page.adopt(client, placed)).toEqual([])
      expect(sandbox.requests).toHaveLength(requests)
      expect(sandbox.ledger).toHaveLength(4)
    })
  },
)

test('a refusal of the old key does not settle an order: its first attempt may have bought it', async () => {
  const { sandbox, client, lost } = await oldShop('default', withoutReference)
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'status', status: 402 } })
  const settled = await page.settle(client, 'invoice-4', lost.request, lost.key).catch(errorCode)
  expect(settled).toBe('payment_required')
  expect(await client.orders.remembered({ externalOrderId: 'invoice-4' })).toEqual([])
})

test('an order that is not the one of its row is not adopted, and the others are', async () => {
  const { client, placed } = await oldShop('default')
  const [first, second, third] = placed
  const wrong = { reference: 'invoice-1', orderId: second.orderId }
  expect(await page.adopt(client, [wrong, third])).toEqual([expect.stringContaining('invoice-1')])
  const [record] = await client.orders.remembered({ externalOrderId: 'invoice-1' })
  expect(record).toBeUndefined()
  expect(await page.adopt(client, placed)).toEqual([])
  expect((await client.orders.create(requestOf('invoice-1'))).id).toBe(first.orderId)
})

test('no row with an id that occurs twice is adopted, because a service without references cannot reveal it', async () => {
  const { client, placed } = await oldShop('minimal-answers')
  const [first, second, third] = placed
  const wrong = { reference: 'invoice-1', orderId: second.orderId }
  expect((await page.adopt(client, [wrong, second, third])).sort()).toEqual([
    `invoice-1: another row has the same order id ${second.orderId}`,
    `invoice-2: another row has the same order id ${second.orderId}`,
  ])
  expect(await client.orders.remembered({ externalOrderId: 'invoice-2' })).toEqual([])

  // A wrong id that occurs once is adopted. The page says how to correct it.
  expect(await page.adopt(client, [wrong])).toEqual([])
  expect(await page.adopt(client, [first])).toEqual([expect.stringContaining('invoice-1')])
  expect(await client.orders.forget({ externalOrderId: 'invoice-1' })).toBe(true)
  expect(await page.adopt(client, placed)).toEqual([])
  expect((await client.orders.create(requestOf('invoice-1'))).id).toBe(first.orderId)
})
