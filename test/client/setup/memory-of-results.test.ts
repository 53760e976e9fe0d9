import { responseInfo } from 'customer-ordering-sdk'
import { expect } from 'vitest'
import { collect } from '../../support/heap.ts'
import { it } from '../../support/history.ts'
import { order } from '../../support/lab.ts'

/** The requests and signals that are still in memory when only the results can keep them. */
async function kept(refs: readonly WeakRef<object>[]): Promise<number> {
  let left = refs
  // A WeakRef keeps its target until its own turn ends, and on a busy machine the client ends its work later.
  for (let turn = 0; turn < 20 && left.length > 0; turn++) {
    await new Promise((resolve) => setImmediate(resolve))
    collect()
    left = left.filter((ref) => ref.deref() !== undefined)
  }
  return left.length
}

it('a result that its caller keeps retains neither the request nor the signal of its call', async (lab) => {
  const { orders } = lab
  const refs: WeakRef<object>[] = []
  const create = async (reference: string) => {
    const metadata = { externalOrderId: reference }
    const body = order(reference, { metadata })
    const { signal } = new AbortController()
    refs.push(new WeakRef(body), new WeakRef(metadata), new WeakRef(signal))
    return await orders.create(body, { signal })
  }
  const read = async (id: string) => {
    const { signal } = new AbortController()
    refs.push(new WeakRef(signal))
    return await orders.retrieve(id, { signal })
  }
  const placed = await create('invoice-1')
  const results = [placed, await create('invoice-1'), await create('invoice-2'), await read(placed.id)]
  expect(await kept(refs)).toBe(0)
  expect(results.map((result) => responseInfo(result)?.attempts)).toEqual([1, 0, 1, 1])
})

// V8 keeps an object whose literal has accessors, and everything in their closures, until the
// next full garbage collection.
it('the response details of a result have no accessors', async (lab) => {
  const { orders } = lab
  const placed = await orders.create(order('invoice-1'))
  const page = await orders.list()
  for (const result of [placed, await orders.retrieve(placed.id), page]) {
    const info = responseInfo(result) ?? {}
    expect(info).toMatchObject({ status: expect.any(Number), headers: expect.any(Headers) })
    expect(Object.values(Object.getOwnPropertyDescriptors(info)).flatMap(({ get }) => get ?? [])).toEqual([])
  }
})
