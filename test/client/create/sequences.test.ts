import { describe, expect } from 'vitest'
import type { ApiKey } from '../../../src/options.ts'
import { all } from '../../support/all.ts'
import { firstWriteLate, on } from '../../support/faulty-store.ts'
import { anonymousOrder, failure, Lab, type LabProcess, order, type Told, told } from '../../support/lab.ts'
import { it } from '../../support/lab-test.ts'
import { storeOver } from '../../support/store-over.ts'
import { throwing } from '../../support/throwing.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const WINDOW = 20 * MINUTE

const keysOf = (lab: Lab): readonly (string | null)[] => [...new Set(lab.posts.map(({ key }) => key))]
const sent = (lab: Lab): ReadonlySet<string> => new Set(lab.posts.map(({ key, body }) => `${key} ${body}`))

/** A process that claims r1 and has it charged, and dies before it hears so. */
async function diesAfterCharge(lab: Lab, reference = 'r1'): Promise<LabProcess> {
  const process = lab.process()
  lab.fault({ type: 'stall', commit: true })
  await lab.begin(() => process.client.orders.create(order(reference)))
  process.kill()
  lab.sandbox.expectChargedOnce(reference)
  return process
}

describe('refused with 402, topped up, charged, restarted with an empty store, asked again', () => {
  it('is charged once by a service that does not remember refusals', async (lab) => {
    lab.drain()
    expect(await failure(lab.create())).toMatchObject({ code: 'payment_required', charged: 'no' })
    lab.topUp()
    const placed = await lab.create()
    lab.wipe()
    const again = await lab.create()

    expect(again.id).toBe(placed.id)
    expect(sent(lab).size).toBe(1)
    lab.sandbox.expectCharges(1)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', generation: 0 })
  })

  it('is charged once by a service that remembers refusals: asked twice, it comes to the second key again', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    await lab.refused()
    const placed = await lab.create()
    expect(keysOf(lab)).toHaveLength(2)
    lab.wipe()
    // The first key's refusal is all that the service says to somebody who has forgotten everything.
    await failure(lab.create())
    const again = await lab.create()

    expect(again.id).toBe(placed.id)
    expect(keysOf(lab)).toHaveLength(2)
    lab.sandbox.expectCharges(1)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', generation: 1 })
  })
})

describe('claimed and charged by one process, killed, continued by another that hears 402', () => {
  it('is told as unknown, and keeps its key, where the balance is looked at before the key', async () => {
    const lab = new Lab({ preset: 'balance-before-key', balance: 2500 })
    await diesAfterCharge(lab)
    lab.runtime.jump(3 * MINUTE)
    const error = await failure(lab.process().client.orders.create(order('r1')))

    expect(error).toMatchObject({ code: 'payment_required', charged: 'unknown', attempts: 1 })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', ambiguous: true, hold: 'refused' })
    expect(sent(lab).size).toBe(1)
    lab.topUp()
    const placed = await lab.process().client.orders.create(order('r1'))
    expect(placed.id).toBe(lab.charged())
    expect(sent(lab).size).toBe(1)
    lab.sandbox.expectCharges(1)
  })

  it('is never moved to another key, however often 402 is heard', async () => {
    const lab = new Lab({ preset: 'balance-before-key', balance: 2500 })
    await diesAfterCharge(lab)
    lab.runtime.jump(3 * MINUTE)
    for (let call = 0; call < 4; call++) {
      const error = await failure(lab.process().client.orders.create(order('r1')))
      expect(error.charged).toBe('unknown')
    }
    expect(sent(lab).size).toBe(1)
    lab.sandbox.expectCharges(1)
  })

  it('is held back from the other process for 15 seconds, in which the dead one may still end', async (lab) => {
    await diesAfterCharge(lab)
    const before = lab.runtime.monotonic()
    const placed = await lab.process().client.orders.create(order('r1'), { totalTimeout: 180_000 })

    expect(placed.id).toBe(lab.charged())
    expect(lab.runtime.monotonic() - before).toBe(15_000)
    expect(sent(lab).size).toBe(1)
  })
})

describe('two calls with one reference where one hears a refusal while the other is in flight', () => {
  it.each([
    ['in two processes', (lab: Lab) => [lab.process().client, lab.process().client] as const],
    ['in one process', (lab: Lab) => [lab.client(), lab.client()] as const],
  ])('charge once, with one key, and nobody hears a wrong no: %s', async (_where, clientsOf) => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.drain()
    lab.fault({ type: 'delay', ms: 3000, when: 'after' })
    const [first, second] = clientsOf(lab)
    const { ending } = await lab.begin(() => told(first.orders.create(order('r1'))))
    const { ending: beside } = await lab.begin(() => told(second.orders.create(order('r1'))))
    const [one, two] = await Promise.all([ending, beside])

    expect(one.error).toMatchObject({ code: 'payment_required', charged: 'no' })
    expect(two.error).toMatchObject({ code: 'payment_required', charged: 'no' })
    expect(keysOf(lab)).toHaveLength(1)
    lab.sandbox.expectCharges(0)
  })

  it('give the refused one an unknown, where the other took the order over meanwhile', async (lab) => {
    lab.fault({ type: 'status', status: 402 })
    lab.sandbox.faults.add({ action: { type: 'delay', ms: 3000, when: 'after' }, skip: 1 })
    const stopped: LabProcess = lab.process({
      fetch: async (input, init) => {
        // It stands still between its request and the answer.
        stopped.stop()
        return await lab.sandbox.fetch(input as string, init)
      },
    })
    const { ending } = await lab.begin(() => told(stopped.client.orders.create(order('r1'))))
    lab.runtime.jump(3 * MINUTE)
    const { ending: inFlight } = await lab.begin(() => told(lab.process().client.orders.create(order('r1'))))
    expect(lab.posts.map(({ status }) => status)).toEqual([402, 'running'])
    stopped.wake()
    const refused = await ending
    const placed = await inFlight

    expect(refused.error).toMatchObject({ code: 'payment_required', charged: 'unknown', attempts: 1 })
    expect(placed.order?.id).toBe(lab.charged())
    expect(sent(lab).size).toBe(1)
    lab.sandbox.expectCharges(1)
  })

  it('give the refused one the order, where the other has placed it meanwhile', async (lab) => {
    lab.fault({ type: 'status', status: 402 })
    const stopped: LabProcess = lab.process({
      fetch: async (input, init) => {
        stopped.stop()
        return await lab.sandbox.fetch(input as string, init)
      },
    })
    const { ending } = await lab.begin(() => told(stopped.client.orders.create(order('r1'))))
    lab.runtime.jump(3 * MINUTE)
    const placed = await lab.process().client.orders.create(order('r1'))
    stopped.wake()
    const late = await ending

    expect(late.order?.id).toBe(placed.id)
    expect(late.info).toMatchObject({ replayed: true })
    lab.sandbox.expectCharges(1)
  })
})

describe('a process that is stopped after its claim and woken after the window', () => {
  /** A process that stands still from the moment on when its claim is stored. */
  async function stoppedAfterClaim(lab: Lab): Promise<{ process: LabProcess; ending: Promise<Told> }> {
    const insert = lab.rows.insert.bind(lab.rows)
    const process = lab.process()
    lab.rows.insert = async (row) => {
      lab.rows.insert = insert
      const result = await insert(row)
      process.stop()
      return result
    }
    const { ending } = await lab.begin(() => told(process.client.orders.create(order('r1'))))
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', ambiguous: false })
    return { process, ending }
  }

  it('sends nothing and closes the order, where nobody else took it', async (lab) => {
    const { process, ending } = await stoppedAfterClaim(lab)
    lab.runtime.jump(WINDOW)
    process.wake()
    const { error } = await ending

    expect(error).toMatchObject({ charged: 'no', attempts: 0 })
    expect(lab.posts).toHaveLength(0)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', rejection: { kind: 'cancelled' } })
  })

  it('sends nothing and returns the order, where another process placed it meanwhile', async (lab) => {
    const { process, ending } = await stoppedAfterClaim(lab)
    lab.runtime.jump(5 * MINUTE)
    const placed = await lab.process().client.orders.create(order('r1'))
    lab.runtime.jump(WINDOW)
    // The service has forgotten the key: sending it now would buy again.
    lab.sandbox.forgetKeys()
    process.wake()
    const woken = await ending

    expect(woken.order?.id).toBe(placed.id)
    expect(woken.info).toMatchObject({ attempts: 0, replayed: true })
    expect(lab.posts).toHaveLength(1)
    lab.sandbox.expectCharges(1)
  })

  it('sends nothing and does not know, where another process took it and does not know', async (lab) => {
    const { process, ending } = await stoppedAfterClaim(lab)
    lab.runtime.jump(5 * MINUTE)
    lab.fault({ type: 'commitThenDrop' })
    const other = await failure(lab.elsewhere({ maxRetries: 0 }).orders.create(order('r1')))
    expect(other.charged).toBe('unknown')
    lab.runtime.jump(WINDOW)
    lab.sandbox.forgetKeys()
    process.wake()
    const { error } = await ending

    expect(error).toMatchObject({ charged: 'unknown', attempts: 0 })
    expect(lab.posts).toHaveLength(1)
  })

  it('retries nothing after its own time, as in a machine that slept between two attempts', async (lab) => {
    lab.fault({ type: 'status', status: 503 }, 'always')
    const { ending } = await lab.begin(() => told(lab.create()))
    // The monotonic clock stands still in a machine that sleeps.
    lab.runtime.jump(HOUR)
    const { error } = await ending
    expect(error).toMatchObject({ code: 'server', charged: 'unknown', attempts: 1 })
    expect(lab.posts).toHaveLength(1)
  })
})

describe('a store that was wiped and a quantity that was changed', () => {
  it('buys nothing more, and says that something may have been bought', async (lab) => {
    await lab.create()
    lab.wipe()
    for (let call = 0; call < 3; call++) {
      const error = await failure(lab.create(order('r1', { quantity: 20 })))
      expect(error).toMatchObject({ code: 'idempotency_conflict', local: false, charged: 'unknown' })
    }
    expect(keysOf(lab)).toHaveLength(1)
    lab.sandbox.expectCharges(1)
    const again = await lab.create()
    expect(again.id).toBe(lab.charged())
  })
})

describe('an abort while the first write is pending', () => {
  it('is told as not charged where the write turns out done: the record is closed before anybody hears', async (lab) => {
    const controller = new AbortController()
    const client = lab.elsewhere({}, (operation) => {
      if (operation !== 'insert') return undefined
      controller.abort('enough')
      return 'answers_late'
    })
    const error = await failure(client.orders.create(order('r1'), { signal: controller.signal }))

    expect(error).toMatchObject({ code: 'aborted', charged: 'no', attempts: 0, cause: 'enough' })
    expect(lab.posts).toHaveLength(0)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', rejection: { kind: 'cancelled' } })
  })

  it('is told as unknown where nobody can say whether the write is done', async (lab) => {
    const controller = new AbortController()
    const client = lab.elsewhere({}, (operation) => {
      if (operation !== 'insert') return undefined
      controller.abort('enough')
      return 'done_late'
    })
    const error = await failure(client.orders.create(order('r1'), { signal: controller.signal }))
    expect(error).toMatchObject({ code: 'aborted', charged: 'unknown', attempts: 0 })
    expect(error.idempotencyKey).toMatch(/^[0-9a-f-]{36}$/)

    // The write comes through a minute later, and somebody continues what it says.
    await lab.runtime.advance(61_000)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', key: error.idempotencyKey })
    lab.runtime.jump(3 * MINUTE)
    const placed = await lab.create()
    expect(placed.id).toBe(lab.charged())
    expect(lab.posts.map(({ key }) => key)).toEqual([error.idempotencyKey])
  })

  it('is told as not charged where the write was refused and a closed record stands in its place', async (lab) => {
    const controller = new AbortController()
    const client = lab.elsewhere({}, (operation, count) => {
      if (operation !== 'insert') return undefined
      controller.abort('enough')
      return count === 1 ? 'rejects_done_late' : undefined
    })
    const error = await failure(client.orders.create(order('r1'), { signal: controller.signal }))
    expect(error).toMatchObject({ code: 'aborted', charged: 'no', attempts: 0 })
    await lab.runtime.advance(2 * MINUTE)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected' })
    expect(lab.posts).toHaveLength(0)
  })

  it('is told as not charged before anything was sent, and leaves a closed record', async (lab) => {
    const error = await failure(lab.create(order('r1'), { signal: AbortSignal.abort('now') }))
    expect(error).toMatchObject({ code: 'aborted', charged: 'no', attempts: 0, cause: 'now' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', rejection: { kind: 'cancelled' } })
    expect(lab.posts).toHaveLength(0)
    await lab.create()
    lab.sandbox.expectChargedOnce('r1')
  })

  it('is told as unknown where no closed record can be put in the place of a write that is still to come', async (lab) => {
    const client = lab.elsewhere({}, on('insert', 'rejects'))
    const error = await failure(client.orders.create(order('r1'), { signal: AbortSignal.abort() }))
    expect(error).toMatchObject({ code: 'aborted', charged: 'unknown', attempts: 0 })
  })

  it.each<[when: string, apiKey: (stop: () => void) => ApiKey]>([
    [
      'before it began',
      (stop) => {
        stop()
        return 'sk_live_1'
      },
    ],
    [
      'while the API key is asked for',
      (stop) => () => {
        stop()
        return new Promise(() => {})
      },
    ],
    ['for want of an API key', () => throwing('the vault is sealed')],
  ])('%s, is not followed by a charge from a write that an earlier call gave up', async (_when, apiKeyOf) => {
    const lab = new Lab()
    const earlier = lab.elsewhere({}, firstWriteLate('insert'))
    const lost = await failure(earlier.orders.create(order('r1')))
    expect(lost).toMatchObject({ code: 'store', charged: 'unknown' })
    const controller = new AbortController()
    const client = lab.elsewhere({ apiKey: apiKeyOf(() => controller.abort()) })
    const error = await failure(client.orders.create(order('r1'), { signal: controller.signal }))
    expect(error).toMatchObject({ code: expect.stringMatching(/^(aborted|configuration)$/), charged: 'no' })
    await lab.runtime.advance(2 * MINUTE)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected' })
    expect(await all(lab.client().orders.recover())).toEqual([])
    expect(lab.posts).toHaveLength(0)
  })

  it('stays true where the record is then forgotten, and old records are removed', async (lab) => {
    const earlier = lab.elsewhere({}, firstWriteLate('insert'))
    expect(await failure(earlier.orders.create(order('r1')))).toMatchObject({ charged: 'unknown' })
    const stopped = lab.create(order('r1'), { signal: AbortSignal.abort() })
    expect(await failure(stopped)).toMatchObject({ charged: 'no' })
    await lab.client().orders.forget({ externalOrderId: 'r1' })
    await all(lab.client().orders.recover())
    await lab.runtime.advance(2 * MINUTE)
    expect(await all(lab.client().orders.recover())).toEqual([])
    expect(lab.posts).toHaveLength(0)
  })

  it('is not said of the order before in the slot of one without a name', async (lab) => {
    const sealed = throwing('the vault is sealed')
    const first = await lab.create(anonymousOrder())
    for (const end of [
      () => failure(lab.create(anonymousOrder(), { signal: AbortSignal.abort() })),
      () => failure(lab.client({ apiKey: sealed }).orders.create(anonymousOrder())),
    ]) {
      const error = await end()
      expect(error).toMatchObject({ charged: 'no', attempts: 0 })
      expect(error).not.toHaveProperty('idempotencyKey', expect.anything())
    }
    const second = await lab.create(anonymousOrder())
    expect(second.id).not.toBe(first.id)
    const known = await all(lab.client().orders.remembered({ since: 0 }))
    expect(known.map(({ order }) => order?.id).sort()).toEqual([first.id, second.id].sort())
  })

  it('is told as unknown where the order before it could not be archived, and the record not be read again', async (lab) => {
    await lab.create(anonymousOrder())
    const client = lab.elsewhere({}, (operation, count) =>
      operation === 'insert' || (operation === 'get' && count > 1) ? 'rejects' : undefined,
    )
    expect(await failure(client.orders.create(anonymousOrder()))).toMatchObject({
      code: 'store',
      charged: 'unknown',
    })
    lab.sandbox.expectCharges(1)
  })

  it('is told as not charged of a refused order, and a claim that an earlier call gave up does not open it again', async (lab) => {
    lab.drain()
    expect(await failure(lab.create())).toMatchObject({ status: 402, charged: 'no' })
    lab.topUp()
    const earlier = lab.elsewhere({}, firstWriteLate('update'))
    expect(await failure(earlier.orders.create(order('r1')))).toMatchObject({
      code: 'store',
      charged: 'unknown',
    })
    const stopped = lab.create(order('r1'), { signal: AbortSignal.abort() })
    expect(await failure(stopped)).toMatchObject({ code: 'aborted', charged: 'no' })
    await lab.runtime.advance(2 * MINUTE)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', rejection: { kind: 'refused' } })
    expect(lab.posts).toHaveLength(1)
  })
})

describe('a call that runs out of time while others write the record that it read as refused', () => {
  it('looks again before it says anything about the wallet', async (lab) => {
    await lab.refused()
    let updates = 0
    const store = storeOver(lab.rows, {
      // Somebody is faster, twice: one is refused, the other charged without hearing so.
      update: async (row, version) => {
        updates++
        if (updates === 1) {
          lab.drain()
          await failure(lab.elsewhere().orders.create(order('r1')))
          lab.topUp()
        }
        if (updates === 2) {
          lab.fault({ type: 'stall', commit: true })
          lab
            .elsewhere()
            .orders.create(order('r1'))
            .catch(() => {})
          await new Promise<void>((resolve) => void lab.runtime.setTimer(resolve, 100))
        }
        return lab.rows.update(row, version)
      },
    })
    const error = await failure(lab.client({ store }).orders.create(order('r1'), { totalTimeout: 120 }))
    expect(error).toMatchObject({ code: 'timeout', charged: 'unknown' })
    lab.sandbox.expectChargedOnce('r1')
  })
})

describe('an abort after a send', () => {
  it('is told as unknown, and recovery does not repeat what the caller has stopped', async (lab) => {
    const controller = new AbortController()
    lab.fault({ type: 'stall', commit: true })
    const { ending } = await lab.begin(() => failure(lab.create(order('r1'), { signal: controller.signal })))
    controller.abort('enough')
    expect(await ending).toMatchObject({ code: 'aborted', charged: 'unknown', attempts: 1, cause: 'enough' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', ambiguous: true, hold: 'aborted' })
    const placed = await lab.create()
    expect(placed.id).toBe(lab.charged())
  })

  it('is told as not charged between two clean refusals', async (lab) => {
    const controller = new AbortController()
    lab.fault({ type: 'retryAfter', value: '60' }, 'always')
    const { ending } = await lab.begin(() => failure(lab.create(order('r1'), { signal: controller.signal })))
    controller.abort()
    expect(await ending).toMatchObject({ code: 'aborted', charged: 'no', attempts: 1 })
    expect(await lab.record('ref:r1')).toMatchObject({
      state: 'rejected',
      rejection: { kind: 'not_processed' },
    })
  })
})

describe('a refusal that is heard but cannot be written', () => {
  it.each(['throws', 'rejects', 'hangs', 'done_late', 'loses'] as const)(
    'is told as unknown, because the record still says open: the store %s',
    async (fault) => {
      const lab = new Lab()
      lab.drain()
      const client = lab.elsewhere({}, on('update', fault))
      const error = await failure(client.orders.create(order('r1')))
      expect(error).toMatchObject({ code: 'payment_required', charged: 'unknown', attempts: 1 })
      expect(await lab.record('ref:r1')).toMatchObject({ state: 'open' })

      lab.topUp()
      lab.runtime.jump(3 * MINUTE)
      const placed = await lab.create()
      expect(placed.id).toBe(lab.charged())
      lab.sandbox.expectCharges(1)
      expect(sent(lab).size).toBe(1)
    },
  )

  it.each(['loses_answer', 'done_unanswered', 'answers_late'] as const)(
    'is told as not charged where reading back shows that it was written: the store %s',
    async (fault) => {
      const lab = new Lab()
      lab.drain()
      const client = lab.elsewhere({}, on('update', fault))
      const error = await failure(client.orders.create(order('r1')))
      expect(error).toMatchObject({ code: 'payment_required', charged: 'no' })
      expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected' })
    },
  )
})

describe('a 201 that is unreadable', () => {
  it('once: the same key is asked again and the order returned, also without retries', async (lab) => {
    lab.fault({ type: 'cutBody' })
    const { order: placed, info } = await told(lab.client({ maxRetries: 0 }).orders.create(order('r1')))
    expect(placed?.id).toBe(lab.charged())
    expect(info?.attempts).toBe(2)
    expect(sent(lab).size).toBe(1)
  })

  it('twice: the third answer is the order', async (lab) => {
    lab.fault({ type: 'cutBody', cleanly: true }, 2)
    const { order: placed, info } = await told(lab.client({ maxRetries: 0 }).orders.create(order('r1')))
    expect(placed?.id).toBe(lab.charged())
    expect(info?.attempts).toBe(3)
    expect(sent(lab).size).toBe(1)
  })

  it('to another call, between a look and a claim: the key is asked again', async (lab) => {
    lab.fault({ type: 'drop' })
    await failure(lab.client({ maxRetries: 0 }).orders.create(order('r1')))
    let updates = 0
    const store = storeOver(lab.rows, {
      update: async (row, version) => {
        if (++updates === 1) {
          lab.fault({ type: 'cutBody' }, 3)
          const error = await failure(lab.elsewhere().orders.create(order('r1')))
          expect(error).toMatchObject({ charged: 'yes', attempts: 3 })
        }
        return await lab.rows.update(row, version)
      },
    })
    const { order: placed } = await told(lab.client({ store }).orders.create(order('r1')))
    expect(placed?.id).toBe(lab.charged())
  })

  it('three times: is charged, remembered so, and never asked for a fourth time by this call', async (lab) => {
    lab.fault({ type: 'cutBody' }, 'always')
    const error = await failure(lab.create())
    expect(error).toMatchObject({ code: 'invalid_response', charged: 'yes', attempts: 3, status: 201 })
    expect(await lab.record('ref:r1')).toMatchObject({
      state: 'created',
      readable: false,
      body: expect.any(String),
    })
    lab.sandbox.expectCharges(1)
  })

  it.each([
    ['402', { type: 'status', status: 402 }],
    ['401', { type: 'status', status: 401 }],
    ['409', { type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' }],
    ['in progress', { type: 'inProgress' }],
    ['500', { type: 'status', status: 500 }],
    ['a reset', { type: 'drop' }],
    ['a page', { type: 'bytes', body: '<html>', status: 200 }],
  ] as const)('is charged, whatever the service says when it is asked again: %s', async (_what, action) => {
    const lab = new Lab()
    lab.fault({ type: 'cutBody' })
    lab.fault(action, 'always')
    const error = await failure(lab.create())
    expect(error).toMatchObject({ code: 'invalid_response', charged: 'yes', status: 201 })
    expect(error.message).toContain('The wallet was charged')
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created' })
  })

  it('is charged also where the caller gives up reading it', async (lab) => {
    const controller = new AbortController()
    lab.fault({ type: 'stallBody' })
    const { ending } = await lab.begin(() => failure(lab.create(order('r1'), { signal: controller.signal })))
    controller.abort()
    expect(await ending).toMatchObject({ code: 'aborted', charged: 'yes' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', readable: false })
  })
})

describe('in progress for ever', () => {
  it('is unknown at the deadline, keeps its key, and is continued by the next call', async () => {
    const lab = new Lab({ behaviour: { orphanedMarkLifetime: null } })
    lab.fault({ type: 'crash' })
    for (let call = 0; call < 3; call++) {
      const error = await failure(lab.create())
      expect(error).toMatchObject({ code: 'idempotency_in_progress', charged: 'unknown' })
    }
    expect(sent(lab).size).toBe(1)
    lab.sandbox.configure({ orphanedMarkLifetime: 0 })
    const placed = await lab.create()
    expect(placed.id).toBe(lab.charged())
    expect(sent(lab).size).toBe(1)
  })

  it('is not asked about any longer than the window lasts, however much time the call has', async (lab) => {
    lab.fault({ type: 'inProgress' }, 'always')
    const client = lab.client({ safeRetryWindow: 60_000, totalTimeout: 300_000 })
    const error = await failure(client.orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'idempotency_in_progress', charged: 'unknown' })
    const times = lab.sandbox.requests.map(({ at }) => at)
    expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(60_000)
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(50_000)
  })

  it('needs recovery past the window, and still no other key', async (lab) => {
    lab.fault({ type: 'inProgress' }, 'always')
    let error = await failure(lab.create())
    while (error.code === 'idempotency_in_progress') error = await failure(lab.create())
    expect(error).toMatchObject({ code: 'unresolved_order', charged: 'unknown' })
    expect(sent(lab).size).toBe(1)
  })
})

describe('a clock that was set back an hour', () => {
  it('before the next call: an open order counts as past its window', async (lab) => {
    await lab.doubted()
    lab.runtime.jump(-HOUR)
    const error = await failure(lab.create())
    expect(error).toMatchObject({ code: 'unresolved_order', charged: 'unknown', attempts: 0 })
    expect(error.message).toContain('clock went back')
    lab.sandbox.expectCharges(1)
  })

  it('during a call: nothing more is sent', async (lab) => {
    lab.fault({ type: 'status', status: 503 }, 'always')
    const { ending } = await lab.begin(() => failure(lab.create()))
    lab.runtime.jump(-HOUR)
    expect(await ending).toMatchObject({ code: 'server', charged: 'unknown', attempts: 1 })
    expect(lab.posts).toHaveLength(1)
  })

  it('during a call that continues an older order: nothing more is sent either', async (lab) => {
    lab.fault({ type: 'status', status: 503 }, 'always')
    await failure(lab.client({ maxRetries: 0 }).orders.create(order('r1')))
    lab.runtime.jump(10 * MINUTE)
    const { ending } = await lab.begin(() => failure(lab.create()))
    lab.runtime.jump(-5 * MINUTE)
    expect(await ending).toMatchObject({ attempts: 1 })
    expect(lab.posts).toHaveLength(2)
  })

  it('leaves no claim that looks alive for an hour', async (lab) => {
    await diesAfterCharge(lab)
    lab.runtime.jump(-HOUR)
    expect(await failure(lab.create())).toMatchObject({ code: 'unresolved_order', charged: 'unknown' })
  })

  it('changes nothing for an order that was created or refused', async (lab) => {
    const placed = await lab.create()
    lab.drain()
    await failure(lab.create(order('r2')))
    lab.topUp()
    lab.runtime.jump(-HOUR)
    expect((await lab.create()).id).toBe(placed.id)
    await lab.create(order('r2'))
    lab.sandbox.expectCharges(2)
  })
})
