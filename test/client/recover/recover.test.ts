import type { OrderRecord, RecoveryOutcome } from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import type { CustomerOrderingClient } from '../../../src/client.ts'
import type { OrderStore } from '../../../src/idempotency/store.ts'
import { all } from '../../support/all.ts'
import { faultyStore, on } from '../../support/faulty-store.ts'
import { anonymousOrder, failure, Lab, type LabProcess, order, told } from '../../support/lab.ts'
import { it } from '../../support/lab-test.ts'
import { throwing } from '../../support/throwing.ts'

const MINUTE = 60_000
const BUSY = 2 * MINUTE
const WINDOW = 20 * MINUTE

const outcomesOf = (found: readonly RecoveryOutcome[]): string[] =>
  found.map(({ outcome, record, reason }) =>
    [
      record.externalOrderId ?? record.slot.slice(0, 4),
      outcome,
      ...(reason === undefined ? [] : [reason]),
    ].join(' '),
  )

/** A process that claims an order and dies with its request on the way, charged or not. */
async function leave(
  lab: Lab,
  reference: string,
  { charged = true, options = {} }: { charged?: boolean; options?: Parameters<Lab['process']>[0] } = {},
): Promise<LabProcess> {
  const process = lab.process(options)
  lab.sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'stall', commit: charged } })
  await lab.begin(() => process.client.orders.create(order(reference)))
  process.kill()
  return process
}

const get = (lab: Lab) => lab.sandbox.requests.filter(({ method }) => method === 'GET')

describe('recover() settles what a dead process left', () => {
  it('by repeating the request under its key, with its bytes', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(BUSY)
    const [outcome, ...rest] = await all(lab.client().orders.recover())

    const { orderId } = lab.sandbox.expectChargedOnce('r1')
    expect(rest).toEqual([])
    expect(outcome).toMatchObject({
      outcome: 'created',
      order: { id: orderId },
      record: { state: 'created' },
    })
    expect(new Set(lab.posts.map(({ key, body }) => `${key} ${body}`)).size).toBe(1)
    expect(await lab.record('ref:r1')).toMatchObject({ readable: true, order: { id: orderId } })
    expect(await lab.record('ref:r1')).not.toHaveProperty('body')
  })

  it('by placing an order that never reached the service', async (lab) => {
    await leave(lab, 'r1', { charged: false })
    lab.runtime.jump(BUSY)
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['r1 created'])
    lab.sandbox.expectChargedOnce('r1')
  })

  it('for orders by key and without a name as well', async (lab) => {
    const process = lab.process()
    lab.fault({ type: 'stall', commit: true }, 2)
    await lab.begin(() => process.client.orders.create(anonymousOrder(), { idempotencyKey: 'k1' }))
    await lab.begin(() => process.client.orders.create(anonymousOrder()))
    process.kill()
    lab.runtime.jump(BUSY)
    expect(outcomesOf(await all(lab.client().orders.recover())).sort()).toEqual([
      'anon created',
      'key: created',
    ])
    lab.sandbox.expectChargedOnce('k1')
    lab.sandbox.expectCharges(2)
  })

  it('asking the service once for each, whatever it answers', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(BUSY)
    lab.fault({ type: 'status', status: 503 }, 'always')
    const before = lab.posts.length
    const [outcome] = await all(lab.client().orders.recover())
    expect(outcome).toMatchObject({ outcome: 'still_open', error: { code: 'server', charged: 'unknown' } })
    expect(lab.posts.length - before).toBe(1)
  })

  it('with the headers that the caller gives it, in what it sends and in what it reads', async (lab) => {
    await leave(lab, 'r1')
    await leave(lab, 'r2')
    lab.runtime.jump(BUSY)
    const before = lab.sandbox.requests.length
    const headers = { 'x-trace': 'recovery-1' }
    lab.fault({ type: 'status', status: 503 })
    await all(lab.client().orders.recover({ headers }))
    lab.runtime.jump(WINDOW)
    await all(lab.client().orders.recover({ headers }))
    const sent = lab.sandbox.requests.slice(before)
    expect(new Set(sent.map(({ method }) => method))).toEqual(new Set(['POST', 'GET']))
    expect(new Set(sent.map((request) => request.headers['x-trace']))).toEqual(new Set(['recovery-1']))
  })

  it('and sends nothing where nothing is open', async (lab) => {
    await lab.create()
    lab.drain()
    await failure(lab.create(order('r2')))
    const before = lab.sandbox.requests.length
    expect(await all(lab.client().orders.recover())).toEqual([])
    expect(lab.sandbox.requests.length).toBe(before)
  })

  it('and tells hooks what became of each', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(BUSY)
    await all(lab.client().orders.recover())
    expect(lab.settled.filter(({ operation }) => operation === 'orders.recover')).toEqual([
      expect.objectContaining({ recovery: 'created', ok: true, charged: 'yes', externalOrderId: 'r1' }),
    ])
  })
})

describe('recover() leaves alone what a live call may be working on', () => {
  it('until that call’s time is over, or at once with takeOver', async (lab) => {
    await leave(lab, 'r1')
    const before = lab.posts.length
    expect(outcomesOf(await all(lab.process().client.orders.recover()))).toEqual(['r1 in_progress'])
    expect(lab.posts.length).toBe(before)
    expect(outcomesOf(await all(lab.process().client.orders.recover({ takeOver: true })))).toEqual([
      'r1 created',
    ])
    lab.sandbox.expectChargedOnce('r1')
  })

  it('in this very process, even with takeOver', async (lab) => {
    const client = lab.client()
    lab.fault({ type: 'delay', ms: 5000, when: 'during' })
    const { ending } = await lab.begin(() => client.orders.create(order('r1')))
    const before = lab.posts.length
    expect(outcomesOf(await all(client.orders.recover({ takeOver: true })))).toEqual(['r1 in_progress'])
    expect(lab.posts.length).toBe(before)
    await ending
    lab.sandbox.expectChargedOnce('r1')
  })

  it('and waits for the service where the service is at work on it', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(BUSY)
    lab.fault({ type: 'inProgress' })
    const [outcome] = await all(lab.client().orders.recover())
    expect(outcome).toMatchObject({ outcome: 'in_progress', error: { code: 'idempotency_in_progress' } })
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['r1 created'])
  })

  it('and does not send over a claim that another process made first', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(BUSY)
    const slow = lab.elsewhere({}, on('update', 'loses'))
    const before = lab.posts.length
    expect(outcomesOf(await all(slow.orders.recover()))).toEqual(['r1 in_progress'])
    expect(lab.posts.length).toBe(before)
  })

  it('and reports an order that was settled between the list and its turn as what it is', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(10)
    await leave(lab, 'r2')
    lab.runtime.jump(10)
    await leave(lab, 'r3', { charged: false })
    lab.runtime.jump(BUSY)
    const found: string[] = []
    for await (const outcome of lab.process().client.orders.recover()) {
      found.push(...outcomesOf([outcome]))
      if (outcome.record.externalOrderId !== 'r1') continue
      await lab.client().orders.resolve({ externalOrderId: 'r3' }, { as: 'abandoned' })
      await lab.create(order('r2'))
    }
    expect(found).toEqual(['r1 created', 'r2 created', 'r3 rejected'])
    lab.sandbox.expectCharges(2)
  })
})

describe('recover() past the point where repeating is safe only looks', () => {
  it('and tells of each order that it could not look, because there was no API key just then', async (lab) => {
    await leave(lab, 'r1')
    await leave(lab, 'r2')
    lab.runtime.jump(WINDOW + BUSY)
    let asked = 0
    const apiKey = async (): Promise<string> => {
      // Once for each record, to see whose it is; then for the list.
      if (++asked > 2) throw new Error('the vault is down')
      return lab.sandbox.apiKey
    }
    const client = lab.client({ apiKey })
    const found = await all(client.orders.recover())
    expect(found.map(({ record, error }) => [record.externalOrderId, error?.code])).toEqual([
      ['r1', 'configuration'],
      ['r2', 'configuration'],
    ])
  })

  it('in the list, for the reference, past the window', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(WINDOW)
    const before = lab.posts.length
    const [outcome] = await all(lab.client().orders.recover())
    const { orderId } = lab.sandbox.expectChargedOnce('r1')
    expect(outcome).toMatchObject({
      outcome: 'created',
      order: { id: orderId },
      record: { state: 'created' },
    })
    expect(lab.posts.length).toBe(before)
    // From here on it is remembered like any other.
    expect((await lab.create()).id).toBe(orderId)
    expect(lab.posts.length).toBe(before)
  })

  it('and an order that is not in the list stays open, for a person', async (lab) => {
    await leave(lab, 'r1', { charged: false })
    lab.runtime.jump(WINDOW)
    lab.sandbox.addOrder({ metadata: { externalOrderId: 'r2' } })
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['r1 needs_attention past_window'])
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open' })
    lab.sandbox.expectCharges(0)
  })

  it('and looks for it in two sweeps of the list, not more', async (lab) => {
    await leave(lab, 'r1', { charged: false })
    lab.runtime.jump(WINDOW)
    lab.sandbox.addOrder({ metadata: { externalOrderId: 'r2' } })
    await all(lab.client().orders.recover())
    const begun = get(lab).filter(
      ({ path }) => new URL(path, lab.sandbox.baseUrl).searchParams.get('offset') === '0',
    )
    expect(begun.length).toBe(2)
  })

  it('and one of a service that does not echo references stays open, too', async () => {
    const lab = new Lab({ preset: 'minimal-answers' })
    await leave(lab, 'r1')
    lab.runtime.jump(WINDOW)
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['r1 needs_attention past_window'])
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open' })
  })

  it('and one without a reference is not even looked for', async (lab) => {
    const process = lab.process()
    lab.fault({ type: 'stall', commit: true })
    await lab.begin(() => process.client.orders.create(anonymousOrder(), { idempotencyKey: 'k1' }))
    process.kill()
    lab.runtime.jump(WINDOW)
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['key: needs_attention past_window'])
    expect(get(lab)).toEqual([])
  })

  it('and a clock that went back counts as past it', async (lab) => {
    await leave(lab, 'r1', { charged: false })
    lab.runtime.jump(-60 * MINUTE)
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['r1 needs_attention past_window'])
    expect(lab.posts.length).toBe(1)
  })

  it('and asks again in a second sweep, because rows move', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(WINDOW)
    lab.sandbox.faults.add({
      match: { operation: 'listOrders' },
      action: { type: 'mutateList', change: 'dropFirst' },
    })
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['r1 created'])
  })

  it('and stays open where the list cannot be had now', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(WINDOW)
    for (const action of [
      { type: 'drop' },
      { type: 'status', status: 503 },
      { type: 'status', status: 429 },
    ] as const) {
      lab.sandbox.faults.add({ match: { operation: 'listOrders' }, times: 'always', action })
      const [outcome] = await all(lab.client().orders.recover())
      expect(outcome).toMatchObject({ outcome: 'still_open', error: { charged: 'unknown' } })
      expect(outcome).not.toHaveProperty('reason')
      lab.sandbox.faults.clear()
    }
  })

  it('and needs a person where the list may not be read, or is none', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(WINDOW)
    lab.sandbox.faults.add({ match: { operation: 'listOrders' }, action: { type: 'status', status: 403 } })
    expect(await all(lab.client().orders.recover())).toMatchObject([
      { outcome: 'needs_attention', reason: 'past_window', error: { code: 'permission_denied' } },
    ])
    const listEnvelope = throwing('not what I know')
    expect(await all(lab.client({ listEnvelope }).orders.recover())).toMatchObject([
      { outcome: 'needs_attention', reason: 'past_window', error: { code: 'invalid_response' } },
    ])
  })

  it('and takes a row with an id as proof, although nothing else in it is readable', async (lab) => {
    await leave(lab, 'r1')
    const { orderId } = lab.sandbox.expectChargedOnce('r1')
    lab.runtime.jump(WINDOW)
    lab.sandbox.faults.add({
      match: { operation: 'listOrders' },
      action: { type: 'bytes', body: JSON.stringify([{ id: orderId, amount: 1.5, externalOrderId: 'r1' }]) },
    })
    const [outcome] = await all(lab.client().orders.recover())
    expect(outcome).toMatchObject({
      outcome: 'created',
      record: { state: 'created', order: { id: orderId } },
    })
    expect(outcome).not.toHaveProperty('order')
    // Now that the id is known, the order itself is one GET away.
    expect(await all(lab.client().orders.recover())).toMatchObject([
      { outcome: 'created', order: { id: orderId } },
    ])
    expect(await lab.record('ref:r1')).toMatchObject({ readable: true })
  })

  it('after the caller’s abort, and after a refusal that proved nothing', async () => {
    const lab = new Lab({ balance: 2500, preset: 'balance-before-key' })
    const controller = new AbortController()
    lab.fault({ type: 'stall' })
    const { ending } = await lab.begin(() => told(lab.create(order('r1'), { signal: controller.signal })))
    controller.abort()
    expect((await ending).error).toMatchObject({ code: 'aborted', charged: 'unknown' })
    lab.fault({ type: 'commitThenDrop' })
    expect(await failure(lab.create(order('r2')))).toMatchObject({
      code: 'payment_required',
      charged: 'unknown',
    })
    const before = lab.posts.length
    const found = await all(lab.client().orders.recover())
    expect(lab.posts.length).toBe(before)
    // The order that was charged is in the list; the other one is nowhere, which proves nothing.
    expect(outcomesOf(found).sort()).toEqual(['r1 needs_attention aborted', 'r2 created'])
    lab.sandbox.expectCharges(1)
  })

  it('under another API key, which replay all does not override', async () => {
    const lab = new Lab({ preset: 'minimal-answers', behaviour: { keyScope: 'customer' } })
    await leave(lab, 'r1')
    const apiKey = lab.sandbox.addApiKey({ customer: lab.sandbox.customerId })
    lab.runtime.jump(BUSY)
    const before = lab.posts.length
    for (const replay of ['safe', 'all'] as const) {
      const found = await all(lab.client({ apiKey }).orders.recover({ replay }))
      expect(outcomesOf(found)).toEqual(['r1 needs_attention api_key_changed'])
    }
    expect(lab.posts.length).toBe(before)
    // Unless the service is known to keep the keys of all API keys of a customer together.
    const found = await all(lab.client({ apiKey, idempotencyScope: 'customer' }).orders.recover())
    expect(outcomesOf(found)).toEqual(['r1 created'])
    lab.sandbox.expectCharges(1)
  })
})

describe('recover({ replay: "all" }) repeats', () => {
  const abandonedBy: Readonly<Record<string, (lab: Lab) => Promise<unknown>>> = {
    'past the window': async (lab) => {
      await leave(lab, 'r1')
      lab.runtime.jump(WINDOW)
    },
    'after the clock went back': async (lab) => {
      await leave(lab, 'r1')
      lab.runtime.jump(-60 * MINUTE)
    },
    'after an abort': async (lab) => {
      const controller = new AbortController()
      lab.fault({ type: 'stall', commit: true })
      const { ending } = await lab.begin(() => told(lab.create(order('r1'), { signal: controller.signal })))
      controller.abort()
      await ending
    },
    'after a refusal that proved nothing': async (lab) => {
      lab.fault({ type: 'commitThenDrop' })
      lab.fault({ type: 'status', status: 402 })
      await failure(lab.create())
    },
  }

  it.each(Object.entries(abandonedBy))('%s', async (_when, abandon) => {
    const lab = new Lab({ preset: 'minimal-answers' })
    await abandon(lab)
    const [outcome] = await all(lab.client().orders.recover({ replay: 'all' }))
    const { orderId } = lab.sandbox.expectChargedOnce(lab.posts[0]?.key ?? '')
    expect(outcome).toMatchObject({ outcome: 'created', order: { id: orderId } })
    expect(new Set(lab.posts.map(({ key, body }) => `${key} ${body}`)).size).toBe(1)
  })

  it('and leaves the record still open, not refused, where the service could not be reached', async () => {
    const lab = new Lab({ preset: 'minimal-answers' })
    lab.fault({ type: 'commitThenDrop' })
    lab.fault({ type: 'status', status: 402 })
    await failure(lab.create())
    lab.fault({ type: 'drop' })
    const found = await all(lab.client().orders.recover({ replay: 'all' }))
    expect(found).toMatchObject([{ outcome: 'still_open', error: { code: 'connection' } }])
    // The hold stays: nothing has lifted it.
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual([
      'r1 needs_attention refused_after_doubt',
    ])
  })
})

describe('a refusal that recovery hears', () => {
  it.each([400, 402, 404, 409, 422])('proves nothing, status %i', async (status) => {
    const lab = new Lab({ preset: 'minimal-answers' })
    await leave(lab, 'r1')
    lab.runtime.jump(BUSY)
    lab.fault({ type: 'status', status, ...(status === 409 ? { code: 'IDEMPOTENCY_CONFLICT' } : {}) })
    const [outcome] = await all(lab.client().orders.recover())
    expect(outcome).toMatchObject({
      outcome: 'needs_attention',
      reason: 'refused_after_doubt',
      error: { status },
    })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', hold: 'refused', generation: 0 })
    // The next recovery does not ask again.
    const before = lab.posts.length
    await all(lab.client().orders.recover())
    expect(lab.posts.length).toBe(before)
  })

  it.each([401, 403, 429])('leaves the order open for the next recovery, status %i', async (status) => {
    const lab = new Lab()
    await leave(lab, 'r1')
    lab.runtime.jump(BUSY)
    lab.fault({ type: 'status', status })
    expect(await all(lab.client().orders.recover())).toMatchObject([
      { outcome: 'still_open', error: { status } },
    ])
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['r1 created'])
  })
})

describe('an order that was created but never readable', () => {
  const unreadable = async (lab: Lab, times = 3): Promise<void> => {
    lab.fault({ type: 'cutBody', after: 0 }, times)
    expect(await failure(lab.create())).toMatchObject({ charged: 'yes' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', readable: false })
  }

  it('is read by repeating the request inside the window', async (lab) => {
    await unreadable(lab)
    const found = await all(lab.client().orders.recover())
    expect(found).toMatchObject([{ outcome: 'created', order: { id: lab.charged() } }])
    expect(await lab.record('ref:r1')).toMatchObject({ readable: true })
    expect(await all(lab.client().orders.unresolved())).toEqual([])
  })

  it('stays created, with the reason in error, if it is not readable once more', async (lab) => {
    await unreadable(lab, 4)
    const [outcome] = await all(lab.client().orders.recover())
    expect(outcome).toMatchObject({
      outcome: 'created',
      record: { state: 'created' },
      error: { charged: 'yes' },
    })
    expect(outcome).not.toHaveProperty('order')
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['r1 created'])
  })

  it('is told as charged also where the store does not take the proof', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(BUSY)
    lab.fault({ type: 'cutBody', after: 0 }, 'always')
    const client = lab.elsewhere(
      {},
      on('update', 'hangs', (count) => count > 1),
    )
    expect(await all(client.orders.recover())).toMatchObject([
      { outcome: 'created', reason: 'unreadable', error: { charged: 'yes' } },
    ])
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open' })
  })

  it('is looked for in the list past the window', async (lab) => {
    await unreadable(lab)
    lab.runtime.jump(WINDOW)
    const before = lab.posts.length
    expect(await all(lab.client().orders.recover())).toMatchObject([
      { outcome: 'created', order: { id: lab.charged() } },
    ])
    expect(lab.posts.length).toBe(before)
  })

  it('needs a person past the window where the list does not show references', async () => {
    const lab = new Lab({ preset: 'minimal-answers' })
    await unreadable(lab)
    lab.runtime.jump(WINDOW)
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['r1 needs_attention past_window'])
  })

  const flawed = async (lab: Lab): Promise<string> => {
    const transform = (body: unknown): unknown => ({ ...(body as object), amount: 1.5 })
    lab.fault({ type: 'transformBody', transform })
    const { orderId } = await failure(lab.create())
    lab.runtime.jump(WINDOW)
    return orderId ?? ''
  }

  it('is read by its id past the window, where that is known', async () => {
    const lab = new Lab({ preset: 'minimal-answers' })
    const id = await flawed(lab)
    expect(await all(lab.client().orders.recover())).toMatchObject([
      { outcome: 'created', order: { id, amount: 2500 } },
    ])
    expect(get(lab).map(({ path }) => path)).toEqual([`/v1/orders/${id}`])
  })

  it('is created all the same where it cannot be read by its id either', async () => {
    const lab = new Lab({ preset: 'minimal-answers' })
    const id = await flawed(lab)
    lab.sandbox.removeOrder(id)
    expect(await all(lab.client().orders.recover())).toMatchObject([
      {
        outcome: 'created',
        reason: 'unreadable',
        record: { order: { id } },
        error: { code: 'not_found', charged: 'yes' },
      },
    ])
  })

  it('is not taken for another order that the service answers with', async () => {
    const lab = new Lab({ preset: 'minimal-answers' })
    const id = await flawed(lab)
    const transform = (body: unknown): unknown => ({ ...(body as object), id: 'ord_other' })
    lab.sandbox.faults.add({
      match: { operation: 'retrieveOrder' },
      action: { type: 'transformBody', transform },
    })
    expect(await all(lab.client().orders.recover())).toMatchObject([
      {
        outcome: 'created',
        reason: 'unreadable',
        record: { order: { id } },
        error: { code: 'invalid_response' },
      },
    ])
    expect(await lab.record('ref:r1')).toMatchObject({ order: { id }, readable: false })
  })
})

describe('the walk of recover()', () => {
  it('takes those first whose window ends next, and those past it last', async (lab) => {
    await leave(lab, 'old')
    lab.runtime.jump(WINDOW)
    await leave(lab, 'first')
    lab.runtime.jump(5 * MINUTE)
    await leave(lab, 'second')
    lab.runtime.jump(BUSY)
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual([
      'first created',
      'second created',
      'old created',
    ])
  })

  it('asks nobody any more after three transport failures in a row', async (lab) => {
    for (const reference of ['r1', 'r2', 'r3', 'r4', 'r5']) {
      await leave(lab, reference)
      lab.runtime.jump(10)
    }
    lab.runtime.jump(BUSY)
    lab.fault({ type: 'drop' }, 'always')
    const before = lab.sandbox.requests.length
    const found = await all(lab.client().orders.recover())
    expect(found.map(({ outcome, error }) => `${outcome} ${error?.code}`)).toEqual([
      'still_open connection',
      'still_open connection',
      'still_open connection',
      'still_open undefined',
      'still_open undefined',
    ])
    expect(lab.sandbox.requests.length - before).toBe(3)
  })

  it('does not look in the list either then: what could not be looked for is still open, not lost', async (lab) => {
    await leave(lab, 'old')
    lab.runtime.jump(WINDOW)
    for (const reference of ['r1', 'r2', 'r3']) await leave(lab, reference)
    lab.runtime.jump(BUSY)
    lab.fault({ type: 'drop' }, 'always')
    const found = await all(lab.client().orders.recover())
    expect(outcomesOf(found).at(-1)).toBe('old still_open')
    expect(get(lab)).toEqual([])
  })

  it('counts failures in a row only: an answer in between begins anew, a live call does not', async (lab) => {
    for (const reference of ['r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7']) {
      await leave(lab, reference)
      lab.runtime.jump(10)
    }
    lab.runtime.jump(BUSY)
    const broken = ['r1', 'r2', 'r4', 'r6', 'r7']
    const when = ({ externalOrderId }: { externalOrderId: string | null }): boolean =>
      broken.includes(externalOrderId ?? '')
    lab.sandbox.faults.add({ match: { when }, times: 'always', action: { type: 'drop' } })
    // Another process begins on r5 while this one is at r1.
    const found: string[] = []
    for await (const outcome of lab.process().client.orders.recover()) {
      found.push(...outcomesOf([outcome]))
      if (outcome.record.externalOrderId !== 'r1') continue
      const other = lab.process({ fetch: () => new Promise(() => {}) })
      await lab.begin(() => other.client.orders.create(order('r5')))
    }
    expect(found).toEqual([
      'r1 still_open',
      'r2 still_open',
      'r3 created',
      'r4 still_open',
      'r5 in_progress',
      'r6 still_open',
      'r7 still_open',
    ])
  })

  it('goes on after one record’s trouble', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(10)
    await leave(lab, 'r2')
    lab.runtime.jump(BUSY)
    const apiKeys = ['', lab.sandbox.apiKey]
    const apiKey = (): string => apiKeys.shift() ?? lab.sandbox.apiKey
    const found = await all(lab.client({ apiKey }).orders.recover())
    expect(found).toMatchObject([
      { outcome: 'still_open', error: { code: 'configuration' } },
      { outcome: 'created' },
    ])

    await all(lab.client().orders.recover())
    await leave(lab, 'r3')
    lab.runtime.jump(BUSY)
    const unwritable = lab.elsewhere({}, on('update', 'rejects'))
    const before = lab.posts.length
    expect(await all(unwritable.orders.recover())).toMatchObject([
      { outcome: 'still_open', error: { code: 'store' } },
    ])
    expect(lab.posts.length).toBe(before)
  })

  it('fails where the store itself cannot be read', async (lab) => {
    const rows = faultyStore(lab.rows, lab.runtime)
    const answers: OrderStore['listOpen'][] = [
      () => Promise.reject(new Error('gone')),
      () => new Promise(() => {}),
      throwing('gone'),
    ]
    for (const listOpen of answers) {
      const client = lab.client({ store: { ...rows, listOpen } })
      await expect(all(client.orders.recover())).rejects.toMatchObject({ code: 'store' })
      await expect(all(client.orders.unresolved())).rejects.toMatchObject({ code: 'store' })
    }
  })

  it('reports an order although the store cannot be read any more when it came back', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(BUSY)
    const failing = lab.elsewhere({}, (operation, count) =>
      (operation === 'get' && count > 1) || (operation === 'update' && count > 1) ? 'rejects' : undefined,
    )
    const [outcome] = await all(failing.orders.recover())
    expect(outcome).toMatchObject({ outcome: 'created', order: { id: lab.charged() } })
  })

  it('tells what it cannot read, before all others', async (lab) => {
    for (const reference of ['r1', 'r2', 'r3', 'r4']) await leave(lab, reference)
    lab.runtime.jump(BUSY)
    await lab.tamper('ref:r1', (content) => {
      content['layout'] = 2
    })
    await lab.tamper('ref:r2', (content) => {
      delete content['key']
    })
    await lab.tamper('ref:r3', (content) => {
      content['body'] = String(content['body']).replace('"quantity":10', '"quantity":20')
    })
    const found = await all(lab.client().orders.recover())
    expect(outcomesOf(found).slice(0, 2).sort()).toEqual([
      'row: needs_attention corrupt',
      'row: needs_attention newer_version',
    ])
    // What was meddled with is not sent, but the order may be looked for.
    expect(outcomesOf(found).slice(2)).toEqual(['r4 created', 'r3 created'])
    expect(lab.posts.filter(({ body }) => body.includes('"quantity":20'))).toEqual([])
  })

  it('may be left at any point: the rest stays as it was', async (lab) => {
    await leave(lab, 'r1')
    lab.runtime.jump(10)
    await leave(lab, 'r2')
    lab.runtime.jump(BUSY)
    for await (const outcome of lab.client().orders.recover()) {
      expect(outcomesOf([outcome])).toEqual(['r1 created'])
      break
    }
    expect(await lab.record('ref:r2')).toMatchObject({ state: 'open', version: 1 })
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['r2 created'])
  })

  it('ends with its signal, and that says nothing about the order that was being asked for', async (lab) => {
    await leave(lab, 'r1', { charged: false })
    lab.runtime.jump(10)
    await leave(lab, 'r2')
    lab.runtime.jump(BUSY)
    const controller = new AbortController()
    lab.fault({ type: 'stall' })
    const found: string[] = []
    const { ending } = await lab.begin(async () => {
      for await (const outcome of lab.client().orders.recover({ signal: controller.signal }))
        found.push(...outcomesOf([outcome]))
    })
    controller.abort()
    await expect(ending).rejects.toMatchObject({ code: 'aborted' })
    expect(found).toEqual(['r1 still_open'])
    expect(await lab.record('ref:r1')).not.toHaveProperty('hold')
    expect(outcomesOf(await all(lab.client().orders.recover()))).toEqual(['r1 created', 'r2 created'])
  })
})

describe('many recoveries', () => {
  it('at once settle every order once', async (lab) => {
    const references = Array.from({ length: 12 }, (_, index) => `r${index}`)
    for (const [index, reference] of references.entries())
      await leave(lab, reference, { charged: index % 2 === 0 })
    lab.runtime.jump(BUSY)
    lab.sandbox.configure({ processingTime: 40 })
    const recoverers = [1, 2, 3, 4].map(() => lab.process().client)
    const found = (await Promise.all(recoverers.map((client) => all(client.orders.recover())))).flat()
    for (const reference of references) {
      lab.sandbox.expectChargedOnce(reference)
      expect(
        found.some(({ outcome, record }) => outcome === 'created' && record.externalOrderId === reference),
      ).toBe(true)
    }
    expect(found.filter(({ outcome }) => outcome !== 'created' && outcome !== 'in_progress')).toEqual([])
    expect(await all(lab.client().orders.unresolved())).toEqual([])
    // One request each, besides the one whose sender died.
    expect(lab.posts.length).toBe(2 * references.length)
  })

  it('killed at any effect and run again settle it, too', async () => {
    const operations = ['get', 'update'] as const
    for (const killedAt of operations.flatMap((operation) =>
      [1, 2, 3].map((count) => [operation, count] as const),
    )) {
      for (const applied of [true, false]) {
        const lab = new Lab()
        await leave(lab, 'r1')
        const killed = lab.process({}, (operation, count) =>
          operation === killedAt[0] && count === killedAt[1]
            ? applied
              ? 'done_unanswered'
              : 'hangs'
            : undefined,
        )
        await lab.begin(() => all(killed.client.orders.recover({ takeOver: true })))
        killed.kill()
        const found = await all(lab.process().client.orders.recover({ takeOver: true }))
        for (const { outcome } of found) expect(outcome).toBe('created')
        lab.sandbox.expectChargedOnce('r1')
        expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', readable: true })
      }
    }
  })
})

describe('unresolved()', () => {
  it('shows what is open or not readable, and sends nothing', async (lab) => {
    await lab.create(order('done'))
    await leave(lab, 'r1')
    const before = lab.sandbox.requests.length
    const found: OrderRecord[] = await all(lab.client().orders.unresolved())
    expect(found).toMatchObject([{ slot: 'ref:r1', externalOrderId: 'r1', state: 'open' }])
    expect(lab.sandbox.requests.length).toBe(before)
    expect(found[0]).not.toHaveProperty('body')
    expect(found[0]).not.toHaveProperty('apiKeyTag')
  })

  it('fails after the readable ones if there is one that is not', async (lab) => {
    await leave(lab, 'r1')
    await leave(lab, 'r2')
    await lab.tamper('ref:r1', (content) => {
      content['layout'] = 9
    })
    const found: string[] = []
    const walk = async (): Promise<void> => {
      for await (const { slot } of lab.client().orders.unresolved()) found.push(slot)
    }
    await expect(walk()).rejects.toMatchObject({ code: 'store', charged: 'unknown' })
    expect(found).toEqual(['ref:r2'])
  })
})

describe('a clock that was ahead when an order was sent', () => {
  const HOUR = 60 * 60_000

  it.each<[string, (client: CustomerOrderingClient) => Promise<unknown>]>([
    ['recover()', (client) => all(client.orders.recover())],
    ['create()', (client) => failure(client.orders.create(order('r1')))],
    ['enqueue()', (client) => client.orders.enqueue(order('r1')).catch(() => {})],
  ])('never lets %s open the window of its key again, once it was set right', async (_what, look) => {
    const lab = new Lab()
    lab.sandbox.configure({ orderFields: [] })
    lab.runtime.jump(HOUR)
    await lab.doubted()
    lab.runtime.jump(-HOUR)
    await look(lab.client())
    lab.sandbox.forgetKeys()
    // By the record's own times, the order was sent five minutes ago.
    lab.runtime.jump(HOUR + 5 * 60_000)
    expect(await all(lab.client().orders.recover())).toMatchObject([
      { outcome: 'needs_attention', reason: 'past_window', record: { firstSentAt: 0 } },
    ])
    expect(await failure(lab.create())).toMatchObject({ code: 'unresolved_order' })
    expect(lab.posts).toHaveLength(1)
    lab.sandbox.expectCharges(1)
  })

  it('does not keep the order of a killed call for that call until the clock has caught up', async (lab) => {
    const killed = lab.process()
    lab.runtime.jump(400 * 24 * HOUR)
    lab.fault({ type: 'stall' })
    await lab.begin(() => killed.client.orders.create(order('r1')))
    killed.kill()
    lab.runtime.jump(HOUR - 400 * 24 * HOUR)
    for (let run = 0; run < 2; run++)
      expect(await all(lab.elsewhere().orders.recover())).toMatchObject([
        { outcome: 'needs_attention', reason: 'past_window', record: { firstSentAt: 0 } },
      ])
    const given = { as: 'abandoned' } as const
    expect(await lab.elsewhere().orders.resolve({ externalOrderId: 'r1' }, given)).toMatchObject({
      state: 'rejected',
    })
  })

  it('does not let the first key of a refused order be sent again', async (lab) => {
    lab.drain()
    lab.runtime.jump(HOUR)
    await failure(lab.create())
    lab.runtime.jump(-HOUR)
    await failure(lab.create())
    lab.runtime.jump(HOUR + 5 * 60_000)
    lab.topUp()
    await lab.create()
    expect(new Set(lab.posts.map(({ key }) => key)).size).toBe(3)
    lab.sandbox.expectCharges(1)
  })
})
