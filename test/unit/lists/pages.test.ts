import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { InvalidRequestError, InvalidResponseError } from '../../../src/errors/classes.ts'
import { Pages } from '../../../src/lists/pages.ts'
import type { FetchedPage } from '../../../src/lists/prefetch.ts'
import { all as allOf, throwing } from '../../support/calls.ts'
import { collect as collectGarbage } from '../../support/heap.ts'
import { fetched, idsOf as ids, type Row, rows } from './rows.ts'

type At = {
  readonly offset: number
  readonly limit: number | undefined
  readonly signal: AbortSignal | undefined
}

interface Server {
  list: readonly Row[]
  readonly asked: number[]
  readonly limits: (number | undefined)[]
  fetch(at: At): Promise<FetchedPage<Row>>
}
/** The service's response to a page of its list, or its fields besides the rows. */
type Respond = (page: readonly Row[], at: At, count: number, server: Server) => FetchedPage<Row>

/** A service with a list that may change with each request. */
function serve(list: readonly Row[], respond: Respond | Partial<FetchedPage<Row>> = {}): Server {
  const server: Server = {
    list,
    asked: [],
    limits: [],
    async fetch(at) {
      server.asked.push(at.offset)
      server.limits.push(at.limit)
      if (server.asked.length > 5000) throw new Error('endless')
      const page = server.list.slice(at.offset, at.offset + (at.limit ?? 50))
      return typeof respond === 'function'
        ? respond(page, at, server.asked.length, server)
        : fetched(page, respond)
    },
  }
  return server
}
/** A list with correct totals that changes with that request. */
const changing = (list: readonly Row[], at: number, change: (list: readonly Row[]) => readonly Row[]) =>
  serve(list, (page, _at, count, server) => {
    const response = fetched(page, { total: server.list.length })
    if (count === at) server.list = change(server.list)
    return response
  })

const pagesOf = (server: Server, limit = 10, offset = 0, signal?: AbortSignal): Pages<Row> =>
  new Pages(server.fetch, { offset, limit, signal })

const collect = async (pages: AsyncIterable<Row>): Promise<string[]> => ids(await allOf(pages))

/** Reads a list, and notes the ids received so far. */
function reading(pages: AsyncIterable<Row>): { readonly found: string[]; readonly ending: Promise<void> } {
  const found: string[] = []
  const read = async (): Promise<void> => {
    for await (const { id } of pages) found.push(id)
  }
  return { found, ending: read() }
}

describe('reading a list to its end', () => {
  const all = rows(35)
  const byTens = [0, 10, 20, 30]
  const capped: Respond = (page) => fetched(page.slice(0, 4))
  const more: Respond = (page, { offset }) => fetched(page, { hasMore: offset + page.length < 35 })
  const remaining: Respond = (page, { offset }) => fetched(page, { total: 35 - offset })
  const left: Respond = (page, { offset }) => fetched(page, { total: 30 - offset })
  const soFar: Respond = (page, { offset }) => fetched(page, { total: offset + page.length })
  const nowAndThen: Respond = (page, _at, count) => fetched(page, count % 2 === 0 ? { total: 35 } : {})
  const short: Respond = (page, { offset }) => fetched(offset === 10 ? page.slice(0, 3) : page)
  const clamped: Respond = (page) => fetched(page.length > 0 ? page : all.slice(25))
  const stale: Respond = (_page, { offset }) => fetched(rows(10), { hasMore: offset === 0 })
  const both = { total: 35, hasMore: true }
  const ownCount: Respond = (page) => fetched(page, { total: page.length })

  it.each<[string, Server, number[]]>([
    ['an empty page ends it', serve(all), [...byTens, 35]],
    ['a capped limit is read by what arrives', serve(all, capped), [0, 4, 8, 12, 16, 20, 24, 28, 32, 35]],
    ['a short page in the middle is not the end', serve(all, short), [0, 10, 13, 23, 33, 35]],
    ['hasMore false ends it without another request', serve(all, more), byTens],
    ['an honest total ends it without another request', serve(all, { total: 35 }), byTens],
    ["a total that is the page's own count is not believed", serve(all, ownCount), [...byTens, 35]],
    ['a total of the rest costs only requests', serve(all, remaining), [0, 10, 0, ...byTens.slice(1), 35]],
    ['a total of the remaining rows that equals a later end', serve(rows(30), left), [0, 10, 0, 10, 20, 30]],
    ['a total of the rows so far is not believed', serve(all, soFar), [...byTens, 35]],
    ['a total that is too small is not believed', serve(all, { total: 12 }), [...byTens, 35]],
    ['a total that is too large does not keep it from ending', serve(all, { total: 1000 }), [...byTens, 35]],
    ['hasMore true beside an honest total costs one request', serve(all, both), [...byTens, 35]],
    ['a total that comes and goes is looked at where it is there', serve(all, nowAndThen), byTens],
    ['an offset clamped to the last page is read to its end', serve(all, clamped), [...byTens, 35, 45]],
    ['a list that fits one page needs one request if the total says so', serve(rows(7), { total: 7 }), [0]],
    ['a total that a full page reaches ends it', serve(rows(40), { total: 40 }), byTens],
    ['hasMore false is believed also of a page without news', serve(rows(10), stale), [0, 10]],
    ['a full page whose total may be its own count is followed up', serve(rows(10), ownCount), [0, 10]],
  ])('%s', async (_title, server, asked) => {
    expect(await collect(pagesOf(server))).toEqual(ids(server.list))
    expect(server.asked).toEqual(asked)
  })

  it('without a limit, a page is full at the documented default', async () => {
    const server = serve(rows(50), ownCount)
    expect(await collect(new Pages<Row>(server.fetch, { offset: 0 }))).toHaveLength(50)
    expect(server.asked).toEqual([0, 50])
    expect(server.limits).toEqual([undefined, undefined])
    expect(await new Pages<Row>(server.fetch, { offset: 0 })).toMatchObject({ limit: 50 })
  })

  it.each([{}, { total: 0 }, { hasMore: true }, { total: 9 }])('an empty list ends: %j', async (says) => {
    const server = serve([], says)
    expect(await collect(pagesOf(server))).toEqual([])
    expect(server.asked).toEqual([0])
  })
})

it.each([
  [1, 40, 2],
  [4, 40, 2],
  [10, 40, 2],
  [25, 60, 4],
])('the list steps back for rows that shifted when %i rows disappeared', async (removed, count, at) => {
  const found = await collect(pagesOf(changing(rows(count), at, (list) => list.slice(removed))))
  expect(new Set(found)).toEqual(new Set(ids(rows(count))))
  // Rows may repeat if more of them disappear than fit on a page.
  if (removed <= 10) expect(found).toHaveLength(count)
})

it('the list steps back from an empty page, and never before the requested offset', async () => {
  const server = changing(rows(14), 1, (list) => list.slice(4))
  expect(await collect(pagesOf(server))).toEqual(ids(rows(14)))
  expect(server.asked).toEqual([0, 10, 6, 10])
  const begunLater = changing(rows(60), 1, (list) => list.slice(30))
  await collect(pagesOf(begunLater, 10, 15))
  expect(Math.min(...begunLater.asked)).toBe(15)
})

it('reading the same pages again after deletions is not taken for a cycle', async () => {
  const server = serve(rows(400), (page, _at, _count, own) => {
    const response = fetched(page, { total: own.list.length })
    own.list = own.list.slice(0, -6)
    return response
  })
  const found = new Set(await collect(pagesOf(server)))
  expect(ids(server.list).filter((id) => !found.has(id))).toEqual([])
  expect(server.list.length).toBeGreaterThan(100)
})

it('the list continues past a page of known rows, even after it stepped back', async () => {
  const server = serve(rows(40), (page, _at, count, own) => {
    if (count === 2) own.list = own.list.slice(0, 30)
    // Only rows that moved there follow the pages that are read again.
    if (count === 4) own.list = [...rows(10, 100), ...own.list]
    return fetched(page, { total: own.list.length })
  })
  expect(await collect(pagesOf(server))).toEqual(ids(rows(30)))
  expect(server.asked).toEqual([0, 10, 0, 10, 20, 30])
})

it('rows that repeatedly move back by several pages are not taken for a cycle', async () => {
  const server = serve(rows(150), (page, _at, count, own) => {
    if (count === 10 || count === 13) own.list = [...rows(30, 1000 * count), ...own.list]
    return fetched(page)
  })
  // The client does not remember rows of more than two pages before, so some are returned twice.
  expect(new Set(await collect(pagesOf(server)))).toEqual(new Set(ids(rows(150))))
})

it('the list ends even if its total keeps changing', async () => {
  const server = serve(rows(100), (page, _at, count) => fetched(page, { total: count % 2 === 0 ? 101 : 190 }))
  expect(new Set(await collect(pagesOf(server)))).toEqual(new Set(ids(rows(100))))
  expect(server.asked.length).toBeLessThan(150)
})

describe('a service that is no list', () => {
  const endless = (what: string): string =>
    `The list cannot be read to its end: the service ${what}. Report this to the provider.`
  it.each([{}, { total: 500 }, { total: 20 }, { hasMore: true }])(
    'the list ends in an error if offset is ignored (%j)',
    async (more) => {
      const server = serve([], () => fetched(rows(10), more))
      const { found, ending } = reading(pagesOf(server))
      await expect(ending).rejects.toThrow(InvalidResponseError)
      await expect(ending).rejects.toThrow(endless('ignores offset'))
      await expect(ending).rejects.toMatchObject({ charged: 'no', attempts: 1, status: 200 })
      expect(found).toEqual(ids(rows(10)))
      expect(server.asked).toEqual([0, 10, 20])
    },
  )

  it('a service that ignores offset is recognised although a new row arrives', async () => {
    let reads = 0
    const server = serve([], () => fetched(++reads === 1 ? rows(10, 1) : rows(10)))
    await expect(collect(pagesOf(server))).rejects.toThrow(endless('ignores offset'))
  })

  it('a list that only repeats rows, each time others, ends in an error', async () => {
    let reads = 0
    const server = serve([], () => fetched(++reads < 3 ? rows(10, reads * 10) : rows(9, 20 + (reads % 2))))
    await expect(collect(pagesOf(server))).rejects.toThrow(endless('repeats its rows'))
  })

  it.each([3, 4, 7, 20])('the list ends in an error if its %i pages form a cycle', async (length) => {
    const server = serve([], (_page, at) => fetched(rows(10, at.offset % (length * 10))))
    const failure = collect(pagesOf(server))
    await expect(failure).rejects.toThrow(endless('repeats its pages'))
    await expect(failure).rejects.toMatchObject({ charged: 'no' })
    expect(server.asked.length).toBeLessThan(length * 8 + 8)
  })

  it('a list is read completely if short pages begin like an earlier long page', async () => {
    const end = 30
    const server = serve([], (_page, _at, count) => {
      if (count > end) return fetched([])
      if (count === 16) return fetched(rows(10))
      return fetched(count > 16 && count % 3 === 1 ? rows(3) : rows(10, count * 10))
    })
    expect(new Set(await collect(pagesOf(server))).size).toBe(10 + 25 * 10)
    expect(server.asked).toHaveLength(end + 1)
  })

  it('the list ends in an error if its pages repeat and form a cycle, after a page that does not', async () => {
    const server = serve([], (_page, _at, count) => {
      const step = Math.ceil(count / 2) - 1
      return fetched(rows(10, step === 0 ? 0 : 100 + (step % 3) * 10))
    })
    await expect(collect(pagesOf(server))).rejects.toThrow('repeats its pages')
    expect(server.asked.length).toBeLessThan(60)
  })

  it.each([
    ['every page', () => true],
    ['every page, the first of two having no other', (count: number) => count % 2 === 0],
    ['every page, the second of two having no other', (count: number) => count % 2 === 1],
  ])('a list with the same row at the top of %s is not a cycle', async (_which, hasOthers) => {
    let given = 0
    const server = serve([], (_page, _at, count) => {
      const others = hasOthers(count) ? rows(9, given) : []
      given += others.length
      return fetched([{ id: 'pinned' }, ...others], { hasMore: given < 180 })
    })
    expect(await collect(pagesOf(server))).toEqual(expect.arrayContaining(ids(rows(180))))
  })

  it('a list whose last rows keep disappearing before they are read is not a cycle', async () => {
    let end = 0
    let gone = true
    const server = serve([], (_page, at) => {
      if (at.offset < end) return fetched(rows(end - at.offset, at.offset), { total: end + 5 })
      gone = !gone || end === 200
      if (gone) return fetched([], { total: end })
      end += 10
      return fetched(rows(10, end - 10), { total: end + 5 })
    })
    expect(await collect(pagesOf(server))).toEqual(ids(rows(200)))
  })

  it('an iterator is finished after an error', async () => {
    const iterator = pagesOf(serve([], throwing('broken')))[Symbol.asyncIterator]()
    await expect(iterator.next()).rejects.toThrow('broken')
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
  })
})

it('pages fetch nothing before they are iterated, and each iteration starts again', async () => {
  const server = serve(rows(12))
  const pages = pagesOf(server)
  const whole = pages.pages()
  pages[Symbol.asyncIterator]()
  expect(server.asked).toEqual([])
  expect(await collect(pages)).toEqual(await collect(pages))
  for (let round = 0; round < 2; round++)
    expect((await allOf(whole)).map(({ offset }) => offset)).toEqual([0, 10])
})

it('items arrive in order, whatever the number and the time of concurrent next() calls', async () => {
  const iterator = pagesOf(serve(rows(12)))[Symbol.asyncIterator]()
  const begun = Array.from({ length: 3 }, () => iterator.next())
  // The page has arrived by then, and the later next() calls have not had their turn.
  const later = begun[0]?.then(() => Promise.all(Array.from({ length: 11 }, () => iterator.next())))
  const results = [...(await Promise.all(begun)), ...((await later) ?? [])]
  expect(results.map(({ value }) => value?.id)).toEqual([...ids(rows(12)), undefined, undefined])
})

it('an item that is already fetched is returned immediately', async () => {
  const iterator = pagesOf(serve(rows(5)))[Symbol.asyncIterator]()
  await iterator.next()
  let got: unknown
  void iterator.next().then(({ value }) => {
    got = value
  })
  await undefined
  expect(got).toEqual({ id: 'r1' })
})

it.each([
  [10, [0]],
  [11, [0, 10]],
  [35, [0, 10, 20, 30]],
  [99, [0, 10, 20, 30, 35]],
])('toArray stops at %i items and fetches no further page', async (max, asked) => {
  const server = serve(rows(35))
  expect(await pagesOf(server).toArray({ max })).toEqual(rows(Math.min(max, 35)))
  expect(server.asked).toEqual(asked)
})

it.each([0, -1, 1.5, Number.NaN, Infinity, '5', undefined, null])('toArray rejects max: %j', async (max) => {
  const server = serve(rows(35))
  await expect(pagesOf(server).toArray({ max: max as number })).rejects.toThrow(InvalidRequestError)
  // @ts-expect-error the cap is required
  await expect(pagesOf(server).toArray()).rejects.toThrow(/^toArray: max must be a positive integer/)
  expect(server.asked).toEqual([])
})

describe('leaving early', () => {
  /** Returns the first page. The second hangs until its signal is aborted. */
  function hanging(signal?: AbortSignal): { readonly pages: Pages<Row>; readonly signals: AbortSignal[] } {
    const signals: AbortSignal[] = []
    const fetch = async ({ signal: own }: At): Promise<FetchedPage<Row>> => {
      if (own === undefined) throw new Error('no signal')
      signals.push(own)
      own.throwIfAborted()
      if (signals.length === 1) return fetched(rows(2))
      return await new Promise((_resolve, reject) => own.addEventListener('abort', () => reject(own.reason)))
    }
    return { signals, pages: new Pages(fetch, { offset: 0, limit: 2, signal }) }
  }

  it('return() ends the request in flight, and the next() call that waits for it', async () => {
    const { pages, signals } = hanging()
    const iterator = pages[Symbol.asyncIterator]()
    await iterator.next()
    await iterator.next()
    const waiting = iterator.next()
    await Promise.resolve()
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined })
    expect(await waiting).toEqual({ done: true, value: undefined })
    expect(signals[1]?.aborted).toBe(true)
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
    expect(signals).toHaveLength(2)
    const fetchedBefore = pagesOf(serve(rows(35)))[Symbol.asyncIterator]()
    await fetchedBefore.next()
    await fetchedBefore.return?.()
    expect(await fetchedBefore.next()).toEqual({ done: true, value: undefined })
  })

  it("the list ends with the caller's reason if the signal fires during a request", async () => {
    const controller = new AbortController()
    const { pages, signals } = hanging(controller.signal)
    const reason = new Error('enough')
    const { found, ending } = reading(pages)
    await new Promise((resolve) => setImmediate(resolve))
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1)
    controller.abort(reason)
    await expect(ending).rejects.toBe(reason)
    expect(found).toEqual(['r0', 'r1'])
    expect(signals[1]?.reason).toBe(reason)
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })

  describe.each([
    ['more pages follow', {}],
    ['it is the last page', { hasMore: false }],
  ])("when the caller's signal fires in the middle of a page, and %s", (_title, more) => {
    const reason = new Error('enough')

    /** next() calls over pages of four rows, which return no row after the signal. */
    function begin(answering: (controller: AbortController) => void = () => {}) {
      const controller = new AbortController()
      const asked: number[] = []
      const limits: unknown[] = []
      const pages = new Pages<Row>(
        async ({ offset, limit, signal }) => {
          limits.push(limit)
          signal?.throwIfAborted()
          asked.push(offset)
          answering(controller)
          return fetched(rows(4, offset), more)
        },
        { offset: 0, limit: 4, signal: controller.signal },
      )
      const iterator = pages[Symbol.asyncIterator]()
      const step = async (): Promise<unknown> => {
        const { done, value } = await iterator.next()
        return done === true ? 'over' : value.id
      }
      return { controller, asked, limits, step }
    }

    it('after an abort, no row is returned: the first of several next() calls rejects, then the list ends', async () => {
      const { controller, asked, limits, step } = begin()
      expect([await step(), await step()]).toEqual(['r0', 'r1'])
      controller.abort(reason)
      const over = { value: 'over' }
      expect(await Promise.allSettled([step(), step(), step()])).toMatchObject([{ reason }, over, over])
      expect(asked).toEqual([0])
      expect(limits).toEqual([4, 4])
      expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
    })

    it('after an abort, the list rejects even before the first row of a page that just arrived', async () => {
      const { step } = begin((controller) => controller.abort(reason))
      await expect(step()).rejects.toBe(reason)
      expect(await step()).toBe('over')
    })
  })

  it('an abort after the last row of a list is not an error', async () => {
    const controller = new AbortController()
    const server = serve(rows(4), { total: 4 })
    const pages = pagesOf(server, 10, 0, controller.signal)
    const found: string[] = []
    for await (const { id } of pages) if (found.push(id) === 4) controller.abort()
    expect(found).toHaveLength(4)
  })

  it('an abort ends the list at any moment after a response, even one that makes it step back', async () => {
    // A few microtask turns lie between the response and its use.
    for (let turns = 0; turns < 20; turns++) {
      let left: Promise<unknown> = Promise.resolve()
      const leave = async (): Promise<unknown> => {
        for (let turn = 0; turn < turns; turn++) await undefined
        return await iterator.return?.()
      }
      const server = serve(rows(10), (page, _at, count, own) => {
        if (count === 2) {
          left = leave()
          own.list = rows(4)
        }
        return fetched(page, { total: count === 1 ? 14 : own.list.length })
      })
      const iterator = pagesOf(server)[Symbol.asyncIterator]()
      for (let n = 0; n < 10; n++) await iterator.next()
      expect(await iterator.next()).toEqual({ done: true, value: undefined })
      await left
      expect(await iterator.next()).toEqual({ done: true, value: undefined })
      expect(server.asked.length).toBeLessThanOrEqual(4)
    }
  })

  it("the list leaves no listener on the caller's signal, however it ends", async () => {
    const { signal } = new AbortController()
    const listeners = (): number => getEventListeners(signal, 'abort').length
    const server = serve(rows(35))
    const pages = pagesOf(server, 10, 0, signal)
    await collect(pages)
    expect(listeners()).toBe(0)
    for await (const { id } of pages) {
      expect(listeners()).toBe(0)
      if (id === 'r12') break
    }
    await pages
    await pages.toArray({ max: 3 })
    expect(listeners()).toBe(0)
  })
})

it('memory stays the same over 100,000 items, because used pages are released', async () => {
  const size = 100
  let fetches = 0
  const born: WeakRef<object>[] = []
  const left: number[] = []
  const pages = new Pages<Row>(
    async ({ offset }) => {
      fetches++
      const count = Math.min(size, 100_000 - offset)
      const page = fetched(rows(count, offset))
      // The first item of every page, which was returned long before the last.
      born.push(...page.items.slice(0, 1).map((item) => new WeakRef(item)))
      return page
    },
    { offset: 0, limit: size },
  )
  let count = 0
  for await (const _ of pages) {
    count++
    if (count % 10_000 === 0) {
      // Wait a turn: WeakRefs keep their targets until the turn of their creation or last read
      // ends.
      await new Promise((resolve) => setImmediate(resolve))
      collectGarbage()
      // This is the last item of its page, which must not outlive it.
      left.push(born.filter((ref) => ref.deref() !== undefined).length)
    }
  }
  expect(count).toBe(100_000)
  expect(fetches).toBe(1001)
  // The engine itself sometimes keeps one more page. The list would keep one each time.
  expect(Math.min(...left)).toBe(0)
  expect(Math.max(...left)).toBeLessThan(10)
})
