import { expect, it } from 'vitest'
import { Pages } from '../../../src/lists/pages.ts'
import type { FetchedPage, FetchPage, Start } from '../../../src/lists/prefetch.ts'
import { fetched, idsOf, type Row, rows } from './rows.ts'

interface Request {
  readonly offset: number
  readonly signal: AbortSignal | undefined
  answer(items: readonly Row[], more?: Partial<FetchedPage<Row>>): Promise<void>
  fail(error: Error): Promise<void>
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A service that responds when the test says so. */
function held(): { readonly fetch: FetchPage<Row>; readonly requests: Request[]; flying(): number[] } {
  const requests: Request[] = []
  const open = new Set<Request>()
  return {
    requests,
    flying: () => [...open].map(({ offset }) => offset),
    fetch: ({ offset, signal }) => {
      if (requests.length > 500) throw new Error('endless')
      if (signal?.aborted === true) return Promise.reject(signal.reason)
      return new Promise((resolve, reject) => {
        const end = (done: () => void): Promise<void> => {
          open.delete(request)
          done()
          return settled()
        }
        const request: Request = {
          offset,
          signal,
          answer: (items, more) => end(() => resolve(fetched(items, more))),
          fail: (error) => end(() => reject(error)),
        }
        requests.push(request)
        open.add(request)
        signal?.addEventListener('abort', () => void request.fail(signal.reason))
      })
    },
  }
}

/** Starts to read, and returns the items received so far. */
function opened(start: Partial<Start>) {
  const service = held()
  const found: string[] = []
  const done = (async () => {
    for await (const { id } of new Pages(service.fetch, { offset: 0, limit: 10, ...start })) found.push(id)
  })().catch((error: unknown) => error)
  return { ...service, found, done }
}

const at = (offset: number): Row[] => rows(10, offset)

/** Pages of a service, of which the first is fetched and returned. */
async function stepping(start: Partial<Start>, first = at(0)) {
  const service = held()
  const iterator = new Pages(service.fetch, { offset: 0, limit: 10, ...start })
    .pages()
    [Symbol.asyncIterator]()
  const begun = iterator.next()
  await settled()
  await service.requests[0]?.answer(first)
  await begun
  return { ...service, iterator }
}

/** Starts to read, after the first page. */
async function reading(start: Partial<Start>, first = at(0), more: Partial<FetchedPage<Row>> = {}) {
  const walk = opened(start)
  await settled()
  await walk.requests[0]?.answer(first, more)
  return walk
}
const offsetsOf = (requests: readonly Request[]): number[] => requests.map((request) => request.offset)

it('prefetch 0 requests nothing before it is needed', async () => {
  const { requests } = await stepping({ prefetch: 0 })
  expect(requests).toHaveLength(1)
})

it('prefetching begins with one page, which shows the page size', async () => {
  const { requests, flying } = opened({ prefetch: 4 })
  await settled()
  expect(flying()).toEqual([0])
  await requests[0]?.answer(at(0), { total: 90 })
  expect(flying()).toEqual([10, 19, 28, 37])
})

it("prefetching requests from the previous page's last row, unless that row is present", async () => {
  const { requests, flying } = await reading({ prefetch: 1 })
  expect(flying()).toEqual([10])
  await requests[1]?.answer(at(10))
  expect(flying()).toEqual([20])
})

it('prefetching requests from the end of the last page if it has arrived, however short it is', async () => {
  const { requests, flying } = await reading({ prefetch: 3 })
  await requests[3]?.answer(rows(5, 28))
  expect(flying()).toEqual([10, 19])
  await requests[1]?.answer(at(10))
  expect(flying()).toEqual([19, 33])
})

it('a page that adds one row to the shared row is used', async () => {
  const { requests, found } = await reading({ prefetch: 2 })
  await requests[1]?.answer(at(10))
  await requests[2]?.answer(rows(2, 19))
  expect(found).toEqual(idsOf(rows(21)))
  expect(offsetsOf(requests)).toEqual([0, 10, 19, 28, 21])
})

it('a smaller total does not make the list step back if the page starts with the previous last row', async () => {
  const { requests, flying, found } = await reading({ prefetch: 2 }, at(0), { total: 60 })
  await requests[1]?.answer(at(10), { total: 60 })
  // In either order of reads, no row moved between the two pages.
  await requests[2]?.answer(at(19), { total: 55 })
  expect(found).toEqual(idsOf(rows(29)))
  expect(flying()).toEqual([28, 37])
})

it('prefetching requests the rows behind a short page while that page waits for its turn', async () => {
  const { requests, flying } = await reading({ prefetch: 4 }, at(0), { total: 25 })
  expect(flying()).toEqual([10, 19])
  await requests[2]?.answer(rows(4, 19), { total: 25 })
  expect(flying()).toEqual([10, 23])
})

it('prefetching overlaps pages by one row if pages have at least three rows, and is sequential otherwise', async () => {
  const begun = (limit: number) => stepping({ limit, prefetch: 3 }, rows(limit))
  expect((await begun(3)).flying()).toEqual([3, 5, 7])
  expect((await begun(2)).flying()).toEqual([2])
  expect((await begun(1)).flying()).toEqual([1])
})

it('prefetching requests one page behind a short page, even if the list requested that page itself', async () => {
  // Totals that equal the page's own count do not show whether there is more.
  const { requests, flying } = await reading({ prefetch: 4 }, at(0), { total: 10 })
  expect(flying()).toEqual([10])
  await requests[1]?.answer(rows(4, 10), { total: 4 })
  expect(offsetsOf(requests)).toEqual([0, 10, 14])
})

it('a short page makes the list drop its prefetched pages and continue with one page', async () => {
  const { requests, flying, found } = await reading({ prefetch: 3 }, at(0), { total: 90 })
  expect(flying()).toEqual([10, 19, 28])
  await requests[1]?.answer(rows(4, 10), { total: 90 })
  expect(requests.slice(2, 4).every(({ signal }) => signal?.aborted)).toBe(true)
  expect(flying()).toEqual([14])
  await requests[4]?.answer(rows(10, 14), { total: 90 })
  expect(found).toHaveLength(24)
  expect(flying()).toEqual([24])
  await requests[5]?.answer(at(24), { total: 90 })
  expect(flying()).toEqual([34, 43])
})

it('a failed early request is forgotten, and the page is requested again when it is its turn', async () => {
  const { requests, found, done } = await reading({ prefetch: 2 })
  await requests[2]?.fail(new Error('out of range'))
  await requests[1]?.answer(rows(5, 10))
  expect(found).toHaveLength(15)
  await requests.at(-1)?.answer([])
  expect(await done).toBeUndefined()
})

it('the list ends with the error of a page requested at its exact offset, without a second request', async () => {
  const { requests, found, done } = await reading({ prefetch: 1 })
  await requests[1]?.fail(new Error('no'))
  expect(await done).toMatchObject({ message: 'no' })
  expect(found).toHaveLength(10)
  expect(requests).toHaveLength(2)
})

const reports = { prefetch: 4 }
it.each<[start: Partial<Start>, count: number, more: Partial<FetchedPage<Row>>, ahead: number[]]>([
  [reports, 10, { total: 25 }, [10, 19]],
  [reports, 10, { total: 11 }, [10]],
  // A page's own count: nothing is prefetched, and the list itself requests one page.
  [reports, 10, { total: 10 }, [10]],
  [reports, 10, { hasMore: false }, []],
  [reports, 10, { total: 5 }, [10, 19, 28, 37]],
  [reports, 10, {}, [10, 19, 28, 37]],
  // A short first page, whose fields report more rows.
  [reports, 7, { hasMore: true }, [7, 13, 19, 25]],
  [reports, 7, { total: 90 }, [7, 13, 19, 25]],
  // The service limits the page size.
  [{ prefetch: 3, limit: 100 }, 20, { total: 500 }, [20, 39, 58]],
])('%j: after a first page of %i rows and %j, the requests are %j', async (start, count, more, ahead) => {
  const { requests } = await reading(start, rows(count), more)
  expect(offsetsOf(requests.slice(1))).toEqual(ahead)
})

it.each<[string, Row[], page: Row[], Partial<FetchedPage<Row>>, asked: number[]]>([
  ['reports that it is the last', at(0), at(10), { total: 20 }, [0, 10, 19, 28]],
  // If nothing reports more rows, one page is requested behind a short first page.
  ['is empty', rows(7), [], {}, [0, 7]],
])('nothing more is requested after a page that %s', async (_what, first, page, more, asked) => {
  const { requests, flying, done } = await reading({ prefetch: 3 }, first)
  expect(offsetsOf(requests)).toEqual(asked)
  await requests[1]?.answer(page, more)
  expect(await done).toBeUndefined()
  expect([offsetsOf(requests), flying()]).toEqual([asked, []])
})

it.each([
  ['says so', rows(10, 28), { hasMore: false }],
  ['reaches the total', rows(5, 28), { total: 33 }],
  ['has no row but the one that is known', rows(1, 28), {}],
  ['has none', [], {}],
])('nothing is requested behind a page that arrives early and %s', async (_how, page, more) => {
  const { requests, flying } = await reading({ prefetch: 3 })
  await requests[3]?.answer(page, more)
  await requests[1]?.answer(at(10))
  expect(flying()).toEqual([19])
  expect(requests).toHaveLength(4)
})

it.each([
  [50, 16],
  [100, 10],
  [400, 2],
  [1000, 1],
  [5000, 1],
])('prefetching holds 1,000 items at most: of %i a page, %i pages', async (limit, most) => {
  const { flying } = await reading({ prefetch: 16, limit }, rows(limit), { total: 1_000_000 })
  expect(flying()).toHaveLength(most)
})

it('the rows behind the next page to return are requested only when it is returned', async () => {
  const { requests, iterator } = await stepping({ limit: 2, prefetch: 3 }, rows(2))
  await requests[1]?.answer(rows(2, 2))
  expect(offsetsOf(requests)).toEqual([0, 2])
  await iterator.next()
  expect(offsetsOf(requests)).toEqual([0, 2, 4])
})
