import { describe, expect, it } from 'vitest'
import { isCustomerOrderingError } from '../../../../src/errors/classes.ts'
import type { Send } from '../../../../src/http/attempt.ts'
import {
  type ListedOrder,
  type ScanOptions,
  scanOrders,
} from '../../../../src/orders/commands/scan-orders.ts'
import type { OrderContext } from '../../../../src/orders/record/context.ts'
import { orderContext } from '../../../support/order-context.ts'
import { callSettings, ORDER } from '../../../support/place.ts'
import { fakeRuntime } from '../../../support/runtime.ts'

type Rows = readonly unknown[]
type Answer = (offset: number, page: number) => { readonly status?: number; readonly body: unknown }

interface Walk {
  readonly listed: ListedOrder[]
  /** The query of each request. */
  readonly queries: string[]
  readonly offsets: number[]
  /** The error of the walk, if any. */
  readonly error?: unknown
}

/** Walks a list with these responses. */
async function walk(
  answer: Answer,
  options: Partial<ScanOptions> & { readonly listEnvelope?: OrderContext['listEnvelope'] } = {},
): Promise<Walk> {
  const { listEnvelope, ...changes } = options
  const runtime = fakeRuntime({ auto: true })
  const queries: string[] = []
  const offsets: number[] = []
  const transport: Send = async ({ url }) => {
    const { search, searchParams } = new URL(url)
    const offset = Number(searchParams.get('offset'))
    queries.push(search)
    offsets.push(offset)
    if (offsets.length > 500) throw new Error('the walk does not end')
    const { status = 200, body } = answer(offset, offsets.length - 1)
    return { kind: 'answer', status, headers: new Headers(), text: JSON.stringify(body) }
  }
  const context = orderContext({ listEnvelope }, { runtime, send: transport })
  const listed: ListedOrder[] = []
  const found = { listed, queries, offsets }
  try {
    for await (const one of scanOrders(context, {
      operation: 'orders.recover',
      settings: callSettings({ timeout: 1000, totalTimeout: 2000 }),
      charged: 'unknown',
      checkOpen: () => {},
      ...changes,
    }))
      listed.push(one)
  } catch (error) {
    return { ...found, error }
  }
  return found
}

const rowsOf = (count: number, first = 0): { readonly id: string }[] =>
  Array.from({ length: count }, (_, index) => ({ id: `o${first + index}` }))
/** A list that returns this number of rows per page at most. */
const list =
  (rows: Rows, most = 50, says: (offset: number) => object = () => ({})): Answer =>
  (offset) => ({ body: { orders: rows.slice(offset, offset + most), ...says(offset) } })
const idsOf = ({ listed }: Walk): string[] => [...new Set(listed.map(({ id }) => id))]

describe('a walk over the order list', () => {
  it('a walk requests 50 rows at a time, filtered by source system if named', async () => {
    expect((await walk(list([]))).queries).toEqual(['?limit=50&offset=0'])
    expect((await walk(list([]), { sourceSystem: 'a b' })).queries).toEqual([
      '?limit=50&offset=0&sourceSystem=a+b',
    ])
  })

  it.each([
    [50, 10],
    [44, 10],
    [40, 10],
    [39, 9],
    [20, 5],
    [8, 2],
    [4, 1],
    [3, 0],
    [1, 0],
  ])('pages of %i rows overlap by %i', async (received, overlap) => {
    const { offsets } = await walk(list(rowsOf(120), received), { maxPages: 3 })
    expect(offsets).toEqual([0, received - overlap, 2 * (received - overlap)])
  })

  it('a walk ends with the first empty page, after every row', async () => {
    for (const count of [0, 1, 7, 49, 50, 51, 100, 135]) {
      const walked = await walk(list(rowsOf(count)))
      expect(walked).not.toHaveProperty('error')
      expect(idsOf(walked)).toEqual(rowsOf(count).map(({ id }) => id))
      expect(walked.offsets.at(-1)).toBe(count)
    }
  })

  it('a walk reads no more pages than allowed', async () => {
    for (const maxPages of [0, 1, 2, 3]) {
      const walked = await walk(list(rowsOf(500)), { maxPages })
      expect(walked.offsets).toHaveLength(maxPages)
      expect(walked).not.toHaveProperty('error')
    }
  })

  it('a walk asks before each page whether it may continue', async () => {
    let asked = 0
    const closed = new Error('closed')
    const checkOpen = (): void => {
      if (++asked === 3) throw closed
    }
    const walked = await walk(list(rowsOf(500)), { checkOpen })
    expect(walked.error).toBe(closed)
    expect(walked.offsets).toEqual([0, 40])
  })

  it('a walk passes each row on before it requests the next page', async () => {
    const { listed, error } = await walk((offset) =>
      offset === 0 ? { body: rowsOf(50) } : { status: 500, body: {} },
    )
    expect(listed).toHaveLength(50)
    expect(error).toMatchObject({ code: 'server' })
  })

  it('a walk requests a page again if that may help', async () => {
    const settings = callSettings({ timeout: 1000, totalTimeout: 9000, maxRetries: 1 })
    const walked = await walk((_offset, page) => ({ status: page === 0 ? 503 : 200, body: [] }), { settings })
    expect(walked).not.toHaveProperty('error')
    expect(walked.offsets).toEqual([0, 0])
  })

  it.each([
    [undefined, 'no'],
    ['unknown', 'unknown'],
  ] as const)(
    'a walk fails with the missing permission, and with charge %s reports charged %s',
    async (given, charged) => {
      const { error } = await walk(() => ({ status: 403, body: {} }), { charged: given })
      expect(isCustomerOrderingError(error)).toBe(true)
      expect(error).toMatchObject({ code: 'permission_denied', requiredPermission: 'orders:read', charged })
    },
  )
})

describe('a walk over a list without an empty page', () => {
  it.each([
    [undefined, 'no'],
    ['unknown', 'unknown'],
  ] as const)(
    'a walk fails if the service ignores offset, and with charge %s reports charged %s',
    async (given, charged) => {
      const { error } = await walk(() => ({ body: rowsOf(50) }), { charged: given })
      expect(error).toMatchObject({ code: 'invalid_response', charged })
    },
  )

  it('a walk ends after two pages without new rows, if the service has respected offset before', async () => {
    const rows = rowsOf(60)
    // An offset past the end returns the last page.
    const walked = await walk((offset) => list(rows)(offset < 60 ? offset : 50, 0))
    expect(walked).not.toHaveProperty('error')
    expect(idsOf(walked)).toHaveLength(60)
    expect(walked.offsets).toEqual([0, 40, 55, 59, 60, 68])
  })

  it('a new row in overlapping pages shows that the service respects offset', async () => {
    const pages = [rowsOf(4), rowsOf(1, 4), rowsOf(4), rowsOf(4)]
    const walked = await walk((_offset, page) => ({ body: pages[page] ?? [] }))
    expect(walked).not.toHaveProperty('error')
    expect(walked.offsets).toEqual([0, 3, 4, 7])
  })

  it('a walk continues after pages with new rows in between', async () => {
    const pages = [rowsOf(4), rowsOf(4), rowsOf(5), rowsOf(5), rowsOf(6), rowsOf(6), rowsOf(6)]
    const walked = await walk((_offset, page) => ({ body: pages[page] ?? [] }))
    expect(walked).not.toHaveProperty('error')
    expect(idsOf(walked)).toHaveLength(6)
    expect(walked.offsets).toHaveLength(7)
  })

  it.each<[string, Answer]>([
    ['a full page', list(rowsOf(50))],
    ['a page that may be capped', list(rowsOf(5))],
    ['a total that is only the count of a full page', list(rowsOf(50), 50, () => ({ total: 50 }))],
    ['a larger total', list(rowsOf(5), 50, () => ({ total: 6 }))],
    ['more to come', list(rowsOf(5), 50, () => ({ hasMore: true }))],
  ])('a walk fails if the same page repeats endlessly: %s', async (_what, answer) => {
    const walked = await walk(() => answer(0, 0))
    expect(walked.error).toMatchObject({ code: 'invalid_response' })
    expect(walked.offsets).toHaveLength(3)
  })

  it.each<[string, Answer]>([
    ['by its total', list(rowsOf(5), 50, () => ({ total: 5 }))],
    ['by its total, rows without an id included', list([...rowsOf(3), {}, {}], 50, () => ({ total: 5 }))],
    ['by hasMore', list(rowsOf(5), 50, () => ({ hasMore: false }))],
    ['by hasMore, for a full page', list(rowsOf(50), 50, () => ({ hasMore: false }))],
  ])('a repeated page is accepted if the response reports that nothing is left, %s', async (_how, answer) => {
    const walked = await walk(() => answer(0, 0))
    expect(walked).not.toHaveProperty('error')
    expect(walked.offsets).toHaveLength(3)
  })

  it('a walk counts the rows that it has seen if later pages are shorter than the first', async () => {
    const walked = await walk((_offset, page) => ({ body: { orders: rowsOf(page === 0 ? 5 : 3), total: 5 } }))
    expect(walked).not.toHaveProperty('error')
    expect(idsOf(walked)).toHaveLength(5)
  })
})

describe('a row of the order list', () => {
  const listedOf = async (...rows: Rows): Promise<ListedOrder[]> => (await walk(list(rows))).listed

  it.each([null, undefined, 'o1', 7, [], {}, { id: 7 }, { id: null }, { orderId: 'o1' }])(
    'a row without an id is skipped: %j',
    async (row) => {
      expect((await listedOf(row, { id: 'o2' })).map(({ id }) => id)).toEqual(['o2'])
    },
  )

  it('a row is shown as an order if it is one, and by its id otherwise', async () => {
    const listed = await listedOf(ORDER, { ...ORDER, id: 'o2', amount: 1.5 })
    expect(listed.map(({ id, order }) => [id, order])).toEqual([
      ['o1', ORDER],
      ['o2', undefined],
    ])
  })

  it('a row is found by its id if the response has several lists', async () => {
    const walked = await walk((offset) => ({ body: { links: [{}], orders: offset === 0 ? rowsOf(1) : [] } }))
    expect(idsOf(walked)).toEqual(['o0'])
  })

  it("a row is found where the caller's function points", async () => {
    const listEnvelope = (body: unknown) => ({ items: (body as { page: { rows: unknown[] } }).page.rows })
    const a = [{ id: 'x' }]
    const answer: Answer = (offset) => ({ body: { a, page: { rows: rowsOf(2).slice(offset) } } })
    expect(idsOf(await walk(answer, { listEnvelope }))).toEqual(['o0', 'o1'])
    const wrong = await walk(answer, { listEnvelope: () => ({ items: 'none' as unknown as unknown[] }) })
    expect(wrong.error).toMatchObject({ code: 'invalid_response' })
  })
})
