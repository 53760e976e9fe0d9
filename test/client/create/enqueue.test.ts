import { type OrderOutbox, type RecoveryOutcome, StoreError } from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import type { StoredRow } from '../../../src/stores/store.ts'
import { all } from '../../support/all.ts'
import { faultyStore, on } from '../../support/faulty-store.ts'
import { anonymousOrder, failure, Lab, order, told } from '../../support/lab.ts'
import { it } from '../../support/lab-test.ts'
import { throwing } from '../../support/throwing.ts'

const MINUTE = 60_000
const BUSY = 2 * MINUTE
const WINDOW = 20 * MINUTE

const outcomesOf = (found: readonly RecoveryOutcome[]): string[] =>
  found.map(({ outcome, record, reason, error }) =>
    [record.externalOrderId ?? record.slot, outcome, reason ?? error?.code ?? ''].join(' ').trimEnd(),
  )

const recover = async (lab: Lab, options: Parameters<Lab['client']>[0] = {}): Promise<string[]> =>
  outcomesOf(await all(lab.elsewhere(options).orders.recover()))

describe('enqueue()', () => {
  it('enqueue() stores the order and sends nothing, and the next recover() places it', async (lab) => {
    const record = await lab.client().orders.enqueue(order('r1'))
    expect(record).toMatchObject({
      slot: 'ref:r1',
      state: 'open',
      ambiguous: false,
      attempts: 0,
      generation: 0,
    })
    expect(record).not.toHaveProperty('firstSentAt')
    expect(record).not.toHaveProperty('busyUntil')
    expect(lab.sandbox.requests).toEqual([])
    expect(await all(lab.elsewhere().orders.unresolved())).toEqual([record])

    expect(await recover(lab)).toEqual(['r1 created'])
    const orderId = lab.charged()
    expect(await lab.record('ref:r1')).toMatchObject({ readable: true, order: { id: orderId }, attempts: 1 })
    expect(lab.posts.map(({ key }) => key)).toEqual([record.key])
    expect(await recover(lab)).toEqual([])
  })

  it('enqueue() uses the key that create() would use', async (lab) => {
    const { key } = await lab.client().orders.enqueue(order('r1'))
    lab.wipe()
    await lab.create()
    expect(lab.posts.map((post) => post.key)).toEqual([key])
    expect((await lab.client().orders.enqueue(order('r2'), { idempotencyKey: 'mine' })).key).toBe('mine')
    expect((await lab.client().orders.enqueue(anonymousOrder(), { idempotencyKey: 'k1' })).slot).toBe(
      'key:k1',
    )
  })

  it('enqueue() requires a name, and rejects what create() rejects', async (lab) => {
    const { orders } = lab.client()
    const service = await lab.client().services.retrieve('svc_standard')
    for (const [call, path] of [
      [() => orders.enqueue(anonymousOrder()), 'metadata.externalOrderId'],
      [() => orders.enqueue(order('r1', { quantity: 0 })), 'quantity'],
      [() => orders.enqueue(order('r1', { quantity: 2000 }), { service }), 'quantity'],
      [() => orders.enqueue(order('r1', { serviceId: 'svc_other' }), { service }), 'serviceId'],
      [() => orders.enqueue(order('r1'), { idempotencyKey: 'é' }), 'idempotencyKey'],
      [() => orders.enqueue(order('r1'), { within: {} as OrderOutbox }), 'within'],
      [() => orders.enqueue(order('r1'), { within: lab.rows }), 'within'],
      [() => orders.enqueue(order('r1'), { within: undefined } as object), 'within'],
      [() => orders.enqueue(order('r1'), { signal: AbortSignal.abort() } as never), 'signal'],
    ] as const)
      await expect(call()).rejects.toMatchObject({
        code: 'invalid_request',
        charged: 'no',
        issues: [{ path }],
      })
    expect(await all(orders.remembered({ since: 0 }))).toEqual([])
  })

  it('an enqueued order may wait longer than any window, and be sent with another API key', async (lab) => {
    const { scope } = lab.place('')
    await lab.client().orders.enqueue(order('r1'))
    lab.runtime.jump(1000 * WINDOW)
    expect(await lab.rows.prune(scope, { createdBefore: Infinity, rejectedBefore: Infinity })).toBe(0)
    const apiKey = lab.sandbox.addApiKey({ customer: lab.sandbox.customerId })
    expect(await recover(lab, { apiKey })).toEqual(['r1 created'])
    lab.charged()
  })

  it('an order may be enqueued while the clock is ahead', async (lab) => {
    await lab.client().orders.enqueue(order('r1'))
    lab.runtime.jump(-60 * MINUTE)
    expect(await recover(lab)).toEqual(['r1 created'])
  })
})

describe('what enqueue() finds', () => {
  it('enqueue() returns an existing order unchanged', async (lab) => {
    const client = lab.client()
    const first = await client.orders.enqueue(order('r1'))
    expect(await client.orders.enqueue(order('r1'))).toEqual(first)
    await all(client.orders.recover())
    expect(await client.orders.enqueue(order('r1'))).toMatchObject({ state: 'created', version: 3 })
    expect(await recover(lab)).toEqual([])
    lab.sandbox.expectCharges(1)
  })

  it('enqueue() is rejected while a call places the order, because that call may close it as not sent', async (lab) => {
    lab.fault({ type: 'delay', ms: 5000, when: 'during' })
    const { ending } = await lab.begin(() => lab.create())
    await expect(lab.elsewhere().orders.enqueue(order('r1'))).rejects.toMatchObject({
      code: 'unresolved_order',
      charged: 'unknown',
      message: expect.stringContaining('may still be running'),
    })
    await ending
    expect(await lab.elsewhere().orders.enqueue(order('r1'))).toMatchObject({ state: 'created' })
    lab.charged()
  })

  it.each([401, 403, 425, 429])(
    'an enqueued order stays stored when create() receives %i, and the next recovery places it',
    async (status) => {
      const lab = new Lab()
      const client = lab.client({ maxRetries: 0 })
      await client.orders.enqueue(order('r1'))
      lab.fault({ type: 'status', status, code: 'NO' })
      const error = await failure(client.orders.create(order('r1')))
      // Nothing is bought yet, but recovery may still send the order: after a 'no', the caller
      // could buy it elsewhere.
      expect(error).toMatchObject({ status, charged: 'unknown' })
      expect(await recover(lab)).toEqual(['r1 created'])
      lab.charged()
    },
  )

  it('an enqueued order survives when a presumably dead call wakes up and closes its own record', async (lab) => {
    const asleep = lab.process({ totalTimeout: 60_000 }, on('insert', 'answers_late'))
    const { ending } = await lab.begin(() => told(asleep.client.orders.create(order('r1'))))
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', version: 1 })
    asleep.stop()
    lab.runtime.jump(BUSY)
    expect(await lab.elsewhere().orders.enqueue(order('r1'))).toMatchObject({ state: 'open' })
    await lab.runtime.advance(BUSY)
    asleep.wake()
    expect((await ending).error).toMatchObject({ charged: 'unknown' })
    expect(await recover(lab)).toEqual(['r1 created'])
    lab.charged()
  })

  it('enqueue() of another order with the same name is a conflict', async (lab) => {
    const client = lab.client()
    await client.orders.enqueue(order('r1'))
    const other = order('r1', { quantity: 11 })
    const conflict = { code: 'idempotency_conflict', local: true, fields: ['quantity'] }
    await expect(client.orders.enqueue(other)).rejects.toMatchObject({ ...conflict, charged: 'unknown' })
    expect(await failure(client.orders.create(other))).toMatchObject(conflict)
    await expect(client.orders.enqueue(order('r1'), { idempotencyKey: 'k2' })).rejects.toMatchObject({
      code: 'idempotency_conflict',
      fields: ['idempotencyKey'],
    })
    await client.orders.create(order('r1'))
    await expect(client.orders.enqueue(other)).rejects.toMatchObject({ ...conflict, charged: 'yes' })
    lab.sandbox.expectCharges(1)
  })

  it('enqueue() is rejected if recover() would not continue the order', async (lab) => {
    const controller = new AbortController()
    lab.fault({ type: 'stall' })
    const { ending } = await lab.begin(() => told(lab.create(order('r1'), { signal: controller.signal })))
    controller.abort()
    expect((await ending).error).toMatchObject({ code: 'aborted', charged: 'unknown' })
    await lab.dies((orders) => orders.create(order('r2')), { charged: false })
    lab.runtime.jump(BUSY)
    const unresolved = { code: 'unresolved_order', charged: 'unknown' }
    await expect(lab.client().orders.enqueue(order('r1'))).rejects.toMatchObject(unresolved)
    // Inside the window, recovery repeats the order.
    expect(await lab.client().orders.enqueue(order('r2'))).toMatchObject({ state: 'open', version: 2 })
    lab.runtime.jump(WINDOW)
    await expect(lab.client().orders.enqueue(order('r2'))).rejects.toMatchObject(unresolved)
    lab.sandbox.expectCharges(0)
  })

  it('a refused order can be enqueued again, even with another payload', async (lab) => {
    await lab.refused()
    const record = await lab.client().orders.enqueue(order('r1', { quantity: 20 }))
    expect(record).toMatchObject({ state: 'open', generation: 0, rejection: { status: 402 }, attempts: 1 })
    expect(await recover(lab)).toEqual(['r1 created'])
    expect(lab.sandbox.expectChargedOnce('r1').amount).toBe(20 * 250)
    expect(await lab.record('ref:r1')).not.toHaveProperty('rejection')
  })

  it('a refused order is enqueued under another given key only if nothing was bought under the first', async (lab) => {
    lab.drain()
    const { orders } = lab.client()
    await failure(orders.create(order('r1'), { idempotencyKey: 'k1' }))
    lab.topUp()
    const record = await orders.enqueue(order('r1'), { idempotencyKey: 'k2' })
    expect(record).toMatchObject({ key: 'k2', generation: 1 })
    expect(record).not.toHaveProperty('rejection')
    expect(await recover(lab)).toEqual(['r1 created'])
    expect(lab.posts.map(({ key }) => key)).toEqual(['k1', 'k2'])
  })
})

describe('recover() of an order that was never sent', () => {
  it('recover() treats a clean refusal of an unsent order as proof that nothing was bought', async (lab) => {
    lab.drain()
    await lab.client().orders.enqueue(order('r1'))
    const [outcome] = await all(lab.client().orders.recover())
    expect(outcome).toMatchObject({
      outcome: 'rejected',
      record: { state: 'rejected', ambiguous: false, rejection: { kind: 'refused', status: 402 } },
      error: { code: 'payment_required', charged: 'no' },
    })
    expect(lab.settled.at(-1)).toMatchObject({ recovery: 'rejected', charged: 'no' })
  })

  it.each([
    ['401', { type: 'status', status: 401 }, 'authentication'],
    ['403', { type: 'status', status: 403 }, 'permission_denied'],
    ['425', { type: 'status', status: 425 }, 'api'],
    ['429', { type: 'status', status: 429 }, 'rate_limit'],
  ] as const)(
    'recover() keeps the order, not in doubt, while the service responds %s',
    async (_what, action, code) => {
      const lab = new Lab()
      await lab.client().orders.enqueue(order('r1'))
      const remove = lab.fault(action, 'always')
      for (let times = 1; times <= 2; times++) {
        expect(await recover(lab)).toEqual([`r1 still_open ${code}`])
        const record = await lab.record('ref:r1')
        expect(record).toMatchObject({ state: 'open', ambiguous: false, attempts: times })
        expect(record).not.toHaveProperty('firstSentAt')
        expect(record).not.toHaveProperty('busyUntil')
      }
      remove()
      lab.runtime.jump(2 * WINDOW)
      expect(await recover(lab)).toEqual(['r1 created'])
      lab.charged()
    },
  )

  it('recover() keeps the order while no API key is available', async (lab) => {
    await lab.client().orders.enqueue(order('r1'))
    const apiKey = throwing('the vault is closed')
    expect(await recover(lab, { apiKey })).toEqual(['r1 still_open configuration'])
    expect(await recover(lab)).toEqual(['r1 created'])
  })

  it('recover() closes the order if the service rejects the request itself', async (lab) => {
    await lab.client().orders.enqueue(order('r1'))
    lab.fault({ type: 'status', status: 413 })
    expect(await recover(lab)).toEqual(['r1 rejected api'])
  })

  it('after its first claim, an enqueued order is treated as any other: its window counts', async (lab) => {
    await lab.client().orders.enqueue(order('r1'))
    lab.fault({ type: 'drop' })
    expect(await recover(lab)).toEqual(['r1 still_open connection'])
    expect(await lab.record('ref:r1')).toMatchObject({ ambiguous: true, firstSentAt: lab.runtime.now() })
    lab.drain()
    expect(await recover(lab)).toEqual(['r1 needs_attention refused_after_doubt'])

    await lab.client().orders.enqueue(order('r2'))
    lab.fault({ type: 'drop' })
    const again = await all(lab.client().orders.recover())
    expect(outcomesOf(again)).toContain('r2 still_open connection')
    lab.runtime.jump(WINDOW)
    expect(await recover(lab)).toContain('r2 needs_attention past_window')
  })

  it('recover() repeats the order with its key if a process died between claim and response', async (lab) => {
    await lab.client().orders.enqueue(order('r1'))
    await lab.dies((orders) => all(orders.recover()))
    expect(await lab.record('ref:r1')).toMatchObject({ firstSentAt: lab.runtime.now(), ambiguous: false })
    expect(await recover(lab)).toEqual(['r1 in_progress'])
    lab.runtime.jump(BUSY)
    expect(await recover(lab)).toEqual(['r1 created'])
    expect(new Set(lab.posts.map(({ key, body }) => `${key} ${body}`)).size).toBe(1)
    lab.charged()
  })

  it('recover() sends unsent orders after those whose window ends soon, oldest first, and before those past it', async () => {
    const lab = new Lab({ preset: 'minimal-answers' })
    const claim = (reference: string) =>
      lab.dies((orders) => orders.create(order(reference)), { charged: false })
    await claim('past')
    lab.runtime.jump(WINDOW)
    for (const reference of ['q1', 'q2', 'q3', 'q4']) {
      await lab.client().orders.enqueue(order(reference))
      lab.runtime.jump(1000)
    }
    await claim('sent')
    lab.runtime.jump(BUSY)
    expect(await recover(lab)).toEqual([
      'sent created',
      'q1 created',
      'q2 created',
      'q3 created',
      'q4 created',
      'past needs_attention past_window',
    ])
  })

  it('recover() moves to the next key once when it receives the same refusal again', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.drain()
    const { key } = await lab.client().orders.enqueue(order('r1'))
    expect(await recover(lab)).toEqual(['r1 rejected payment_required'])
    await lab.client().orders.enqueue(order('r1'))
    expect(await recover(lab)).toEqual(['r1 rejected payment_required'])
    expect(await lab.record('ref:r1')).toMatchObject({ generation: 1, attempts: 3 })
    lab.topUp()
    await lab.client().orders.enqueue(order('r1'))
    expect(await recover(lab)).toEqual(['r1 created'])
    expect(new Set(lab.posts.map((post) => post.key)).size).toBe(3)
    expect(lab.posts.slice(0, 2).map((post) => post.key)).toEqual([key, key])
    lab.sandbox.expectCharges(1)
  })

  it('recover() remembers an earlier refusal, even after a response that proves nothing', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.drain()
    await lab.client().orders.enqueue(order('r1'))
    await recover(lab)
    lab.topUp()
    await lab.client().orders.enqueue(order('r1'))
    lab.fault({ type: 'status', status: 429 })
    expect(await recover(lab)).toEqual(['r1 still_open rate_limit'])
    expect(await recover(lab)).toEqual(['r1 created'])
    lab.sandbox.expectCharges(1)
  })

  it('recover() does not send an order whose row was changed by another program', async (lab) => {
    await lab.client().orders.enqueue(order('r1'))
    await lab.tamper('ref:r1', (content) => {
      content['body'] = String(content['body']).replace('10', '99')
    })
    expect(await recover(lab)).toEqual(['r1 needs_attention corrupt'])
    // A record that lost its first send time is not an unsent one.
    lab.fault({ type: 'drop' }, 'always')
    await failure(lab.client({ maxRetries: 0 }).orders.create(order('r2')))
    lab.sandbox.faults.clear()
    await lab.tamper('ref:r2', (content) => {
      delete content['firstSentAt']
    })
    lab.runtime.jump(WINDOW)
    expect(await recover(lab)).toContain('r2 needs_attention past_window')
    lab.sandbox.expectCharges(0)
  })
})

describe('create() of an order that was written down', () => {
  it('create() sends an enqueued order as its first attempt', async (lab) => {
    const { key } = await lab.client().orders.enqueue(order('r1'))
    lab.runtime.jump(2 * WINDOW)
    const { info } = await told(lab.elsewhere().orders.create(order('r1')))
    expect(info).toMatchObject({ idempotencyKey: key, attempts: 1 })
    expect(info?.replayed).not.toBe(true)
    expect(await recover(lab)).toEqual([])
    lab.charged()
  })

  it('create() reports a clean refusal of an enqueued order, which closes it', async (lab) => {
    lab.drain()
    await lab.client().orders.enqueue(order('r1'))
    expect(await failure(lab.create())).toMatchObject({ code: 'payment_required', charged: 'no' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected' })
    expect(await recover(lab)).toEqual([])
  })

  it('create() moves to the next key if the refusal is an earlier one', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    lab.drain()
    await failure(lab.create())
    await lab.client().orders.enqueue(order('r1'))
    lab.topUp()
    await lab.create()
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', generation: 1, attempts: 3 })
    lab.sandbox.expectCharges(1)
  })

  it('create() reports an unknown charge if it ends before it sends, because recovery will send the order', async (lab) => {
    await lab.client().orders.enqueue(order('r1'))
    const apiKey = throwing('the vault is closed')
    expect(await failure(lab.client({ apiKey }).orders.create(order('r1')))).toMatchObject({
      code: 'configuration',
      charged: 'unknown',
    })
    expect(await recover(lab)).toEqual(['r1 created'])
  })
})

it('a person can abandon an enqueued order, and then request it again', async (lab) => {
  const { orders } = lab.client()
  await orders.enqueue(order('r1'))
  await expect(orders.forget({ externalOrderId: 'r1' })).rejects.toMatchObject({ code: 'invalid_request' })
  await orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
  expect(await recover(lab)).toEqual([])
  expect(lab.posts).toEqual([])
  await orders.enqueue(order('r1'))
  expect(await recover(lab)).toEqual(['r1 created'])
  lab.sandbox.expectCharges(1)
})

describe('a transaction of the caller', () => {
  /** Rows that the transaction's commit puts into the store. */
  function begin(lab: Lab): OrderOutbox & { commit(): Promise<void>; readonly rows: StoredRow[] } {
    const rows: StoredRow[] = []
    return {
      rows,
      get: async (scope, id) => rows.findLast((row) => row.id === id) ?? (await lab.rows.get(scope, id)),
      insert: async (row) => {
        const current = await lab.rows.get(row.scope, row.id)
        if (current !== undefined) return { inserted: false, current }
        rows.push(row)
        return { inserted: true }
      },
      update: async (row) => {
        rows.push(row)
        return true
      },
      commit: async () => {
        for (const row of rows)
          if (row.version === 1) await lab.rows.insert(row)
          else await lab.rows.update(row, row.version - 1)
      },
    }
  }

  it('a transaction holds the order until its commit, even a refused order', async (lab) => {
    const { orders } = lab.client()
    lab.drain()
    await failure(orders.create(order('r2')))
    lab.topUp()
    const within = begin(lab)
    await orders.enqueue(order('r1'), { within })
    await orders.enqueue(order('r2'), { within })
    expect(within.rows.map(({ version, open }) => [version, open])).toEqual([
      [1, true],
      [3, true],
    ])
    expect(await recover(lab)).toEqual([])
    await within.commit()
    expect((await recover(lab)).toSorted()).toEqual(['r1 created', 'r2 created'])
    lab.sandbox.expectCharges(2)
  })

  it('an invalid repetition in the same transaction does not report that nothing was charged', async (lab) => {
    const { orders } = lab.client()
    const within = begin(lab)
    await orders.enqueue(order('r1'), { within })
    const error = await failure(orders.enqueue(order('r1', { quantity: 1.5 }), { within }))
    expect(error).toMatchObject({ code: 'invalid_request', charged: 'unknown' })
  })

  it('a transaction that is rolled back leaves nothing behind', async (lab) => {
    await lab.client().orders.enqueue(order('r1'), { within: begin(lab) })
    expect(await recover(lab)).toEqual([])
    expect(await all(lab.client().orders.remembered({ since: 0 }))).toEqual([])
  })

  it.each([
    ['rejects', 'unknown'],
    ['refuses', 'no'],
    ['throws', 'unknown'],
    ['hangs', 'unknown'],
    ['loses_answer', 'written'],
    ['done_unanswered', 'written'],
  ] as const)(
    'enqueue() in a transaction reports what is known when its write %s',
    async (fault, charged) => {
      const lab = new Lab()
      const within = faultyStore(lab.rows, lab.runtime, on('insert', fault))
      const enqueued = lab.client().orders.enqueue(order('r1'), { within })
      if (charged === 'written') expect(await enqueued).toMatchObject({ state: 'open' })
      else await expect(enqueued).rejects.toMatchObject({ code: 'store', charged, externalOrderId: 'r1' })
      expect(lab.posts).toEqual([])
    },
  )

  it('enqueue() retries in a transaction if another writer was faster, but only while there is time', async (lab) => {
    const once = faultyStore(lab.rows, lab.runtime, on('insert', 'loses', 1))
    expect(await lab.client().orders.enqueue(order('r1'), { within: once })).toMatchObject({ version: 1 })
    const never = faultyStore(lab.rows, lab.runtime, on('insert', 'loses'))
    const hopeless = lab.client().orders.enqueue(order('r2'), { within: never })
    await expect(hopeless).rejects.toMatchObject({ code: 'store', charged: 'unknown' })
  })

  it("the error quotes the transaction's reason for a rejection", async (lab) => {
    const refusal = new StoreError('The connection is not inside a transaction.')
    const reads: OrderOutbox = {
      get: (scope, id) => lab.rows.get(scope, id),
      insert: () => Promise.reject(refusal),
      update: () => Promise.reject(refusal),
    }
    const within: OrderOutbox = { ...reads, get: () => Promise.reject(refusal) }
    const cases: [OrderOutbox, RegExp][] = [
      [reads, / Roll back the transaction and call again\. The store reported: The connection is not/],
      [
        within,
        / Roll back the transaction, then repeat all of it\. The store reported: The connection is not/,
      ],
    ]
    for (const [outbox, message] of cases)
      await expect(lab.client().orders.enqueue(order('r1'), { within: outbox })).rejects.toMatchObject({
        code: 'store',
        message: expect.stringMatching(message),
        cause: refusal,
      })
  })
})
