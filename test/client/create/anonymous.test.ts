import { InvalidRequestError, type SettledEvent } from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import { readIntent } from '../../../src/orders/intent.ts'
import { anonymousOrder, failure, Lab, order, type Told, told } from '../../support/lab.ts'
import { it } from '../../support/lab-test.ts'
import { storeOver } from '../../support/store-over.ts'

const MINUTE = 60_000

const slotOf = (lab: Lab, changes = {}): string =>
  readIntent(lab.runtime.deriveId, anonymousOrder(changes), {}).slot

const keysOf = (lab: Lab): readonly (string | null)[] => [...new Set(lab.posts.map(({ key }) => key))]

/** Places an order without a name that is charged while every response is lost. */
async function leaveOpen(lab: Lab): Promise<string> {
  lab.fault({ type: 'commitThenDrop' })
  const error = await failure(lab.client({ maxRetries: 0 }).orders.create(anonymousOrder()))
  expect(error).toMatchObject({ code: 'connection', charged: 'unknown', idempotencyKey: keysOf(lab)[0] })
  return lab.sandbox.ledger[0]?.orderId as string
}

describe('an order without reference and key', () => {
  it('each order without a name is a new one after the previous order was returned', async (lab) => {
    const client = lab.client()
    const placed = []
    for (let call = 0; call < 3; call++) placed.push(await told(client.orders.create(anonymousOrder())))

    expect(new Set(placed.map(({ order: one }) => one?.id)).size).toBe(3)
    expect(placed.map(({ info }) => info?.replayed)).toEqual([false, false, false])
    expect(keysOf(lab)).toHaveLength(3)
    lab.sandbox.expectCharges(3)
  })

  it('an order without a name is remembered until the next one takes over its row', async (lab) => {
    const client = lab.client()
    const first = await client.orders.create(anonymousOrder())
    expect(await lab.record(slotOf(lab))).toMatchObject({ state: 'created', order: { id: first.id } })
    const second = await client.orders.create(anonymousOrder())
    const known = await client.orders.remembered({ since: 0 })
    expect(known).toMatchObject([{ slot: slotOf(lab), state: 'created', order: { id: second.id } }])
    lab.sandbox.expectCharges(2)
  })

  it('a new order in a used slot starts with its own times and counts', async (lab) => {
    await lab.create(anonymousOrder())
    const first = await lab.record(slotOf(lab))
    lab.runtime.jump(60 * MINUTE)
    await lab.create(anonymousOrder())
    const second = await lab.record(slotOf(lab))
    expect(second).toMatchObject({
      attempts: 1,
      generation: 0,
      createdAt: (first?.createdAt ?? 0) + 60 * MINUTE,
    })
  })

  it('the same call within 15 minutes continues the order, even from another process', async () => {
    const clients = [(lab: Lab) => lab.client(), (lab: Lab) => lab.elsewhere()]
    for (const clientOf of clients) {
      const lab = new Lab()
      const orderId = await leaveOpen(lab)
      lab.runtime.jump(15 * MINUTE)
      const { order: placed, info } = await told(clientOf(lab).orders.create(anonymousOrder()))
      expect(placed?.id).toBe(orderId)
      expect(info).toMatchObject({ replayed: true })
      expect(keysOf(lab)).toHaveLength(1)
      lab.sandbox.expectCharges(1)
    }
  })

  /**
   * Calls create() for an order in doubt. Before its claim is stored, other calls buy this many
   * identical orders.
   */
  async function askedAgainBehind(lab: Lab, others: number): Promise<Told> {
    let updates = 0
    const store = storeOver(lab.rows, {
      update: async (row, version) => {
        if (++updates === 1)
          for (let call = 0; call < others; call++) await lab.elsewhere().orders.create(anonymousOrder())
        return await lab.rows.update(row, version)
      },
    })
    return await told(lab.client({ store }).orders.create(anonymousOrder()))
  }

  it('a call returns the order, and does not buy again, if another call settles it meanwhile', async (lab) => {
    const orderId = await leaveOpen(lab)
    const { order: placed, info } = await askedAgainBehind(lab, 1)
    expect(placed?.id).toBe(orderId)
    expect(info).toMatchObject({ replayed: true, attempts: 0 })
    lab.sandbox.expectCharges(1)
  })

  it('a call returns an unreadable order, and does not buy again, if another call reads it meanwhile', async (lab) => {
    lab.fault({ type: 'bytes', body: '<html>', status: 201 }, 3)
    await failure(lab.create(anonymousOrder()))
    const { order: placed, info } = await askedAgainBehind(lab, 1)
    expect(placed?.id).toBe(lab.sandbox.ledger[0]?.orderId)
    expect(info).toMatchObject({ replayed: true, attempts: 0 })
    lab.sandbox.expectCharges(1)
  })

  it('an order stays remembered if the next one cannot claim its row', async (lab) => {
    const { id } = await lab.create(anonymousOrder())
    let updates = 0
    const store = storeOver(lab.rows, {
      update: async (row, version) => {
        if (++updates === 1) throw new Error('the store is gone for a moment')
        return await lab.rows.update(row, version)
      },
    })
    const error = await failure(lab.client({ store }).orders.create(anonymousOrder()))
    expect(error).toMatchObject({ code: 'store', charged: 'no' })
    expect(await lab.record(slotOf(lab))).toMatchObject({ state: 'created', order: { id } })
    lab.sandbox.expectCharges(1)
  })

  it('if the next order has its row, an order is not bought again and no other order is returned for it', async (lab) => {
    await leaveOpen(lab)
    const { error } = await askedAgainBehind(lab, 2)
    expect(error).toMatchObject({
      code: 'unresolved_order',
      charged: 'unknown',
      attempts: 0,
      idempotencyKey: keysOf(lab)[0],
      message: expect.stringContaining('left a record that a later, identical order has overwritten'),
    })
    lab.sandbox.expectCharges(2)
  })

  it.each([
    ['', 0, 'yes'],
    [', even if its slot serves the next order by then', 1, 'unknown'],
  ] as const)(
    'an order is not reported as uncharged if another call settles it when time runs out%s',
    async (_neither, further, charged) => {
      const lab = new Lab()
      await leaveOpen(lab)
      const wait = (milliseconds: number): Promise<void> =>
        new Promise((resolve) => void lab.runtime.setTimer(resolve, milliseconds))
      let updates = 0
      const store = storeOver(lab.rows, {
        get: async (scope, id) => {
          if (updates > 0) await wait(100)
          return await lab.rows.get(scope, id)
        },
        update: async (row, version) => {
          if (++updates === 1) {
            for (let call = 0; call <= further; call++) await lab.elsewhere().orders.create(anonymousOrder())
            await wait(150)
          }
          return await lab.rows.update(row, version)
        },
      })
      const call = lab.client({ store }).orders.create(anonymousOrder(), { totalTimeout: 200 })
      expect(await failure(call)).toMatchObject({
        code: 'timeout',
        charged,
        attempts: 0,
        idempotencyKey: keysOf(lab)[0],
      })
      lab.sandbox.expectCharges(1 + further)
    },
  )

  it('an order is not bought if it was abandoned meanwhile and the next order has its row', async (lab) => {
    lab.fault({ type: 'drop' })
    const lost = await failure(lab.client({ maxRetries: 0 }).orders.create(anonymousOrder()))
    expect(lost).toMatchObject({ charged: 'unknown' })
    const other = lab.elsewhere()
    let updates = 0
    const store = storeOver(lab.rows, {
      update: async (row, version) => {
        if (++updates === 1) {
          const name = { idempotencyKey: lost.idempotencyKey ?? '' }
          await other.orders.resolve(name, { as: 'abandoned' })
          await other.orders.create(anonymousOrder())
        }
        return await lab.rows.update(row, version)
      },
    })
    const error = await failure(lab.client({ store }).orders.create(anonymousOrder()))
    expect(error).toMatchObject({ code: 'unresolved_order', idempotencyKey: lost.idempotencyKey })
    lab.sandbox.expectCharges(1)
  })

  it('a later repetition is rejected, because the caller may mean a second order', async (lab) => {
    await leaveOpen(lab)
    lab.runtime.jump(15 * MINUTE + 1)
    const error = await failure(lab.create(anonymousOrder()))
    expect(error).toMatchObject({ code: 'unresolved_order', charged: 'unknown', attempts: 0 })
    lab.sandbox.expectCharges(1)
  })

  it('an order is rejected while another process places an identical one', async (lab) => {
    lab.fault({ type: 'delay', ms: 3000 })
    const { ending } = await lab.begin(() => lab.create(anonymousOrder()))
    const error = await failure(lab.elsewhere().orders.create(anonymousOrder()))
    expect(error).toMatchObject({ code: 'duplicate_order', charged: 'unknown', attempts: 0 })
    expect(error.message).toContain('allowDuplicate')
    await ending
    expect(lab.posts).toHaveLength(1)
  })

  it('an order after a refusal is a new order with a new key', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.drain()
    const refused = await failure(lab.create(anonymousOrder()))
    expect(refused).toMatchObject({ code: 'payment_required', charged: 'no' })
    lab.topUp()
    await lab.create(anonymousOrder())
    expect(keysOf(lab)).toHaveLength(2)
    lab.sandbox.expectCharges(1)
  })

  it('a different payload is a different order, but different metadata is not', async (lab) => {
    await leaveOpen(lab)
    await lab.create(anonymousOrder({ quantity: 11 }))
    // @ts-expect-error a key that the API document does not show
    await lab.create(anonymousOrder({ metadata: { note: 'again' } }))
    lab.sandbox.expectCharges(2)
  })

  it('an order whose response was unreadable is read, not bought again', async (lab) => {
    lab.fault({ type: 'bytes', body: '<html>', status: 201 }, 3)
    const error = await failure(lab.create(anonymousOrder()))
    expect(error).toMatchObject({ code: 'invalid_response', charged: 'yes' })
    const { info } = await told(lab.create(anonymousOrder()))
    expect(info?.replayed).toBe(true)
    lab.sandbox.expectCharges(1)
  })
})

describe('a slot that serves another order', () => {
  /** A process that is paused. The response to its order arrives long after. */
  async function answeredLate(
    lab: Lab,
  ): Promise<{ ending: Promise<Told>; answer(): void; settled: SettledEvent[] }> {
    const settled: SettledEvent[] = []
    let respond: () => void = () => {}
    const late = new Promise<void>((resolve) => {
      respond = resolve
    })
    const stopped = lab.process({
      timeout: 600_000,
      totalTimeout: 600_000,
      hooks: { onSettled: (event) => void settled.push(event) },
      fetch: async (input, init) => {
        const response = await lab.sandbox.fetch(input as string, init)
        await late
        return response
      },
    })
    const { ending } = await lab.begin(() => told(stopped.client.orders.create(anonymousOrder())))
    stopped.stop()
    lab.runtime.jump(10 * MINUTE)
    const answer = (): void => {
      respond()
      stopped.wake()
    }
    return { ending, answer, settled }
  }

  it('a late response to the previous order is returned, but does not take the slot back', async (lab) => {
    const { ending, answer } = await answeredLate(lab)
    const second = await lab.elsewhere().orders.create(anonymousOrder())
    expect(lab.posts).toHaveLength(2)
    lab.fault({ type: 'stall', commit: true })
    const third = lab.process()
    const { ending: running } = await lab.begin(() => told(third.client.orders.create(anonymousOrder())))
    third.kill()
    expect(await lab.record(slotOf(lab))).toMatchObject({ state: 'open' })

    answer()
    const { order: first } = await ending
    expect(first?.id).toBe(second.id)
    // The third order is charged, and only its record shows it.
    expect(await lab.record(slotOf(lab))).toMatchObject({ state: 'open', key: lab.posts[2]?.key })
    void running
    lab.sandbox.expectCharges(2)
  })

  it('the slot keeps its order, and the error states that the previous order is not remembered', async (lab) => {
    const { ending, answer, settled } = await answeredLate(lab)
    const key = lab.posts[0]?.key as string
    await lab.client().orders.resolve({ idempotencyKey: key }, { as: 'abandoned' })
    const second = await lab.create(anonymousOrder())

    answer()
    const { order: first } = await ending
    expect(first?.id).not.toBe(second.id)
    expect(await lab.record(slotOf(lab))).toMatchObject({ state: 'created', order: { id: second.id } })
    expect(settled).toMatchObject([{ ok: true, charged: 'yes', orderId: first?.id, remembered: false }])
  })

  it('a slot accepts proof of an order that was abandoned, or whose successor was refused', async (lab) => {
    for (const refused of [false, true]) {
      const { ending, answer } = await answeredLate(lab)
      const idempotencyKey = lab.posts.at(-1)?.key as string
      await lab.client().orders.resolve({ idempotencyKey }, { as: 'abandoned' })
      if (refused) {
        lab.drain()
        await failure(lab.create(anonymousOrder()))
      }
      answer()
      const { order: first } = await ending
      const known = { state: 'created', key: idempotencyKey, order: { id: first?.id } }
      expect(await lab.record(slotOf(lab))).toMatchObject(known)
      lab.topUp()
    }
  })
})

describe('allowDuplicate', () => {
  it('allowDuplicate buys again next to a running or unresolved order', async (lab) => {
    lab.fault({ type: 'delay', ms: 3000 })
    const client = lab.client()
    const { ending } = await lab.begin(() => client.orders.create(anonymousOrder()))
    const beside = await client.orders.create(anonymousOrder(), { allowDuplicate: true })
    const first = await ending
    expect(beside.id).not.toBe(first.id)
    lab.fault({ type: 'drop' }, 5)
    await failure(client.orders.create(anonymousOrder()))
    await client.orders.create(anonymousOrder(), { allowDuplicate: true })
    lab.sandbox.expectCharges(3)
  })

  it('allowDuplicate gives the order its own name, which finds it again', async (lab) => {
    const client = lab.client({ maxRetries: 0 })
    lab.fault({ type: 'commitThenDrop' })
    const error = await failure(client.orders.create(anonymousOrder(), { allowDuplicate: true }))
    expect(error).toMatchObject({ charged: 'unknown', idempotencyKey: keysOf(lab)[0] })
    const idempotencyKey = error.idempotencyKey as string
    const placed = await client.orders.create(anonymousOrder(), { idempotencyKey })
    expect(placed.id).toBe(lab.sandbox.expectChargedOnce(idempotencyKey).orderId)
    expect(keysOf(lab)).toHaveLength(1)
  })

  it('allowDuplicate is rejected for an order that has a name', async (lab) => {
    const named = await failure(lab.create(order('r1'), { allowDuplicate: true }))
    const keyed = await failure(lab.create(anonymousOrder(), { allowDuplicate: true, idempotencyKey: 'k' }))
    for (const error of [named, keyed]) {
      expect(error).toBeInstanceOf(InvalidRequestError)
      expect(error).toMatchObject({ charged: 'no', issues: [{ path: 'options.allowDuplicate' }] })
    }
    expect(lab.posts).toHaveLength(0)
  })
})
