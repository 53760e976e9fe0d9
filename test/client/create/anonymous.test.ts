import type { SettledEvent } from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import { readIntent } from '../../../src/orders/record/intent.ts'
import { deferred } from '../../support/calls.ts'
import { it, keysOf } from '../../support/history.ts'
import { anonymousOrder, failure, Lab, order, type Told, told } from '../../support/lab.ts'
import { beforeUpdates, on, storeOver } from '../../support/stores.ts'

const MINUTE = 60_000

const slotOf = (lab: Lab): string => readIntent(lab.runtime.deriveId, anonymousOrder(), {}).slot
const recordOf = (lab: Lab) => lab.record(slotOf(lab))
const buy = (lab: Lab, by = lab.client()) => told(by.orders.create(anonymousOrder()))
const abandon = (lab: Lab, idempotencyKey: string | null | undefined) =>
  lab.elsewhere().orders.resolve({ idempotencyKey: idempotencyKey ?? '' }, { as: 'abandoned' })

/** Places an order without a name whose only response is lost. Returns the id of its charge. */
async function leaveOpen(lab: Lab, type: 'commitThenDrop' | 'drop' = 'commitThenDrop'): Promise<string> {
  lab.fault({ type })
  const { error } = await buy(lab, lab.client({ maxRetries: 0 }))
  const idempotencyKey = lab.posts[0]?.key
  expect(error).toMatchObject({ code: 'connection', charged: 'unknown', idempotencyKey })
  return lab.sandbox.ledger[0]?.orderId ?? ''
}

/** The response to the order is unreadable, however often it is repeated. */
async function leaveUnreadable(lab: Lab): Promise<void> {
  lab.fault({ type: 'bytes', body: '<html>', status: 201 }, 3)
  expect((await buy(lab)).error).toMatchObject({ code: 'invalid_response', charged: 'yes' })
}

/** The response to the order shows its id, but is not usable. */
async function leaveUnread(lab: Lab): Promise<void> {
  lab.fault({ type: 'transformBody', patch: { status: null } }, 1, 'createOrder')
  expect((await buy(lab)).error).toMatchObject({ code: 'invalid_response', charged: 'yes' })
}

/** Calls create(). Something happens before its claim is stored. */
const buyBehind = (lab: Lab, act: () => unknown): Promise<Told> =>
  buy(lab, lab.client({ store: beforeUpdates(lab.rows, (count) => count === 1 && act()) }))

/** Other calls buy this many identical orders. */
async function buyIdentical(lab: Lab, count: number): Promise<void> {
  for (let call = 0; call < count; call++) await lab.elsewhere().orders.create(anonymousOrder())
}

/** Where a second call for the same order comes from. */
const PROCESSES: readonly (readonly [where: string, clientOf: (lab: Lab) => ReturnType<Lab['client']>])[] = [
  ['the same process', (lab) => lab.client()],
  ['another process', (lab) => lab.elsewhere()],
]

it('each order without a name is a new one after the previous order was returned', async (lab) => {
  const placed = [await buy(lab), await buy(lab), await buy(lab)]
  expect(placed.map(({ order: one }) => one?.id)).toEqual(lab.sandbox.ledger.map(({ orderId }) => orderId))
  expect(placed.map(({ info }) => info?.replayed)).toEqual([false, false, false])
  expect(keysOf(lab)).toEqual([0, 1, 2])
  lab.sandbox.expectCharges(3)
})

it('an order without a name is remembered until the next takes over its row, with its own times and counts', async (lab) => {
  const { order: first } = await buy(lab)
  const created = await recordOf(lab)
  expect(created).toMatchObject({ state: 'created', order: { id: first?.id } })
  lab.runtime.jump(60 * MINUTE)
  const { order: second } = await buy(lab)
  const known = { slot: slotOf(lab), state: 'created', order: { id: second?.id } }
  expect(await lab.orders.remembered({ since: 0 })).toMatchObject([known])
  const createdAt = (created?.createdAt ?? 0) + 60 * MINUTE
  expect(await recordOf(lab)).toMatchObject({ attempts: 1, generation: 0, createdAt })
  lab.sandbox.expectCharges(2)
})

it.each(PROCESSES)(
  'the same call within the window continues the order, from %s',
  async (lab, _where, clientOf) => {
    const orderId = await leaveOpen(lab)
    lab.runtime.jump(15 * MINUTE)
    const { order: placed, info } = await buy(lab, clientOf(lab))
    expect(placed?.id).toBe(orderId)
    expect(info).toMatchObject({ replayed: true })
    expect(keysOf(lab)).toEqual([0, 0])
    lab.sandbox.expectCharges(1)
  },
)

it.each<[string, leave: (lab: Lab) => Promise<unknown>, identical: number, charges: number]>([
  ['settles it', leaveOpen, 1, 1],
  ['reads it, which was unreadable', leaveUnreadable, 1, 1],
  ['settles it, and the next order has its row', leaveOpen, 2, 2],
  ['places the next order after a person abandoned it', (lab) => leaveOpen(lab, 'drop'), -1, 1],
])(
  'a call does not buy an order again if another call meanwhile %s',
  async (lab, _what, leave, identical, charges) => {
    await leave(lab)
    const { error } = await buyBehind(lab, async () => {
      if (identical < 0) await abandon(lab, lab.posts[0]?.key)
      await buyIdentical(lab, Math.abs(identical))
    })
    expect(error).toMatchObject({ code: 'duplicate_order', charged: 'unknown', attempts: 0 })
    expect(error?.orderId).toBeUndefined()
    lab.sandbox.expectCharges(charges)
  },
)

it('an unreadable order is not returned while an overtaken call may return it', async (lab) => {
  lab.fault({ type: 'status', status: 429, headers: { 'retry-after': '60' } }, 1, 'createOrder')
  const slow = lab.process()
  const { ending } = await lab.begin(() => told(slow.client.orders.create(anonymousOrder())))
  slow.stop()
  lab.fault({ type: 'transformBody', patch: { status: null } }, 1, 'createOrder')
  await lab.elsewhere().orders.recover({ takeOver: true })
  expect((await buy(lab, lab.elsewhere())).error).toMatchObject({ code: 'duplicate_order', charged: 'yes' })
  slow.wake()
  expect((await ending).order?.id).toBe(lab.sandbox.ledger[0]?.orderId)
  lab.sandbox.expectCharges(1)
})

it('an unreadable order is not returned while the call that has taken it over may return it', async (lab) => {
  const late = async (...request: Parameters<typeof fetch>): Promise<Response> => {
    const response = await lab.sandbox.fetch(...request)
    await new Promise<void>((resolve) => void lab.runtime.setTimer(resolve, 45_000))
    return Response.json({ ...(await response.json()), status: null }, { status: 201 })
  }
  const limits = { timeout: 60_000, totalTimeout: 60_000, maxRetries: 0 }
  const slow = lab.ahead(-20_000, { ...limits, fetch: late })
  const first = await lab.begin(() => buy(lab, slow))
  lab.runtime.auto = false
  await lab.runtime.advance(41_000)
  lab.fault({ type: 'status', status: 429, headers: { 'retry-after': '30' } }, 1, 'createOrder')
  const second = buy(lab, lab.elsewhere())
  await lab.runtime.advance(9000)
  expect((await first.ending).error).toMatchObject({ code: 'invalid_response', charged: 'yes' })
  expect((await buy(lab, lab.elsewhere())).error).toMatchObject({ code: 'duplicate_order', charged: 'yes' })
  lab.runtime.auto = true
  expect((await second).order?.id).toBe(lab.sandbox.ledger[0]?.orderId)
  lab.sandbox.expectCharges(1)
})

it('an unreadable order is read after the clock was set back', async (lab) => {
  await leaveUnread(lab)
  const { order: read } = await buy(lab, lab.ahead(-60 * MINUTE))
  expect(read?.id).toBe(lab.sandbox.ledger[0]?.orderId)
})

it('an order stays remembered if the next one cannot claim its row', async (lab) => {
  const { id } = await lab.create(anonymousOrder())
  const gone = (): Promise<never> => Promise.reject(new Error('the store is gone for a moment'))
  expect((await buyBehind(lab, gone)).error).toMatchObject({ code: 'store', charged: 'no' })
  expect(await recordOf(lab)).toMatchObject({ state: 'created', order: { id } })
  lab.sandbox.expectCharges(1)
})

it.each([
  ['', 0],
  [', even if its slot serves the next order by then', 1],
] as const)(
  'an order is not reported as uncharged if another call settles it when time runs out%s',
  async (lab, _neither, further) => {
    await leaveOpen(lab)
    const wait = (milliseconds: number): Promise<void> =>
      new Promise((resolve) => void lab.runtime.setTimer(resolve, milliseconds))
    let claimed = false
    const slow = storeOver(lab.rows, {
      get: async (scope, id) => {
        if (claimed) await wait(100)
        return await lab.rows.get(scope, id)
      },
    })
    const store = beforeUpdates(slow, async (count) => {
      claimed = true
      if (count > 1) return
      await buyIdentical(lab, 1 + further)
      await wait(150)
    })
    const error = await failure(lab.client({ store }).orders.create(anonymousOrder(), { totalTimeout: 200 }))
    expect(error).toMatchObject({ code: 'duplicate_order', charged: 'unknown', attempts: 0 })
    lab.sandbox.expectCharges(1 + further)
  },
)

it.each(PROCESSES)(
  'an order is rejected while %s places an identical one, and the error explains it',
  async (lab, _, by) => {
    lab.fault({ type: 'delay', ms: 3000 })
    const { ending } = await lab.begin(() => lab.create(anonymousOrder()))
    const { error } = await buy(lab, by(lab))
    expect(error).toMatchObject({ code: 'duplicate_order', charged: 'unknown', attempts: 0 })
    expect(error?.message).toContain('allowDuplicate')
    await ending
    expect(lab.posts).toHaveLength(1)
  },
)

it.each([
  ['', () => undefined],
  [', even if its record cannot be read', on('get', 'rejects', 2)],
] as const)(
  'an identical call beside another one of its process fails as a duplicate%s',
  async (lab, _what, plan) => {
    const client = lab.elsewhere({}, plan)
    const [first, second] = await Promise.all([buy(lab, client), buy(lab, client)])
    expect(first.order?.id).toBe(lab.sandbox.ledger[0]?.orderId)
    expect(second.error).toMatchObject({ code: 'duplicate_order', attempts: 0 })
    lab.sandbox.expectCharges(1)
  },
)

it('an order after a refusal is a new order with a new key', async () => {
  const lab = new Lab({ preset: 'remembers-refusals' })
  lab.drain()
  expect((await buy(lab)).error).toMatchObject({ code: 'payment_required', charged: 'no' })
  lab.topUp()
  await lab.create(anonymousOrder())
  expect(keysOf(lab)).toEqual([0, 1])
  lab.sandbox.expectCharges(1)
})

it('a different payload is a different order, but different metadata is not', async (lab) => {
  await leaveOpen(lab)
  await lab.create(anonymousOrder({ quantity: 11 }))
  await lab.create(anonymousOrder({ metadata: { note: 'again' } }))
  lab.sandbox.expectCharges(2)
})

it.each(PROCESSES)(
  'two calls at the same time that read an unreadable order do not both return it, the second in %s',
  async (lab, _where, clientOf) => {
    await leaveUnread(lab)
    // The second call begins while the first one reads the order.
    let second: Promise<Told> | undefined
    const onRequest = ({ operation }: { operation?: string }): void => {
      if (operation === 'orders.retrieve') second ??= buy(lab, clientOf(lab))
    }
    const both = [await buy(lab, lab.client({ hooks: { onRequest } })), await second]
    expect(both.flatMap((one) => one?.order?.id ?? [])).toEqual([lab.sandbox.ledger[0]?.orderId])
    expect(both.flatMap((one) => one?.error ?? [])).toMatchObject([{ code: 'duplicate_order' }])
    lab.sandbox.expectCharges(1)
    expect((await buy(lab)).info?.replayed).toBe(false)
    lab.sandbox.expectCharges(2)
  },
)

it.each(
  PROCESSES.flatMap(([where, clientOf]) => [
    [1, 'claimed', where, clientOf] as const,
    [2, 'stored', where, clientOf] as const,
  ]),
)(
  'an unreadable order is returned once even if write %i of the first call fails, so that it is not %s, the second call in %s',
  async (lab, failing, _what, _where, clientOf) => {
    await leaveUnread(lab)
    let second: Promise<Told> | undefined
    const begin = (): Promise<Told> => (second ??= buy(lab, clientOf(lab)))
    const store = beforeUpdates(lab.rows, (count) => {
      void begin()
      if (count === failing) throw new Error('the store is gone for a moment')
    })
    const first = await buy(lab, lab.client({ store }))
    const both = [first, await begin()]
    expect(both.flatMap((one) => one.order?.id ?? [])).toEqual([lab.sandbox.ledger[0]?.orderId])
    const [error] = both.flatMap((one) => one.error ?? [])
    expect(error?.code).toBe(failing === 1 ? 'store' : 'duplicate_order')
    expect(error?.charged).not.toBe('no')
    lab.sandbox.expectCharges(1)
  },
)

it('a call that slept until another one had read its order does not return that order, too', async (lab) => {
  const insert: typeof lab.rows.insert = async (row) => {
    const inserted = await lab.rows.insert(row)
    lab.runtime.jump(3 * MINUTE)
    await leaveUnread(lab)
    expect((await buy(lab)).info?.replayed).toBe(true)
    return inserted
  }
  const { error } = await buy(lab, lab.client({ store: storeOver(lab.rows, { insert }) }))
  expect(error).toMatchObject({ code: 'timeout', charged: 'yes', orderId: lab.sandbox.ledger[0]?.orderId })
  lab.sandbox.expectCharges(1)
})

it('a call that could not read an order leaves it to the next call at once', async (lab) => {
  await leaveUnread(lab)
  lab.fault({ type: 'status', status: 503 }, 1, 'retrieveOrder')
  const { error } = await buy(lab, lab.client({ maxRetries: 0 }))
  expect(error).toMatchObject({ code: 'server', charged: 'yes' })
  expect((await buy(lab)).info?.replayed).toBe(true)
  lab.sandbox.expectCharges(1)
})

describe('a slot that serves another order', () => {
  /** A process that is paused. The response to its order arrives long after. */
  async function answeredLate(lab: Lab) {
    const settled: SettledEvent[] = []
    const late = deferred()
    const stopped = lab.process({
      timeout: 600_000,
      totalTimeout: 600_000,
      hooks: { onSettled: (event) => void settled.push(event) },
      fetch: async (input, init) => {
        const response = await lab.sandbox.fetch(input as string, init)
        await late.promise
        return response
      },
    })
    const { ending } = await lab.begin(() => buy(lab, stopped.client))
    stopped.stop()
    lab.runtime.jump(10 * MINUTE)
    const answered = async (): Promise<string | undefined> => {
      late.resolve()
      stopped.wake()
      return (await ending).order?.id
    }
    return { answered, settled, key: lab.posts.at(-1)?.key }
  }

  it('a late response to the previous order is returned, but does not take the slot back', async (lab) => {
    const { answered } = await answeredLate(lab)
    const { order: second } = await buy(lab, lab.elsewhere())
    expect(lab.posts).toHaveLength(2)
    lab.fault({ type: 'stall', commit: true })
    const third = lab.process()
    await lab.begin(() => buy(lab, third.client))
    third.kill()
    expect(await recordOf(lab)).toMatchObject({ state: 'open' })
    expect(await answered()).toBe(second?.id)
    // The third order is charged, and only its record shows it.
    expect(await recordOf(lab)).toMatchObject({ state: 'open', key: lab.posts[2]?.key })
    lab.sandbox.expectCharges(2)
  })

  it('the slot keeps its order, and the error states that the previous order is not remembered', async (lab) => {
    const { answered, settled, key } = await answeredLate(lab)
    lab.runtime.jump(6 * MINUTE)
    await abandon(lab, key)
    const { id } = await lab.create(anonymousOrder())
    const orderId = await answered()
    expect(orderId).not.toBe(id)
    expect(await recordOf(lab)).toMatchObject({ state: 'created', order: { id } })
    expect(settled).toMatchObject([{ ok: true, charged: 'yes', orderId, remembered: false }])
  })

  it('a slot accepts proof of an order that was abandoned, or whose successor was refused', async (lab) => {
    for (const refused of [false, true]) {
      const { answered, key } = await answeredLate(lab)
      lab.runtime.jump(6 * MINUTE)
      await abandon(lab, key)
      if (refused) {
        lab.drain()
        await failure(lab.create(anonymousOrder()))
      }
      const id = await answered()
      expect(await recordOf(lab)).toMatchObject({ state: 'created', key, order: { id } })
      lab.topUp()
    }
  })
})

it('allowDuplicate buys again next to a running or unresolved order', async (lab) => {
  lab.fault({ type: 'delay', ms: 3000 })
  const { ending } = await lab.begin(() => lab.create(anonymousOrder()))
  const beside = await lab.create(anonymousOrder(), { allowDuplicate: true })
  expect(beside.id).not.toBe((await ending).id)
  lab.fault({ type: 'drop' }, 5)
  await failure(lab.create(anonymousOrder()))
  await lab.create(anonymousOrder(), { allowDuplicate: true })
  lab.sandbox.expectCharges(3)
})

it.each([
  ['is as it was', 0],
  ['was bought by another call', 1],
  ['was replaced by the next one', 2],
] as const)(
  'a call without an API key speaks of the order that it continues, which %s',
  async (lab, _what, identical) => {
    await leaveOpen(lab)
    const apiKey = async (): Promise<string> => {
      await buyIdentical(lab, identical)
      throw new Error('the vault is sealed')
    }
    const { error } = await buy(lab, lab.client({ apiKey }))
    const about = { charged: 'unknown', idempotencyKey: lab.posts[0]?.key }
    expect(error).toMatchObject({ code: 'configuration', ...about })
  },
)

it('allowDuplicate gives the order its own name, which finds it again', async (lab) => {
  const client = lab.client({ maxRetries: 0 })
  lab.fault({ type: 'commitThenDrop' })
  const error = await failure(client.orders.create(anonymousOrder(), { allowDuplicate: true }))
  const idempotencyKey = lab.posts[0]?.key ?? ''
  expect(error).toMatchObject({ charged: 'unknown', idempotencyKey })
  const placed = await client.orders.create(anonymousOrder(), { idempotencyKey })
  expect(placed.id).toBe(lab.charged(idempotencyKey))
  expect(keysOf(lab)).toEqual([0, 0])
})

it('an error names the key of a deliberate duplicate even if the store does not respond', async (lab) => {
  const client = lab.elsewhere({ totalTimeout: 1000 }, on('get', 'hangs'))
  const error = await failure(client.orders.create(anonymousOrder(), { allowDuplicate: true }))
  expect(error).toMatchObject({ code: 'timeout', charged: 'unknown', idempotencyKey: expect.any(String) })
  const { idempotencyKey } = error
  await lab.create(anonymousOrder(), { idempotencyKey })
  lab.charged(idempotencyKey)
})

it('allowDuplicate is rejected for an order that has a name', async (lab) => {
  for (const call of [
    lab.create(order('r1'), { allowDuplicate: true }),
    lab.create(anonymousOrder(), { allowDuplicate: true, idempotencyKey: 'k' }),
  ]) {
    const issues = [{ path: 'options.allowDuplicate' }]
    expect(await failure(call)).toMatchObject({ code: 'invalid_request', charged: 'no', issues })
  }
  expect(lab.posts).toHaveLength(0)
})
