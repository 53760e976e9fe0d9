import {
  InvalidRequestError,
  InvalidResponseError,
  type Order,
  RequestAbortedError,
  responseInfo,
  type StandardSchemaV1,
} from 'customer-ordering-sdk'
import { expect } from 'vitest'
import type { ClientOptions } from '../../../src/options.ts'
import { all, throwing } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { failure, type Lab } from '../../support/lab.ts'

type Item = { readonly amount: number }
const upTo = (count: number): number[] => Array.from({ length: count }, (_, amount) => amount)
const amounts = (items: readonly Item[]): number[] => items.map(({ amount }) => amount)
const amountsOf = async (items: AsyncIterable<Item>): Promise<number[]> => amounts(await all(items))

/** Adds orders with the amounts 0, 1, 2 …, which the service lists in this order: the newest first. */
function fill(lab: Lab, count: number): Lab['orders'] {
  for (const amount of upTo(count).reverse()) lab.sandbox.addOrder({ id: `ord_${amount}`, amount })
  return lab.orders
}
const queries = (lab: Lab): string[] => lab.sandbox.requests.map(({ path }) => path.replace(/^[^?]*/, ''))
const listing = (lab: Lab, body: unknown): unknown =>
  lab.fault({ type: 'bytes', body: JSON.stringify(body), status: 200 }, 'always', 'listOrders')

it('the query of a list contains only the given parameters', async (lab) => {
  expect(await amountsOf(fill(lab, 60).list())).toEqual(upTo(60))
  expect(queries(lab)).toEqual(['', '?offset=50', '?offset=60'])
})

it('the query of a list encodes limit, offset and sourceSystem', async (lab) => {
  await all(lab.orders.list({ limit: 3, offset: 4, sourceSystem: 'shop & co' }))
  expect(queries(lab)).toEqual(['?limit=3&offset=4&sourceSystem=shop+%26+co'])
})

const WRONG: readonly unknown[] = [{ limit: 0 }, { limit: 1.5 }, { offset: -1 }, { offset: '3' }, { page: 2 }]
it.each<readonly [params: unknown, options?: object]>([
  ...[...WRONG, { sourceSystem: '' }, null].map((params) => [params] as const),
  ...[-1, 17, 1.5, '4', null, Number.NaN].map((prefetch) => [{}, { prefetch }] as const),
])('a list rejects %j with the options %j immediately, before anything is sent', (lab, params, options) => {
  const { orders, services } = lab.client()
  expect(() => orders.list(params as never, options)).toThrow(InvalidRequestError)
  expect(() => services.list(params as never, options)).toThrow(InvalidRequestError)
  expect(lab.sandbox.requests).toHaveLength(0)
})

it('the query of a list is read when the list is created, not when it is iterated', async (lab) => {
  const params = { limit: 2 }
  const list = lab.orders.list(params)
  params.limit = 4
  await list
  expect(queries(lab)).toEqual(['?limit=2'])
})

type Envelope = NonNullable<ClientOptions['listEnvelope']>
const listed = (lab: Lab, listEnvelope: Envelope) => lab.client({ listEnvelope }).orders

it('listEnvelope defines the envelope of a list', async (lab) => {
  listing(lab, { a: [{ id: 'ord_1', status: 'done', amount: 1 }], b: [], n: 1 })
  const orders = listed(lab, (body) => {
    const { a, n } = body as { a: unknown[]; n: number }
    return { items: a, total: n }
  })
  expect(await amountsOf(orders.list())).toEqual([1])
  expect(lab.sandbox.requests).toHaveLength(1)
  expect(await orders.list()).toMatchObject({ total: 1 })
})

const NO_ITEMS = 'made the option listEnvelope return no array of items'
it.each<[string, (body: unknown) => unknown, message: string]>([
  ['throws', throwing('no'), 'made the option listEnvelope throw'],
  ['returns nothing', () => undefined, NO_ITEMS],
  ['returns no object', () => 5, NO_ITEMS],
  ['returns no array of items', () => ({ items: { length: 1 } }), NO_ITEMS],
])('a list is rejected with an issue of the whole body if listEnvelope %s', async (lab, _, own, message) => {
  const error = await failure(listed(lab, own as Envelope).list())
  expect(error).toBeInstanceOf(InvalidResponseError)
  expect(error).toMatchObject({ issues: [{ path: '', message }] })
})

const rowsOf = (body: unknown) => (body as { data: unknown[] }).data
it.each<[object, asked: string[]]>([
  [{ hasMore: true }, ['', '?offset=3']],
  [{ hasMore: false }, ['']],
  ...[null, 0, '', 'no'].map((hasMore): [object, string[]] => [{ total: '1', hasMore }, ['', '?offset=3']]),
])('a list continues as listEnvelope states, if that is valid: %j', async (lab, more, asked) => {
  fill(lab, 3)
  const orders = listed(lab, (body) => ({ items: rowsOf(body), ...more }))
  expect(await amountsOf(orders.list())).toEqual(upTo(3))
  expect(queries(lab)).toEqual(asked)
})

it.each([0, 2, 4])('listEnvelope may reuse its array of rows, with %d pages ahead', async (lab, prefetch) => {
  fill(lab, 12)
  const shared: unknown[] = []
  const orders = listed(lab, (body) => {
    shared.length = 0
    shared.push(...rowsOf(body))
    return { items: shared }
  })
  expect(await amountsOf(orders.list({ limit: 3 }, { prefetch }))).toEqual(upTo(12))
  const first = await orders.list({ limit: 3 })
  await orders.list({ limit: 3, offset: 3 })
  expect(amounts(first.items)).toEqual(upTo(3))
})

it('a hole in the array of listEnvelope is rejected with its index', async (lab) => {
  fill(lab, 3)
  const orders = listed(lab, (body) => {
    const items: unknown[] = rowsOf(body).slice(0, 1)
    items[2] = items[0]
    return { items }
  })
  expect(await failure(orders.list())).toMatchObject({ issues: [{ path: '[1]', message: 'is missing' }] })
})

it('a page with an invalid row is rejected, and the error names the row', async (lab) => {
  const orders = fill(lab, 3)
  const change = (rows: readonly object[]) => [...rows, { ...rows[0], id: 'ord_4', amount: 0.5 }]
  lab.fault({ type: 'mutateList', change: change as never })
  expect(await failure(orders.list())).toMatchObject({ issues: [{ path: '[3].amount' }] })
})

it('a page of bad rows is rejected at the first bad row, and later rows are not checked', async (lab) => {
  let checked = 0
  const validate = () => {
    checked++
    return { issues: [{ message: 'is never right' }] }
  }
  const picky: StandardSchemaV1<unknown, Order> = { '~standard': { version: 1, vendor: 'test', validate } }
  const { orders } = lab.client({ schemas: { order: picky } })
  const rows = upTo(1000).map((amount) => ({ id: `ord_${amount}`, status: 'done', amount }))
  listing(lab, rows)
  const issues = [{ path: '[0]', message: 'is never right' }]
  expect(await failure(orders.list().toArray({ max: 5 }))).toMatchObject({ code: 'invalid_response', issues })
  expect(checked).toBe(1)
  lab.sandbox.faults.clear()
  listing(lab, [{}, ...rows])
  expect(await failure(orders.list().toArray({ max: 5 }))).toMatchObject({ code: 'invalid_response' })
  expect(checked).toBe(1)
})

it('each page of a list is retried separately', async (lab) => {
  const orders = fill(lab, 5)
  const match = { when: () => lab.sandbox.requests.length % 2 === 1 }
  lab.sandbox.faults.add({ match, action: { type: 'drop' }, times: 'always' })
  expect(await amountsOf(orders.list({ limit: 2 }, { maxRetries: 1 }))).toEqual(upTo(5))
  expect(lab.sandbox.requests).toHaveLength(8)
})

it.each([0, 4])('an abort within a page is like one between pages: prefetch %i', async (lab, prefetch) => {
  const orders = fill(lab, 200)
  const reason = new Error('enough')
  /** The error of a list that is aborted at a row, and the number of rows returned. */
  const abortAt = async (row: number): Promise<readonly [unknown, number]> => {
    const controller = new AbortController()
    let came = 0
    try {
      for await (const { amount } of orders.list({}, { prefetch, signal: controller.signal })) {
        came++
        if (amount === row) controller.abort(reason)
      }
      return [undefined, came]
    } catch (error) {
      return [error, came]
    }
  }
  const [between, all] = await abortAt(49)
  const [within, some] = await abortAt(19)
  expect([all, some]).toEqual([50, 20])
  expect(within).toBeInstanceOf(RequestAbortedError)
  expect(within).toMatchObject({ code: 'aborted', charged: 'no', attempts: 0, cause: reason })
  expect(within).toEqual(between)
  expect(String(within)).toBe(String(between))
})

it.each(['array', 'data', 'items', 'named', 'results'] as const)(
  'a list of a sandbox is read completely in the envelope %s',
  async (lab, listEnvelope) => {
    lab.sandbox.configure({ listEnvelope })
    const orders = fill(lab, 57)
    for (const limit of [10, 19, 57, 100]) expect(await amountsOf(orders.list({ limit }))).toEqual(upTo(57))
    const services = await lab.client().services.list({ limit: 2 }).toArray({ max: 50 })
    expect(services.length).toBeGreaterThan(2)
  },
)

it.each([[{ total: 1 }], [{ hasMore: false }]])(
  'a list ends without an error if offset is ignored and the response states that nothing is left: %j',
  async (lab, more) => {
    listing(lab, { items: [{ id: 'ord_1', status: 'pending', amount: 1 }], ...more })
    expect(await amountsOf(lab.orders.list())).toEqual([1])
    expect(lab.sandbox.requests).toHaveLength(1)
    expect(await lab.orders.reconcile()).toMatchObject([{ kind: 'only_remote' }])
  },
)

it('an awaited list is its first page, fetched with one request, and becomes JSON with its items', async (lab) => {
  const page = await fill(lab, 7).list({ limit: 3, offset: 2 }, { prefetch: 4 })
  expect(amounts(page.items)).toEqual([2, 3, 4])
  expect(page).toMatchObject({ offset: 2, limit: 3 })
  expect(responseInfo(page)?.status).toBe(200)
  expect(lab.sandbox.requests).toHaveLength(1)
  const sent = JSON.parse(JSON.stringify(page))
  expect(Object.keys(sent)).toEqual(['items', 'offset', 'limit'])
  expect(amounts(sent.items)).toEqual([2, 3, 4])
})

it('a list that was not awaited throws when it is converted to JSON, instead of becoming {}', (lab) => {
  const { orders, services } = lab.client()
  for (const unread of [orders.list(), services.list(), orders.recover()])
    expect(() => JSON.stringify({ unread })).toThrow(InvalidRequestError)
})

it('nextPage() returns page after page, then undefined', async (lab) => {
  const found: number[][] = []
  let page: Awaited<ReturnType<Lab['orders']['list']>> | undefined = await fill(lab, 7).list({ limit: 3 })
  for (; page !== undefined; page = await page.nextPage()) found.push(amounts(page.items))
  expect(found).toEqual([[0, 1, 2], [3, 4, 5], [6]])
})

it('a page iterates its own items and all later items, any number of times', async (lab) => {
  const orders = fill(lab, 8)
  const first = await orders.list({ limit: 3 })
  const second = await first.nextPage()
  for (let round = 0; round < 2; round++) {
    expect(await amountsOf(first)).toEqual(upTo(8))
    expect(second && (await amountsOf(second))).toEqual(upTo(8).slice(3))
    expect(amounts((await first.nextPage())?.items ?? [])).toEqual([3, 4, 5])
  }
  for await (const page of orders.list({ limit: 3 }).pages())
    expect(await amountsOf(page)).toEqual(upTo(8).slice(page.offset))
})

it('a page does not repeat a row that moved from it to the next page', async (lab) => {
  const first = await fill(lab, 6).list({ limit: 3 })
  lab.sandbox.addOrder({ amount: 99 })
  expect(amounts((await first.nextPage())?.items ?? [])).toEqual([3, 4])
  expect(await amountsOf(first)).toEqual(upTo(6))
})

it("a page stops with its list's signal, and no further request is sent", async (lab) => {
  const controller = new AbortController()
  const page = await fill(lab, 8).list({ limit: 3 }, { signal: controller.signal })
  controller.abort()
  expect(await failure(page.nextPage().then((next) => next))).toMatchObject({ code: 'aborted' })
  await expect(all(page)).rejects.toThrow(RequestAbortedError)
  expect(lab.sandbox.requests).toHaveLength(1)
})
