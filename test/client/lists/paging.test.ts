import {
  InvalidRequestError,
  InvalidResponseError,
  type Order,
  RequestAbortedError,
  type StandardSchemaV1,
} from 'customer-ordering-sdk'
import type { SandboxOptions } from 'customer-ordering-sdk/sandbox'
import { describe, expect, it } from 'vitest'
import { throwing } from '../../support/calls.ts'
import { clientOver, json } from '../../support/client.ts'
import { Lab } from '../../support/lab.ts'

const order = (number: number) => ({ id: `ord_${number}`, status: 'done', amount: number })
const orders = (count: number) => Array.from({ length: count }, (_, i) => order(i))

/** Returns a page of a list as the API document describes it. */
const cut = <T>(rows: readonly T[], url: URL): T[] => {
  const offset = Number(url.searchParams.get('offset') ?? 0)
  return rows.slice(offset, offset + Number(url.searchParams.get('limit') ?? 50))
}

async function idsOf(items: AsyncIterable<{ readonly id: string }>): Promise<string[]> {
  const found: string[] = []
  for await (const { id } of items) found.push(id)
  return found
}

it('the query of a list contains only the given parameters', async () => {
  const { client, requests } = clientOver(({ url }) => cut(orders(60), url))
  expect(await idsOf(client.orders.list())).toHaveLength(60)
  expect(requests.map(({ url }) => url.search)).toEqual(['', '?offset=50', '?offset=60'])
})

it('the query of a list encodes limit, offset and sourceSystem', async () => {
  const { client, requests } = clientOver(({ url }) => cut(orders(8), url))
  await idsOf(client.orders.list({ limit: 3, offset: 4, sourceSystem: 'shop & co' }))
  expect(requests.map(({ url }) => url.search)).toEqual([
    '?limit=3&offset=4&sourceSystem=shop+%26+co',
    '?limit=3&offset=7&sourceSystem=shop+%26+co',
    '?limit=3&offset=8&sourceSystem=shop+%26+co',
  ])
})

it.each([
  { limit: 0 },
  { limit: 1.5 },
  { offset: -1 },
  { offset: '3' },
  { sourceSystem: '' },
  { page: 2 },
  null,
])('a list rejects %j immediately, before anything is sent', (params) => {
  const { client, requests } = clientOver(() => [])
  expect(() => client.orders.list(params as never)).toThrow(InvalidRequestError)
  expect(() => client.services.list(params as never)).toThrow(InvalidRequestError)
  expect(requests).toHaveLength(0)
})

it('the query of a list is read when the list is created, not when it is iterated', async () => {
  const { client, requests } = clientOver(({ url }) => cut(orders(5), url))
  const params = { limit: 2 }
  const list = client.orders.list(params)
  params.limit = 4
  await list
  expect(requests[0]?.url.search).toBe('?limit=2')
})

it.each([-1, 17, 1.5, '4', null, Number.NaN])(
  'a prefetch of %j is rejected before anything is sent',
  (prefetch) => {
    const { client, requests } = clientOver(() => [])
    const options = { prefetch } as never
    expect(() => client.orders.list({}, options)).toThrow(InvalidRequestError)
    expect(() => client.services.list({}, options)).toThrow(InvalidRequestError)
    expect(requests).toHaveLength(0)
  },
)

it('prefetch is an option of lists only', () => {
  const { client } = clientOver(() => [])
  expect(() => client.orders.reconcile({}, { prefetch: 2 } as never)).toThrow(InvalidRequestError)
})

describe('the envelope of a list', () => {
  const rows = orders(3)

  it('listEnvelope defines the envelope of a list', async () => {
    const { client, requests } = clientOver(({ url }) => ({ a: cut(rows, url), b: rows, n: 3 }), {
      listEnvelope: (body) => {
        const { a, n } = body as { a: unknown[]; n: number }
        return { items: a, total: n }
      },
    })
    expect(await idsOf(client.orders.list())).toHaveLength(3)
    expect(requests).toHaveLength(1)
    expect(await client.orders.list()).toMatchObject({ total: 3 })
  })

  const NO_ITEMS = 'made the option listEnvelope return no array of items'
  it.each<[string, (body: unknown) => unknown, message: string]>([
    ['throws', throwing('no'), 'made the option listEnvelope throw'],
    ['returns nothing', () => undefined, NO_ITEMS],
    ['returns no object', () => 5, NO_ITEMS],
    ['returns no array of items', () => ({ items: { length: 1 } }), NO_ITEMS],
  ])(
    'a list is rejected with an issue of the whole body if listEnvelope %s',
    async (_title, listEnvelope, message) => {
      const { client } = clientOver(() => rows, { listEnvelope: listEnvelope as () => never })
      const pending = client.orders.list()
      await expect(pending).rejects.toThrow(InvalidResponseError)
      await expect(pending).rejects.toMatchObject({ issues: [{ path: '', message }] })
    },
  )

  it.each([
    [true, ['', '?offset=3']],
    [false, ['']],
  ])('a list continues as listEnvelope states: hasMore %s', async (hasMore, asked) => {
    const { client, requests } = clientOver(({ url }) => cut(rows, url), {
      listEnvelope: (body) => ({ items: body as unknown[], hasMore }),
    })
    expect(await idsOf(client.orders.list())).toHaveLength(3)
    expect(requests.map(({ url }) => url.search)).toEqual(asked)
  })

  it.each([0, 2, 4])('listEnvelope may reuse its array of rows, with %d pages ahead', async (prefetch) => {
    const shared: unknown[] = []
    const { client } = clientOver(({ url }) => cut(orders(12), url), {
      listEnvelope: (body) => {
        shared.length = 0
        shared.push(...(body as unknown[]))
        return { items: shared }
      },
    })
    const all = orders(12).map(({ id }) => id)
    expect(await idsOf(client.orders.list({ limit: 3 }, { prefetch }))).toEqual(all)
    const first = await client.orders.list({ limit: 3 })
    await client.orders.list({ limit: 3, offset: 3 })
    expect(first.items.map(({ id }) => id)).toEqual(all.slice(0, 3))
  })

  it('a hole in the array of listEnvelope is rejected with its index', async () => {
    const { client } = clientOver(() => rows, {
      listEnvelope: () => {
        const items: unknown[] = [rows[0]]
        items[2] = rows[2]
        return { items }
      },
    })
    const pending = client.orders.list()
    await expect(pending).rejects.toMatchObject({ issues: [{ path: '[1]', message: 'is missing' }] })
  })

  it.each([null, 0, '', 'no'])(
    'a list ignores an invalid total and hasMore from listEnvelope (%j)',
    async (wrong) => {
      const { client } = clientOver(({ url }) => cut(rows, url), {
        listEnvelope: (body) => ({ items: body as unknown[], total: '1', hasMore: wrong }) as never,
      })
      expect(await idsOf(client.orders.list({ limit: 2 }))).toHaveLength(3)
    },
  )

  it('a page with an invalid row is rejected, and the error names the row', async () => {
    const flawed = [...orders(3), { ...order(3), amount: 0.5 }]
    const { client } = clientOver(() => ({ data: flawed }))
    await expect(client.orders.list()).rejects.toMatchObject({ issues: [{ path: '[3].amount' }] })
  })
})

it('each page of a list is retried separately', async () => {
  const { client, requests } = clientOver(({ url }, count) => {
    if (count % 2 === 1) throw new TypeError('fetch failed')
    return cut(orders(5), url)
  })
  expect(await idsOf(client.orders.list({ limit: 2 }, { maxRetries: 1 }))).toHaveLength(5)
  expect(requests).toHaveLength(8)
})

it('an iteration ends with the error of the failed page, after the items before it', async () => {
  const { client } = clientOver(({ url }) =>
    url.searchParams.get('offset') === '4' ? json({ code: 'NO' }, 403) : cut(orders(9), url),
  )
  const found: string[] = []
  const reading = (async () => {
    for await (const { id } of client.orders.list({ limit: 2 })) found.push(id)
  })()
  await expect(reading).rejects.toMatchObject({ code: 'permission_denied' })
  expect(found).toEqual(['ord_0', 'ord_1', 'ord_2', 'ord_3'])
})

describe("a list whose caller's signal fires in the middle of a page", () => {
  const reason = new Error('enough')

  /** The error of a list that is aborted at a row, and the number of rows returned. */
  async function abortAt(row: string, prefetch: number, total?: number): Promise<readonly [unknown, number]> {
    const controller = new AbortController()
    const { client } = clientOver(({ url }) => ({ data: cut(orders(200), url), ...(total && { total }) }))
    let came = 0
    try {
      for await (const { id } of client.orders.list({}, { prefetch, signal: controller.signal })) {
        came++
        if (id === row) controller.abort(reason)
      }
      return [undefined, came]
    } catch (error) {
      return [error, came]
    }
  }

  it.each([0, 4])(
    'an abort in the middle of a page ends the list with the same error as between pages: prefetch %i',
    async (prefetch) => {
      const [between, all] = await abortAt('ord_49', prefetch)
      const [within, some] = await abortAt('ord_19', prefetch)
      expect([all, some]).toEqual([50, 20])
      expect(within).toBeInstanceOf(RequestAbortedError)
      expect(within).toMatchObject({ code: 'aborted', charged: 'no', attempts: 0, cause: reason })
      expect(within).toEqual(between)
      expect(String(within)).toBe(String(between))
    },
  )
})

describe('lists of a sandbox', () => {
  const filled = (count: number, options: SandboxOptions = {}): Lab => {
    const lab = new Lab(options)
    for (let i = 0; i < count; i++) lab.sandbox.addOrder({ amount: i, createdAt: i })
    return lab
  }

  it.each(['array', 'data', 'items', 'named', 'results'] as const)(
    'a list of a sandbox is read completely in the envelope %s',
    async (listEnvelope) => {
      const client = filled(57, { behaviour: { listEnvelope } }).client()
      for (const limit of [10, 19, 57, 100]) {
        expect(new Set(await idsOf(client.orders.list({ limit }))).size).toBe(57)
      }
      expect((await client.services.list({ limit: 2 }).toArray({ max: 50 })).length).toBeGreaterThan(2)
    },
  )

  it('a list ends without an error if offset is ignored and the response states that nothing is left', async () => {
    const row = { id: 'ord_1', status: 'pending', amount: 1 }
    for (const more of [{ total: 1 }, { hasMore: false }]) {
      const { client, requests } = clientOver(() => ({ items: [row], ...more }))
      expect(await idsOf(client.orders.list())).toEqual(['ord_1'])
      expect(requests).toHaveLength(1)
      const records = []
      for await (const { kind } of client.orders.reconcile()) records.push(kind)
      expect(records).toEqual(['only_remote'])
    }
  })
})

it('a page of bad rows is rejected at the first bad row, and later rows are not checked', async () => {
  let checked = 0
  const validate = () => {
    checked++
    return { issues: [{ message: 'is never right' }] }
  }
  const picky: StandardSchemaV1<unknown, Order> = { '~standard': { version: 1, vendor: 'test', validate } }
  const read = (rows: readonly object[]) =>
    clientOver(() => rows, { schemas: { order: picky } })
      .client.orders.list()
      .toArray({ max: 5 })
  await expect(read(orders(1000))).rejects.toMatchObject({
    code: 'invalid_response',
    issues: [{ path: '[0]', message: 'is never right' }],
  })
  expect(checked).toBe(1)
  await expect(read([{}, ...orders(1000)])).rejects.toMatchObject({ code: 'invalid_response' })
  expect(checked).toBe(1)
})
