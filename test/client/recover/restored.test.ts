import { describe, expect } from 'vitest'
import type { ClientOptions } from '../../../src/options.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import type { StoredRow } from '../../../src/stores/store.ts'
import { all } from '../../support/all.ts'
import { on } from '../../support/faulty-store.ts'
import { failure, Lab, order } from '../../support/lab.ts'
import { it } from '../../support/lab-test.ts'

const MINUTE = 60_000
const PAST_WINDOW = { outcome: 'needs_attention', reason: 'past_window' } as const
const LIST = { operation: 'listOrders' } as const

/**
 * A store restored from a backup that was made after an order was enqueued, and before it was sent
 * and charged.
 */
async function restored(lab: Lab, request = order('r1')): Promise<string> {
  await lab.client().orders.enqueue(request)
  const backup = (await lab.row('ref:r1')) as StoredRow
  await all(lab.client().orders.recover())
  const orderId = lab.charged()
  lab.rows = new MemoryStore()
  await lab.rows.insert(backup)
  lab.runtime.jump(60 * MINUTE)
  // The service has forgotten the key meanwhile.
  lab.sandbox.forgetKeys()
  return orderId
}

/** recover() must report one outcome, like this. */
const recovers = async (lab: Lab, outcome: object, options: ClientOptions = {}): Promise<void> =>
  expect(await all(lab.client(options).orders.recover())).toMatchObject([outcome])

const gets = (lab: Lab): number => lab.sandbox.requests.filter(({ method }) => method === 'GET').length

describe('an enqueued order that looks never sent and is older than the safe-retry window', () => {
  it('recover() finds an enqueued order at the service if a restored backup forgot its purchase', async (lab) => {
    const orderId = await restored(lab)
    await recovers(lab, { outcome: 'created', order: { id: orderId } })
    lab.charged()
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', order: { id: orderId } })
  })

  it('create() finds an enqueued order at the service if a restored backup forgot its purchase', async (lab) => {
    const orderId = await restored(lab)
    expect(await lab.create()).toMatchObject({ id: orderId })
    lab.charged()
  })

  it('recover() sends old enqueued orders after one complete pass over the list without them', async (lab) => {
    for (const reference of ['r1', 'r2', 'r3']) await lab.client().orders.enqueue(order(reference))
    lab.runtime.jump(60 * MINUTE)
    const found = await all(lab.client().orders.recover())
    expect(found.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'created'])
    for (const reference of ['r1', 'r2', 'r3']) lab.sandbox.expectChargedOnce(reference)
    expect(gets(lab)).toBe(2)
  })

  it('create() sends an old enqueued order after a complete pass over the list without it', async (lab) => {
    await lab.client().orders.enqueue(order('r1'))
    lab.runtime.jump(60 * MINUTE)
    await lab.create()
    lab.charged()
    expect(gets(lab)).toBe(2)
  })

  it.each([
    ['cannot be read now', 503, { outcome: 'still_open' }, { code: 'server' }],
    ['may not be read', 403, PAST_WINDOW, { code: 'permission_denied' }],
  ] as const)('an old enqueued order is not sent if the list %s', async (_what, status, outcome, error) => {
    const lab = new Lab()
    await restored(lab)
    lab.fault({ type: 'status', status }, 'always', 'listOrders')
    const options = { maxRetries: 0 }
    await recovers(lab, { ...outcome, error }, options)
    expect(await failure(lab.client(options).orders.create(order('r1')))).toMatchObject({
      ...error,
      charged: 'unknown',
    })
    lab.charged()
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open' })
  })

  it('create() does not send an old enqueued order if its time ends before the list does', async (lab) => {
    await restored(lab)
    lab.fault({ type: 'stall' }, 'always', 'listOrders')
    const began = lab.runtime.now()
    const error = await failure(lab.client({ totalTimeout: 5000 }).orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'timeout', charged: 'unknown' })
    expect(lab.runtime.now() - began).toBeLessThanOrEqual(6000)
    lab.charged()
  })

  it("another integration's order with another quantity is not adopted, and the enqueued order is sent", async (lab) => {
    lab.sandbox.addOrder({ quantity: 1, metadata: { externalOrderId: 'r1' } })
    await lab.client().orders.enqueue(order('r1'))
    lab.runtime.jump(60 * MINUTE)
    const [outcome] = await all(lab.client().orders.recover())
    expect(outcome?.order?.id).toBe(lab.charged())
  })

  it.each(['rejects', 'hangs'] as const)(
    'create() returns an order it found, and does not buy again, if the store %s the write of that',
    async (fault) => {
      const lab = new Lab()
      const orderId = await restored(lab)
      const client = lab.elsewhere({}, on('update', fault, 1))
      expect(await client.orders.create(order('r1'))).toMatchObject({ id: orderId })
      lab.charged()
    },
  )

  it('an order found in unreadable form is not bought again if the store fails to record it', async (lab) => {
    await restored(lab)
    const change = (rows: readonly unknown[]) => rows.map((row) => ({ ...Object(row), amount: 'much' }))
    lab.sandbox.faults.add({ match: LIST, times: 'always', action: { type: 'mutateList', change } })
    const client = lab.elsewhere({}, on('update', 'rejects', 1))
    expect(await failure(client.orders.create(order('r1')))).toMatchObject({
      code: 'unresolved_order',
      charged: 'yes',
    })
    lab.charged()
  })

  it('an order is not sent if only the unfiltered list shows it, because the service names the source itself', async () => {
    const lab = new Lab({ behaviour: { sourceSystemFrom: 'apiKey' } })
    const metadata = { externalOrderId: 'r1', sourceSystem: 'web' }
    const request = order('r1', { metadata })
    await restored(lab, request)
    await recovers(lab, PAST_WINDOW)
    expect(await failure(lab.create(request))).toMatchObject({ code: 'unresolved_order', charged: 'unknown' })
    lab.charged()
  })

  it("an enqueued order is sent if neither its source system's list nor the full list shows it", async (lab) => {
    const metadata = { externalOrderId: 'r1', sourceSystem: 'web' }
    await lab.client().orders.enqueue(order('r1', { metadata }))
    lab.runtime.jump(60 * MINUTE)
    await recovers(lab, { outcome: 'created' })
    lab.charged()
  })
})

describe('a list of orders that is longer than a lookup reads', () => {
  const PAGES = 200

  /** A service whose list has twice as many rows as a look-up reads. */
  function endless(lab: Lab): void {
    const rows = Array.from({ length: PAGES * 100 }, (_, row) => ({
      id: `o${row}`,
      status: 'done',
      amount: 1,
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
    expect(outcome?.error?.message).toContain(`after ${PAGES} pages`)
    expect(lines.join('\n')).toContain('the lookup reached its page limit')
    expect(gets(lab)).toBe(PAGES)
  })

  it('a list that is too long is not read again for the same order within 15 minutes, by any client', async (lab) => {
    await tooOld(lab)
    endless(lab)
    await all(lab.client().orders.recover())
    await lab.runtime.advance(10 * MINUTE)
    await recovers(lab, { outcome: 'needs_attention', error: { code: 'unresolved_order' } })
    expect(gets(lab)).toBe(PAGES)
    await lab.runtime.advance(10 * MINUTE)
    await all(lab.client().orders.recover())
    expect(gets(lab)).toBe(2 * PAGES)
  })

  it('an enqueued order is not sent if it may be in the unread rest of the list', async (lab) => {
    await restored(lab)
    endless(lab)
    const before = lab.posts.length
    await recovers(lab, { outcome: 'needs_attention', error: { code: 'unresolved_order' } })
    expect(await failure(lab.create())).toMatchObject({ code: 'unresolved_order', charged: 'unknown' })
    expect(lab.posts).toHaveLength(before)
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
