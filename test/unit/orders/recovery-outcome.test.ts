import { describe, expect, it } from 'vitest'
import { InvalidResponseError, RequestAbortedError } from '../../../src/errors/classes.ts'
import { markCreated, newestRecord } from '../../../src/orders/newest.ts'
import { publicRecord } from '../../../src/orders/record.ts'
import { finished, settledOutcome, unreadableRecord } from '../../../src/orders/recovery-outcome.ts'
import { LEFT_OPEN, orderContext, recordOf, remember } from '../../support/order-context.ts'
import { fails, hangs, ORDER, placeWith } from '../../support/place.ts'

const { body: _body, ...CLOSED } = LEFT_OPEN

describe('the order as the caller’s own schema reads it', () => {
  it("the caller's schema replaces the order, if there is an order", async () => {
    const { record } = await remember(orderContext(), { ...CLOSED, state: 'created', order: ORDER })
    const outcome = settledOutcome(record)
    expect(await finished(outcome, async ({ id }, view) => ({ id, key: view?.key }))).toEqual({
      outcome: 'created',
      record: publicRecord(record),
      order: { id: 'o1', key: 'key-r1' },
    })
    const none = settledOutcome({ ...record, order: { id: 'o1' } })
    expect(await finished(none, () => Promise.reject(new Error('nobody asks')))).toBe(none)
  })

  it('an order that the schema rejects is unreadable, and an abort gives no outcome', async () => {
    const { record } = await remember(orderContext(), { ...CLOSED, state: 'created', order: ORDER })
    const outcome = settledOutcome(record)
    const refused = new InvalidResponseError('no', { charged: 'yes' })
    expect(await finished(outcome, () => Promise.reject(refused))).toEqual({
      outcome: 'created',
      record: publicRecord(record),
      reason: 'unreadable',
      error: refused,
    })
    for (const other of [new RequestAbortedError('given up', { charged: 'yes' }), new TypeError('a bug')])
      await expect(finished(outcome, () => Promise.reject(other))).rejects.toBe(other)
  })
})

describe('a row that cannot be read', () => {
  it('an unreadable row is shown with its own fields, as in doubt', async () => {
    const { row } = await remember(orderContext(), LEFT_OPEN)
    expect(unreadableRecord(row)).toEqual({
      slot: `row:${row.id}`,
      key: '',
      generation: 0,
      state: 'open',
      ambiguous: true,
      attempts: 0,
      createdAt: row.createdAt,
      version: 1,
    })
  })
})

describe('the newest version of a record', () => {
  it('the newest version is unchanged if the store is unreadable, or does not respond in five seconds', async () => {
    for (const broken of [fails, hangs]) {
      const { context, store, runtime } = placeWith()
      const found = await remember(context, LEFT_OPEN)
      expect(await newestRecord(context, found)).toEqual(found.record)
      store.get = broken
      const before = runtime.now()
      expect(await newestRecord(context, found)).toBeUndefined()
      expect(runtime.now() - before).toBeLessThanOrEqual(5000)
    }
  })
})

describe('an order that was found', () => {
  it('a found order makes an unreadable record readable, and does not change a readable one', async () => {
    const context = orderContext()
    const open = await remember(context, LEFT_OPEN)
    await markCreated(context, open, { id: 'o1' })
    await markCreated(context, open, { id: 'o1', order: ORDER })
    expect(await recordOf(context, 'ref:r1')).toMatchObject({ version: 3, readable: true, order: ORDER })
    await markCreated(context, open, { id: 'o1', order: ORDER })
    expect(await recordOf(context, 'ref:r1')).toMatchObject({ version: 3 })
  })

  it('a found order is stored over a readable record without an order', async () => {
    const context = orderContext()
    const open = await remember(context, { ...LEFT_OPEN, readable: true })
    await markCreated(context, open, { id: 'o1', order: ORDER })
    expect(await recordOf(context, 'ref:r1')).toMatchObject({ state: 'created', order: ORDER })
  })
})
