import { describe, expect } from 'vitest'
import type { CustomerOrderingClient } from '../../../src/client.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { on } from '../../support/faulty-store.ts'
import { failure, Lab, order, told } from '../../support/lab.ts'
import { it } from '../../support/lab-test.ts'

const MINUTE = 60_000

/** The distinct keys on the wire, in the order in which they were first sent. */
const keysOf = (lab: Lab): readonly (string | null)[] => [...new Set(lab.posts.map(({ key }) => key))]

/** The keys as numbers: 0 for the first that was sent, 1 for the next. */
const sequence = (lab: Lab): readonly number[] => lab.posts.map(({ key }) => keysOf(lab).indexOf(key))

/** What one recovery says, record by record. */
async function recover(client: CustomerOrderingClient): Promise<string[]> {
  const outcomes: string[] = []
  for await (const { outcome } of client.orders.recover()) outcomes.push(outcome)
  return outcomes
}

describe('an order that is refused', () => {
  it('keeps its key for as long as the service does not remember refusals', async (lab) => {
    const client = lab.client()
    lab.drain()
    const first = await failure(client.orders.create(order('r1')))
    expect(first).toMatchObject({ code: 'payment_required', charged: 'no', attempts: 1 })
    lab.topUp()
    const placed = await client.orders.create(order('r1'))

    expect(placed.id).toBe(lab.charged())
    expect(sequence(lab)).toEqual([0, 0])
    expect(await lab.record('ref:r1')).toMatchObject({ generation: 0, attempts: 2 })
  })

  it('moves on once, in the second call, after hearing the same refusal again', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.client()
    lab.drain()
    await failure(client.orders.create(order('r1')))
    lab.topUp()
    const { order: placed, info } = await told(client.orders.create(order('r1')))

    expect(placed?.id).toBe(lab.charged())
    expect(info).toMatchObject({ attempts: 2, idempotencyKey: keysOf(lab)[1] })
    expect(sequence(lab)).toEqual([0, 0, 1])
    expect(await lab.record('ref:r1')).toMatchObject({ generation: 1, attempts: 3, key: keysOf(lab)[1] })
  })

  it('never moves on in the call that was refused first', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.drain()
    await failure(lab.create())
    expect(sequence(lab)).toEqual([0])
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', generation: 0 })
  })

  it('goes to a key that was never sent in each later call, after its first, however often it is refused', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.client()
    lab.drain()
    for (let call = 0; call < 4; call++) {
      const error = await failure(client.orders.create(order('r1')))
      expect(error).toMatchObject({ code: 'payment_required', charged: 'no' })
    }
    expect(sequence(lab)).toEqual([0, 0, 1, 0, 2, 0, 3])
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', generation: 3, attempts: 7 })
    lab.topUp()
    await client.orders.create(order('r1'))
    lab.sandbox.expectCharges(1)
  })

  it('does not move on with another refusal than before', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.client()
    lab.drain()
    await failure(client.orders.create(order('r1')))
    lab.topUp()
    lab.sandbox.forgetKeys()
    lab.fault({ type: 'status', status: 422, code: 'OUT_OF_STOCK' })
    await failure(client.orders.create(order('r1')))
    expect(sequence(lab)).toEqual([0, 0])
    lab.fault({ type: 'status', status: 422, code: 'TOO_MANY' })
    await failure(client.orders.create(order('r1')))
    expect(sequence(lab)).toEqual([0, 0, 0])
    lab.fault({ type: 'status', status: 404, code: 'TOO_MANY' })
    await failure(client.orders.create(order('r1')))
    expect(sequence(lab)).toEqual([0, 0, 0, 0])
  })

  it.each([
    ['401', { type: 'status', status: 401 }],
    ['403', { type: 'status', status: 403 }],
    ['425', { type: 'status', status: 425 }],
    ['429', { type: 'status', status: 429 }],
    ['413', { type: 'status', status: 413 }],
    ['402 out of a proxy', { type: 'status', status: 402, html: true }],
    ['408', { type: 'status', status: 408 }],
    ['500', { type: 'status', status: 500 }],
    ['a reset', { type: 'drop' }],
    ['a redirect', { type: 'redirect', location: 'https://elsewhere.test/' }],
    ['another conflict', { type: 'status', status: 409, code: 'BUSY' }],
    ['in progress', { type: 'inProgress' }],
    ['no answer', { type: 'stall' }],
  ] as const)('never moves on because of %s, however often it is heard', async (_what, action) => {
    const lab = new Lab()
    const client = lab.client({ maxRetries: 1, totalTimeout: 60_000 })
    const remove = lab.fault(action, 'always')
    for (let call = 0; call < 3; call++) await failure(client.orders.create(order('r1')))
    remove()
    await client.orders.create(order('r1'))

    expect(keysOf(lab)).toHaveLength(1)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', generation: 0 })
    lab.sandbox.expectCharges(1)
  })

  it('does not move on if the second call hears the refusal after an attempt in doubt', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.client()
    lab.drain()
    await failure(client.orders.create(order('r1')))
    lab.fault({ type: 'drop' })
    const error = await failure(client.orders.create(order('r1')))

    expect(error).toMatchObject({ code: 'payment_required', charged: 'unknown', attempts: 2 })
    expect(sequence(lab)).toEqual([0, 0, 0])
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', ambiguous: true, hold: 'refused' })
  })

  it('does not move on for a call that ran beside the refused one, in this process or another', async () => {
    for (const second of [(lab: Lab) => lab.client(), (lab: Lab) => lab.elsewhere()]) {
      const lab = new Lab({ preset: 'remembers-refusals' })
      lab.drain()
      lab.fault({ type: 'delay', ms: 3000 })
      const { ending } = await lab.begin(() => failure(lab.create()))
      const beside = await failure(second(lab).orders.create(order('r1')))
      expect((await ending).charged).toBe('no')
      expect(beside).toMatchObject({ code: 'payment_required', charged: 'no' })
      expect(keysOf(lab)).toHaveLength(1)
      await failure(lab.create())
      expect(keysOf(lab)).toHaveLength(2)
    }
  })

  it('does not move on because the key belongs to what a call beside this one was refused, after a proxy refused the first', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    // All processes share it.
    Object.defineProperty(lab.rows, 'durability', { value: 'server' })
    lab.drain()
    lab.fault({ type: 'status', status: 413 })
    const noted = { ...order('r1'), metadata: { externalOrderId: 'r1', note: 'another' } }
    expect(await failure(lab.create())).toMatchObject({ status: 413, charged: 'no' })
    lab.runtime.jump(1)
    // It has read the record, and hears of it only when the other call has been refused.
    lab.runtime.auto = false
    const slow = lab.elsewhere({}, on('get', 'answers_late', 1))
    const ending = failure(slow.orders.create(order('r1')))
    await lab.runtime.settle()
    const beside = failure(lab.elsewhere().orders.create(noted))
    await lab.runtime.settle()
    expect(await beside).toMatchObject({ code: 'payment_required', charged: 'no' })
    lab.runtime.auto = true
    expect(await ending).toMatchObject({ code: 'idempotency_conflict', charged: 'unknown' })
    expect(sequence(lab)).toEqual([0, 0, 0])
    // The next call was made after the refusal.
    expect(await failure(lab.create())).toMatchObject({ code: 'payment_required' })
    expect(sequence(lab)).toEqual([0, 0, 0, 0, 1])
  })

  it('does not move on for a call that ran beside the refused one, although no time passed', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.drain()
    const client = lab.client()
    lab.runtime.auto = false
    const calls = [client.orders.create(order('r1')), client.orders.create(order('r1'))].map(failure)
    for (const error of await Promise.all(calls)) expect(error).toMatchObject({ charged: 'no' })
    expect(sequence(lab)).toEqual([0, 0])
  })

  it('sends the first key again also where another call was refused under the next one meanwhile', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.drain()
    await failure(lab.create())
    lab.runtime.jump(1000)
    const get = lab.rows.get.bind(lab.rows)
    const stopped = lab.process()
    let looks = 0
    lab.rows.get = async (scope, id) => {
      const row = await get(scope, id)
      if (++looks === 1) stopped.stop()
      return row
    }
    // It has seen the first key refused, and stands still while another call has the second one refused.
    const { ending } = await lab.begin(() => failure(stopped.client.orders.create(order('r1'))))
    await failure(lab.create())
    expect(sequence(lab)).toEqual([0, 0, 1])
    stopped.wake()
    expect(await ending).toMatchObject({ code: 'payment_required', charged: 'no' })
    expect(sequence(lab)).toEqual([0, 0, 1, 0, 2])
  })

  it('does not move on for a call whose first look was slow, so that the refusal came in between', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.drain()
    lab.fault({ type: 'delay', ms: 500 })
    const { ending } = await lab.begin(() => failure(lab.create()))
    // Reads only after two seconds what is there by then.
    const rows = lab.rows
    const slow = lab.elsewhere()
    const get = rows.get.bind(rows)
    let looks = 0
    rows.get = async (scope, id) => {
      if (++looks === 1) await new Promise<void>((resolve) => lab.runtime.setTimer(resolve, 2000))
      return await get(scope, id)
    }
    await Promise.all([ending, failure(slow.orders.create(order('r1')))])
    expect(keysOf(lab)).toHaveLength(1)
  })

  it('begins with another key when the clock was set back an hour, so that nobody knows how old the first is', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    await lab.refused()
    lab.runtime.jump(-3_600_000)
    await lab.create()
    expect(sequence(lab)).toEqual([0, 1])
  })

  it('stays under its first key without retries, and begins with another once the first may be forgotten', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.client({ maxRetries: 0 })
    lab.drain()
    await failure(client.orders.create(order('r1')))
    lab.topUp()
    const second = await failure(client.orders.create(order('r1')))
    expect(second).toMatchObject({ charged: 'no', attempts: 1, idempotencyKey: keysOf(lab)[0] })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', generation: 0, attempts: 2 })
    lab.runtime.jump(20 * MINUTE)
    await client.orders.create(order('r1'))
    expect(sequence(lab)).toEqual([0, 0, 1])
  })

  it.each<[string, (lab: Lab) => void]>([
    ['its store was lost', (lab) => lab.wipe()],
    ['another process with a store of its own is asked', (lab) => lab.wipe()],
  ])('is charged once where it was refused twice, then bought, and %s', async (_what, lose) => {
    const lab = new Lab()
    lab.drain()
    await failure(lab.create())
    await failure(lab.create())
    lab.topUp()
    const bought = await lab.create()
    expect(sequence(lab)).toEqual([0, 0, 1, 0])
    lose(lab)
    const again = await lab.create()
    expect(again.id).toBe(bought.id)
    lab.sandbox.expectCharges(1)
  })

  it('is charged once where another store without its history is asked for another quantity', async (lab) => {
    await failure(lab.create(order('r1', { quantity: 5000 })))
    const elsewhere = lab.client({ store: new MemoryStore() })
    await elsewhere.orders.create(order('r1', { quantity: 1 }))
    for (let call = 0; call < 3; call++)
      expect(await failure(lab.create(order('r1', { quantity: 5 })))).toMatchObject({
        code: 'idempotency_conflict',
        charged: 'unknown',
      })
    lab.sandbox.expectCharges(1)
  })

  it('is not repeated by recovery when its key was first sent too long ago, although it was refused then', async (lab) => {
    const client = lab.client({ maxRetries: 0 })
    lab.drain()
    await failure(client.orders.create(order('r1')))
    lab.topUp()
    lab.runtime.jump(15 * MINUTE)
    lab.fault({ type: 'commitThenDrop' })
    expect(await failure(client.orders.create(order('r1')))).toMatchObject({ charged: 'unknown' })
    lab.runtime.jump(12 * MINUTE)
    // The service remembers a key for 25 minutes from its first use.
    lab.sandbox.forgetKeys()
    expect(await recover(client)).toEqual(['created'])

    expect(sequence(lab)).toEqual([0, 0])
    lab.sandbox.expectCharges(1)
  })

  it('begins with a key that was never sent once the window of its first is over, and repeats that one', async (lab) => {
    const client = lab.client()
    lab.drain()
    await failure(client.orders.create(order('r1')))
    await failure(client.orders.create(order('r1')))
    lab.topUp()
    lab.runtime.jump(19 * MINUTE)
    lab.sandbox.forgetKeys()
    lab.fault({ type: 'commitThenDrop' })
    await client.orders.create(order('r1'))
    expect(sequence(lab)).toEqual([0, 0, 1, 2, 2])
    lab.sandbox.expectCharges(1)
  })

  it('keeps the first key for whoever asks after hours in which the service did not look at it', async () => {
    for (const action of [
      { type: 'status', status: 429 },
      { type: 'status', status: 401 },
    ] as const) {
      const lab = new Lab()
      const client = lab.client({ maxRetries: 0 })
      const remove = lab.fault(action, 'always')
      for (let hour = 0; hour < 3; hour++) {
        await failure(client.orders.create(order('r1')))
        lab.runtime.jump(60 * MINUTE)
      }
      remove()
      const placed = await client.orders.create(order('r1'))
      lab.wipe()
      expect((await lab.create()).id).toBe(placed.id)
      lab.sandbox.expectCharges(1)
    }
  })

  it('is sent by recovery under its first key too, after it was refused under a later one and enqueued', async (lab) => {
    const client = lab.client()
    lab.drain()
    await failure(client.orders.create(order('r1')))
    await failure(client.orders.create(order('r1')))
    await client.orders.enqueue(order('r1'))
    lab.topUp()
    expect(await recover(client)).toEqual(['created'])
    expect(sequence(lab)).toEqual([0, 0, 1, 0])
    lab.wipe()
    await lab.create()
    lab.sandbox.expectCharges(1)
  })

  it('is sent by recovery under another key where the window of the first was over before it was enqueued', async (lab) => {
    const client = lab.client()
    lab.drain()
    await failure(client.orders.create(order('r1')))
    lab.runtime.jump(30 * MINUTE)
    await client.orders.enqueue(order('r1'))
    lab.topUp()
    expect(await recover(client)).toEqual(['created'])
    expect(sequence(lab)).toEqual([0, 1])
  })

  it('comes to the same second key after the store was lost', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    await lab.refused()
    const placed = await lab.create()
    lab.wipe()
    await failure(lab.create())
    const again = await lab.create()
    expect(again.id).toBe(placed.id)
    lab.sandbox.expectCharges(1)
  })

  it('draws a new key where keys are drawn', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.unlabelled()
    lab.drain()
    await failure(client.orders.create(order('r1')))
    lab.topUp()
    await client.orders.create(order('r1'))
    expect(sequence(lab)).toEqual([0, 0, 1])
  })
})

describe('a key that the caller gave', () => {
  it('is never changed, however often it is refused', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.client()
    const { metadata: _metadata, ...bare } = order('r1')
    lab.drain()
    for (let call = 0; call < 3; call++) {
      await failure(client.orders.create(order('r1'), { idempotencyKey: 'mine' }))
      await failure(client.orders.create(bare, { idempotencyKey: 'also-mine' }))
    }
    expect(keysOf(lab)).toEqual(['mine', 'also-mine'])
  })

  it('is not sent any more once its window is over, and another one given by the caller takes its place', async (lab) => {
    const client = lab.client()
    lab.drain()
    await failure(client.orders.create(order('r1'), { idempotencyKey: 'mine' }))
    lab.topUp()
    lab.runtime.jump(20 * MINUTE)
    const spent = await failure(client.orders.create(order('r1'), { idempotencyKey: 'mine' }))
    expect(spent).toMatchObject({
      code: 'invalid_request',
      charged: 'no',
      idempotencyKey: 'mine',
      attempts: 0,
    })
    await expect(client.orders.enqueue(order('r1'))).rejects.toMatchObject({ code: 'invalid_request' })
    expect(keysOf(lab)).toEqual(['mine'])
    await client.orders.create(order('r1'), { idempotencyKey: 'another' })
    lab.sandbox.expectCharges(1)
  })

  it('is not sent again after another one took its place, so that its window cannot begin anew', async () => {
    const lab = new Lab({ behaviour: { keyLifetime: 25 * MINUTE, keyLifetimeFrom: 'firstUse' } })
    const client = lab.client({ maxRetries: 0 })
    lab.drain()
    await failure(client.orders.create(order('r1'), { idempotencyKey: 'a' }))
    await failure(client.orders.create(order('r1'), { idempotencyKey: 'b' }))
    lab.topUp()
    lab.runtime.jump(15 * MINUTE)
    lab.fault({ type: 'commitThenDrop' })
    const refused = await failure(client.orders.create(order('r1'), { idempotencyKey: 'a' }))
    expect(refused).toMatchObject({ code: 'invalid_request', charged: 'no', attempts: 0 })
    await expect(client.orders.enqueue(order('r1'), { idempotencyKey: 'a' })).rejects.toMatchObject({
      code: 'invalid_request',
    })
    await failure(client.orders.create(order('r1'), { idempotencyKey: 'c' }))
    lab.runtime.jump(12 * MINUTE)
    await recover(client)
    expect(keysOf(lab)).toEqual(['a', 'b', 'c'])
    lab.sandbox.expectCharges(1)
  })

  it('is not sent again after a person gave the order up, because a refusal under it would prove nothing', async () => {
    const lab = new Lab({ preset: 'balance-before-key' })
    const client = lab.client({ maxRetries: 0 })
    lab.sandbox.setBalance(lab.sandbox.customerId, 2500)
    lab.fault({ type: 'commitThenDrop' })
    await failure(client.orders.create(order('r1'), { idempotencyKey: 'a' }))
    await client.orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
    await failure(client.orders.create(order('r1'), { idempotencyKey: 'a' }))
    expect(lab.posts.length).toBe(1)
  })

  it('is kept even where it was drawn by this package and given back', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.unlabelled()
    const { metadata: _metadata, ...bare } = order('r1')
    lab.drain()
    const named = await failure(client.orders.create(order('r1')))
    const duplicate = await failure(client.orders.create(bare, { allowDuplicate: true }))
    for (let call = 0; call < 2; call++) {
      await failure(client.orders.create(order('r1'), { idempotencyKey: named.idempotencyKey as string }))
      await failure(client.orders.create(bare, { idempotencyKey: duplicate.idempotencyKey as string }))
    }
    expect(keysOf(lab)).toEqual([named.idempotencyKey, duplicate.idempotencyKey])
  })

  it('takes the place of a refused one where the caller gives another', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    const client = lab.client()
    lab.drain()
    await failure(client.orders.create(order('r1')))
    lab.topUp()
    const placed = await client.orders.create(order('r1'), { idempotencyKey: 'mine' })
    expect(keysOf(lab)).toHaveLength(2)
    expect(placed.id).toBe(lab.charged('mine'))
    expect(await lab.record('ref:r1')).toMatchObject({ key: 'mine', keyOrigin: 'caller', generation: 1 })
  })

  it('takes no place where the first key may have been charged', async (lab) => {
    const client = lab.client({ maxRetries: 0 })
    lab.fault({ type: 'commitThenDrop' })
    await failure(client.orders.create(order('r1')))
    const error = await failure(client.orders.create(order('r1'), { idempotencyKey: 'mine' }))
    expect(error).toMatchObject({ code: 'idempotency_conflict', local: true, charged: 'unknown' })
    lab.sandbox.expectCharges(1)
  })
})
