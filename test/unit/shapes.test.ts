import { CustomerOrderingClient, responseInfo } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { describe, expect, it } from 'vitest'

/** The functions behind an object's own accessors. */
function accessorsOf(object: object): (() => unknown)[] {
  return Object.values(Object.getOwnPropertyDescriptors(object)).flatMap(({ get }) => get ?? [])
}

// V8 keeps what an accessor of an object literal closes over until its next full garbage collection, so a server that
// makes many such objects copies each into the old generation.
describe('what is made in great number has no accessors of its own', () => {
  it('what came with an order, a read and a page', async () => {
    const sandbox = createSandbox()
    const client = new CustomerOrderingClient({
      baseUrl: sandbox.baseUrl,
      apiKey: sandbox.apiKey,
      fetch: sandbox.fetch,
      account: 'shop',
      logLevel: 'off',
    })
    const [service] = await client.services.list().toArray({ max: 10 })
    const order = await client.orders.create({
      serviceId: service?.productId ?? '',
      target: '@someone',
      quantity: 100,
      metadata: { externalOrderId: 'invoice-4711' },
    })
    const page = await client.orders.list().page()
    for (const result of [order, await client.orders.retrieve(order.id), page]) {
      const info = responseInfo(result) ?? {}
      expect(info).toMatchObject({ status: expect.any(Number), headers: expect.any(Headers) })
      expect(accessorsOf(info)).toEqual([])
    }
  })

  it('sandboxes share the accessors of what they show as it is now', () => {
    const [one, other] = [createSandbox(), createSandbox()]
    expect(accessorsOf(one)).toHaveLength(4)
    expect(accessorsOf(one)).toEqual(accessorsOf(other))
    one.topUp(one.customerId, 1)
    const copy = { ...one }
    expect(copy).toMatchObject({ apiKey: one.apiKey, organizationApiKey: one.organizationApiKey })
    expect(copy.behaviour).toBe(one.behaviour)
    expect(copy.ledger).toBe(one.ledger)
  })
})
