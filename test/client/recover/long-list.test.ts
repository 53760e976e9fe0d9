import type { FaultListChange } from 'customer-ordering-sdk/sandbox'
import { describe, expect } from 'vitest'
import type { ClientOptions } from '../../../src/options.ts'
import { all } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { Lab, order } from '../../support/lab.ts'

const MINUTE = 60_000
const LIST = { operation: 'listOrders' } as const

/** recover() must report one outcome, like this. */
const recovers = async (lab: Lab, outcome: object, options: ClientOptions = {}): Promise<void> =>
  expect(await all(lab.client(options).orders.recover())).toMatchObject([outcome])

const gets = (lab: Lab): number => lab.sandbox.requests.filter(({ method }) => method === 'GET').length

describe('a list of orders that is longer than a lookup reads', () => {
  const PAGES = 200

  /** A service whose list has twice as many rows as a look-up reads. */
  function endless(lab: Lab, first: object = {}): void {
    const rows = Array.from({ length: PAGES * 100 }, (_, row) => ({
      id: `o${row}`,
      status: 'done',
      amount: 1,
      ...(row === 0 && first),
    }))
    lab.fault({ type: 'mutateList', change: () => rows }, 'always', 'listOrders')
  }

  async function tooOld(lab: Lab): Promise<void> {
    await lab.doubted()
    lab.runtime.jump(60 * MINUTE)
  }

  it('caller and logger are told that the list was too long to find the order', async (lab) => {
    await tooOld(lab)
    endless(lab)
    const lines: string[] = []
    const log = (line: string): void => void lines.push(line)
    const logger = { debug() {}, info() {}, warn: log, error: log }
    const [outcome, ...rest] = await all(lab.client({ logger }).orders.recover())
    expect(rest).toEqual([])
    expect(outcome).toMatchObject({
      outcome: 'needs_attention',
      reason: 'past_window',
      error: { code: 'unresolved_order', charged: 'unknown', externalOrderId: 'r1' },
    })
    expect(lines.join('\n')).toContain('the lookup reached its page limit')
    expect(gets(lab)).toBe(PAGES)
  })

  it('an order that may be meant is shown, although the list was too long', async (lab) => {
    await tooOld(lab)
    endless(lab, { quantity: 9, metadata: { externalOrderId: 'r1' } })
    await recovers(lab, { outcome: 'needs_attention', reason: 'doubtful', error: { orderId: 'o0' } })
  })

  it('a list that is too long is not read again for the same order within 15 minutes, by any client', async (lab) => {
    await tooOld(lab)
    endless(lab)
    await all(lab.orders.recover())
    await lab.runtime.advance(10 * MINUTE)
    await recovers(lab, { outcome: 'needs_attention', error: { code: 'unresolved_order' } })
    expect(gets(lab)).toBe(PAGES)
    await lab.runtime.advance(10 * MINUTE)
    await all(lab.orders.recover())
    expect(gets(lab)).toBe(2 * PAGES)
  })

  it('the look-up of an order is filtered by the source system of its request', async (lab) => {
    const queries: (string | null)[] = []
    const when = ({ query }: { readonly query: URLSearchParams }): boolean => {
      queries.push(query.get('sourceSystem'))
      return false
    }
    const metadata = { externalOrderId: 'r1', sourceSystem: 'shop' }
    await lab.doubted('commitThenDrop', order('r1', { metadata }))
    lab.runtime.jump(60 * MINUTE)
    const twin = { quantity: 10, metadata: { externalOrderId: 'r1' } }
    for (const sourceSystem of ['before', 'zebra']) lab.sandbox.addOrder({ ...twin, sourceSystem })
    const orderId = lab.charged()
    lab.sandbox.faults.add({ match: { ...LIST, when }, action: { type: 'drop' } })
    await recovers(lab, { outcome: 'created', order: { id: orderId } })
    // Without the source system, recovery would take another integration's order.
    expect(queries).toEqual(['shop'])
  })
})

it('an order is found if the service gives it another source system than its request names', async () => {
  const lab = new Lab({ behaviour: { sourceSystemFrom: 'apiKey' } })
  const request = order('r1', { metadata: { externalOrderId: 'r1', sourceSystem: 'shop' } })
  await lab.doubted('commitThenDrop', request)
  lab.runtime.jump(60 * MINUTE)
  await recovers(lab, { outcome: 'created', order: { id: lab.charged() } })
})

describe('the walk of a look-up over the list', () => {
  /** The order is charged, its response is lost, and many later orders precede it in the list. */
  async function buried(lab: Lab): Promise<void> {
    await lab.doubted()
    for (let row = 0; row < 60; row++) lab.sandbox.addOrder({ metadata: { externalOrderId: `other-${row}` } })
    lab.runtime.jump(60 * MINUTE)
  }
  const offsets = (lab: Lab): readonly number[] =>
    lab.sandbox.requests
      .filter(({ method }) => method === 'GET')
      .map(({ path }) => Number(new URLSearchParams(path.split('?')[1]).get('offset')))

  it.each<[string, number, number[]]>([
    ['as many rows as requested', 100, [0, 40]],
    ['at most 20 rows', 20, [0, 15, 30, 45]],
    ['at most 8 rows', 8, [0, 6, 12, 18, 24, 30, 36, 42, 48, 54]],
  ])('pages overlap and miss no row if the service returns %s', async (lab, _what, maxLimit, expected) => {
    await buried(lab)
    lab.sandbox.configure({ maxLimit })
    await recovers(lab, { outcome: 'created', order: { id: lab.charged() } })
    expect(offsets(lab)).toEqual(expected)
  })

  it.each([50, 20])(
    'new orders that fill two pages of %i rows do not end the walk',
    async (_lab, maxLimit) => {
      const lab = new Lab({ behaviour: { ordering: 'newest', maxLimit } })
      await buried(lab)
      for (let row = 0; row < 400; row++) lab.sandbox.addOrder({})
      let page = 0
      const change: FaultListChange = (rows) => {
        if (++page % 6 === 0) for (let row = 0; row < 2 * maxLimit; row++) lab.sandbox.addOrder({})
        return rows
      }
      lab.fault({ type: 'mutateList', change }, 'always', 'listOrders')
      await recovers(lab, { outcome: 'created', order: { id: lab.charged() } })
    },
  )

  it('rows without an id are skipped', async (lab) => {
    await buried(lab)
    const change = (rows: readonly object[]) => [null, 7, [], {}, { id: 7 }, ...rows] as never
    lab.fault({ type: 'mutateList', change }, 'always', 'listOrders')
    await recovers(lab, { outcome: 'created', order: { id: lab.charged() } })
  })

  const orders = Array.from({ length: 50 }, (_, row) => ({ id: `o${row}` }))

  // The order may be among the rows that the service does not send.
  it.each<[string, (offset: number) => unknown]>([
    ['without an envelope', () => orders],
    ['with a total that a later offset reaches', () => ({ items: orders, total: 90 })],
    [
      'with an end that follows from the offset',
      (offset) => ({ items: orders, has_more: offset + 50 < 120 }),
    ],
    ['with numbers for ids', () => orders.map((_, row) => ({ id: row }))],
  ])('the same page again and again, %s, is no list', async (lab, _what, answer) => {
    await buried(lab)
    for (const offset of [0, 40, 80]) {
      const when = ({ query }: { readonly query: URLSearchParams }) => Number(query.get('offset')) === offset
      const body = JSON.stringify(answer(offset))
      lab.sandbox.faults.add({ match: { ...LIST, when }, action: { type: 'bytes', body }, times: 'always' })
    }
    const error = { code: 'invalid_response', charged: 'unknown' }
    await recovers(lab, { outcome: 'needs_attention', reason: 'past_window', error })
  })
})
