import {
  InvalidRequestError,
  type OrderRecord,
  RequestAbortedError,
  responseInfo,
} from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import { all } from '../../support/calls.ts'
import { clientOver } from '../../support/client.ts'
import { it } from '../../support/history.ts'
import { anonymousOrder, failure, Lab, order } from '../../support/lab.ts'

function labWith(orders: number): Lab {
  const lab = new Lab()
  // The sandbox lists the newest orders first.
  for (let amount = orders - 1; amount >= 0; amount--) lab.sandbox.addOrder({ amount })
  return lab
}

const amounts = (items: readonly { readonly amount: number }[]): number[] => items.map(({ amount }) => amount)

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

/**
 * A lab with one placed order, one refused order, and two orders whose process died, one of them
 * after the charge.
 */
async function labAfterCrash(): Promise<Lab> {
  const lab = new Lab()
  await lab.dies((orders) => orders.create(order('charged')))
  await lab.dies((orders) => orders.create(order('lost')), { charged: false })
  lab.runtime.jump(3 * 60_000)
  return lab
}

it('an awaited list is its first page, fetched with one request', async () => {
  const lab = labWith(7)
  const page = await lab.orders.list({ limit: 3, offset: 2 }, { prefetch: 4 })
  expect(amounts(page.items)).toEqual([2, 3, 4])
  expect(page).toMatchObject({ offset: 2, limit: 3 })
  expect(responseInfo(page)?.status).toBe(200)
  expect(lab.sandbox.requests).toHaveLength(1)
})

it('an awaited list is an empty page if it has no rows', async () => {
  const page = await labWith(0).client().orders.list()
  expect(page.items).toEqual([])
  expect(await page.nextPage()).toBeUndefined()
  expect(await all(page)).toEqual([])
})

it('an awaited list becomes JSON with its items, as a route handler would send it', async () => {
  const page = await labWith(2).client().orders.list({ limit: 2 })
  const sent = JSON.parse(JSON.stringify(page))
  expect(Object.keys(sent)).toEqual(['items', 'offset', 'limit'])
  expect(amounts(sent.items)).toEqual([0, 1])
})

it('a list that was not awaited throws when it is converted to JSON, instead of becoming {}', () => {
  const client = labWith(2).client()
  for (const unread of [client.orders.list(), client.services.list(), client.orders.recover()])
    expect(() => JSON.stringify({ unread })).toThrow(InvalidRequestError)
})

it('an async function that returns a list returns its first page', async () => {
  const client = labWith(3).client()
  const handler = async () => client.orders.list()
  expect(amounts((await handler()).items)).toEqual([0, 1, 2])
})

it('an awaited list rejects with the error of its request, even through catch() and finally()', async () => {
  const { client } = clientOver(() => ({ no: 'list' }))
  expect(await failure(client.orders.list())).toMatchObject({ code: 'invalid_response' })
  expect(await client.orders.list().catch(() => 'caught')).toBe('caught')
  let ended = false
  const ending = client.orders.list().finally(() => {
    ended = true
  })
  await expect(ending).rejects.toMatchObject({ code: 'invalid_response' })
  expect(ended).toBe(true)
})

it('nextPage() returns page after page, then undefined', async () => {
  const lab = labWith(7)
  const found: number[][] = []
  let page = await lab.orders.list({ limit: 3 })
  for (;;) {
    found.push(amounts(page.items))
    const next = await page.nextPage()
    if (next === undefined) break
    page = next
  }
  expect(found).toEqual([[0, 1, 2], [3, 4, 5], [6]])
})

it('a page iterates its own items and all later items, any number of times', async () => {
  const lab = labWith(8)
  const client = lab.client()
  const first = await client.orders.list({ limit: 3 })
  const second = await first.nextPage()
  for (let round = 0; round < 2; round++) {
    expect(amounts(await all(first))).toEqual(upTo(8))
    expect(second && amounts(await all(second))).toEqual(upTo(8).slice(3))
    expect(amounts((await first.nextPage())?.items ?? [])).toEqual([3, 4, 5])
  }
  for await (const page of client.orders.list({ limit: 3 }).pages())
    expect(amounts(await all(page))).toEqual(upTo(8).slice(page.offset))
})

it('a page does not repeat a row that moved from it to the next page', async () => {
  let rows = upTo(6).map((amount) => ({ id: `ord_${amount}`, status: 'done', amount }))
  const { client } = clientOver(({ url }) => {
    const offset = Number(url.searchParams.get('offset') ?? 0)
    return rows.slice(offset, offset + 3)
  })
  const first = await client.orders.list({ limit: 3 })
  rows = [{ id: 'new', status: 'done', amount: 99 }, ...rows]
  expect(amounts((await first.nextPage())?.items ?? [])).toEqual([3, 4])
  expect(amounts(await all(first))).toEqual(upTo(6))
})

it("a page stops with its list's signal, and no further request is sent", async () => {
  const lab = labWith(8)
  const controller = new AbortController()
  const page = await lab.orders.list({ limit: 3 }, { signal: controller.signal })
  controller.abort()
  expect(await failure(page.nextPage().then((next) => next))).toMatchObject({ code: 'aborted' })
  await expect(all(page)).rejects.toThrow(RequestAbortedError)
  expect(lab.sandbox.requests).toHaveLength(1)
})

it('an awaited recover() settles every order and counts the outcomes', async () => {
  const lab = await labAfterCrash()
  const summary = await lab.orders.recover()
  expect(summary).toEqual({ created: 2, rejected: 0, inProgress: 0, stillOpen: 0, needsAttention: [] })
  lab.sandbox.expectChargedOnce('charged')
  lab.sandbox.expectChargedOnce('lost')
  lab.sandbox.expectCharges(2)
})

it('an awaited recover() reports refused, open and busy orders, and those that need a person', async () => {
  const lab = await labAfterCrash()
  lab.drain()
  expect(await lab.client({ maxRetries: 0 }).orders.recover()).toMatchObject({
    created: 1,
    needsAttention: [{ outcome: 'needs_attention', reason: 'refused', record: { externalOrderId: 'lost' } }],
  })
  const cut = await labAfterCrash()
  const broken = cut.client({ fetch: () => Promise.reject(new TypeError('down')) })
  expect(await broken.orders.recover()).toMatchObject({ created: 0, stillOpen: 2, needsAttention: [] })
  const early = new Lab()
  await early.dies((orders) => orders.create(order('live')))
  expect(await early.elsewhere().orders.recover()).toMatchObject({ created: 0, inProgress: 1 })
})

it('recover() does nothing until it is awaited or iterated', async () => {
  const lab = await labAfterCrash()
  const sent = lab.posts.length
  lab.orders.recover()
  await lab.runtime.settle()
  expect(lab.posts).toHaveLength(sent)
})

it('recover() can be used once: a second use is an error and sends nothing', async () => {
  const lab = await labAfterCrash()
  const run = lab.orders.recover()
  await run
  const sent = lab.sandbox.requests.length
  for (const use of [
    async () => await run,
    () => all(run),
    () => run.catch((error) => Promise.reject(error)),
  ]) {
    const error = await failure(use())
    expect(error).toBeInstanceOf(InvalidRequestError)
    expect(error.charged).toBe('unknown')
  }
  const iterated = lab.orders.recover()
  await all(iterated)
  await expect(iterated).rejects.toThrow(InvalidRequestError)
  expect(lab.sandbox.requests).toHaveLength(sent)
})

it('an awaited recover() rejects when its signal fires', async () => {
  const lab = await labAfterCrash()
  const run = lab.orders.recover({ signal: AbortSignal.abort() })
  expect(await failure(run)).toMatchObject({ code: 'aborted' })
})

it('an awaited createMany() places every row once, and counts new, replayed and failed orders', async (lab) => {
  const rows = [order('a'), order('b'), anonymousOrder(), { ...order('c'), quantity: 0 }]
  const summary = await lab.orders.createMany(rows)
  expect(summary).toMatchObject({ created: 2, replayed: 0, failed: 2 })
  expect(
    summary.failures.map(({ ok, request, error, charged }) => [ok, request, error.code, charged]),
  ).toEqual([
    [false, rows[2], 'invalid_request', 'no'],
    [false, rows[3], 'invalid_request', 'no'],
  ])
  expect(await lab.orders.createMany([order('a'), order('d')])).toEqual({
    created: 1,
    replayed: 1,
    failed: 0,
    failures: [],
  })
  lab.sandbox.expectCharges(3)
})

it('createMany() can be used once: a second use is an error, reads no row and sends nothing', async (lab) => {
  let read = 0
  function* rows() {
    for (const reference of ['a', 'b']) {
      read++
      yield order(reference)
    }
  }
  const run = lab.orders.createMany(rows())
  expect(read).toBe(0)
  expect(await all(run)).toHaveLength(2)
  await expect(run).rejects.toThrow(InvalidRequestError)
  expect(read).toBe(2)
  lab.sandbox.expectCharges(2)
})

describe('what is remembered, awaited', () => {
  const names = (records: readonly OrderRecord[]) =>
    records.map(({ externalOrderId }) => externalOrderId).sort()

  it('awaited remembered() is an array, and each await reads again', async () => {
    const lab = await labAfterCrash()
    const { orders } = lab
    await orders.create(order('done'))
    const open = orders.unresolved()
    const since = orders.remembered({ since: 0 })
    const named = orders.remembered({ externalOrderId: 'done' })
    const compared = orders.reconcile()
    for (let round = 0; round < 2; round++) {
      expect(names(await open)).toEqual(['charged', 'lost'])
      expect(names(await all(open))).toEqual(['charged', 'lost'])
      expect(names(await since)).toEqual(['charged', 'done', 'lost'])
      expect(names(await named)).toEqual(['done'])
      expect((await compared).map(({ kind }) => kind).sort()).toEqual(['matched', 'matched', 'only_local'])
    }
    await orders.recover()
    expect(await open).toEqual([])
  })

  it('remembered() reads nothing until it is used', async () => {
    const lab = await labAfterCrash()
    const sent = lab.sandbox.requests.length
    lab.orders.reconcile()
    await lab.runtime.settle()
    expect(lab.sandbox.requests).toHaveLength(sent)
  })
})
