import { CustomerOrderingClient, responseInfo } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { describe, expect, it } from 'vitest'
import { collect } from '../../support/heap.ts'

function lab() {
  const sandbox = createSandbox()
  const { baseUrl, apiKey, fetch } = sandbox
  const client = new CustomerOrderingClient({ baseUrl, apiKey, fetch, account: 'shop', logLevel: 'off' })
  const [service] = sandbox.services()
  const serviceId = service?.productId ?? ''
  const request = (externalOrderId: string) => ({
    serviceId,
    target: '@someone',
    quantity: 100,
    metadata: { externalOrderId },
  })
  return { client, request }
}

/** The requests and signals that are still in memory when only the results can keep them. */
async function kept(refs: readonly WeakRef<object>[]): Promise<number> {
  // Wait a turn: a WeakRef keeps its target until its own turn ends.
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  return refs.filter((ref) => ref.deref() !== undefined).length
}

describe('a result that its caller keeps', () => {
  it('a result that its caller keeps retains neither the request nor the signal of its call', async () => {
    const { client, request } = lab()
    const refs: WeakRef<object>[] = []
    const create = async (reference: string) => {
      const body = request(reference)
      const { signal } = new AbortController()
      refs.push(new WeakRef(body), new WeakRef(body.metadata), new WeakRef(signal))
      return await client.orders.create(body, { signal })
    }
    const read = async (id: string) => {
      const { signal } = new AbortController()
      refs.push(new WeakRef(signal))
      return await client.orders.retrieve(id, { signal })
    }
    const order = await create('invoice-1')
    const results = [order, await create('invoice-1'), await create('invoice-2'), await read(order.id)]
    expect(await kept(refs)).toBe(0)
    expect(results.map((result) => responseInfo(result)?.attempts)).toEqual([1, 0, 1, 1])
  })

  // V8 keeps an object whose literal has accessors, and everything in their closures, until the
  // next full garbage collection.
  it('the response details of a result have no accessors', async () => {
    const { client, request } = lab()
    const order = await client.orders.create(request('invoice-1'))
    const page = await client.orders.list()
    for (const result of [order, await client.orders.retrieve(order.id), page]) {
      const info = responseInfo(result) ?? {}
      expect(info).toMatchObject({ status: expect.any(Number), headers: expect.any(Headers) })
      expect(Object.values(Object.getOwnPropertyDescriptors(info)).flatMap(({ get }) => get ?? [])).toEqual(
        [],
      )
    }
  })
})
