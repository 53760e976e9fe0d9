import { StoreError } from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import type { Codec } from '../../../src/options.ts'
import { faultyStore, on } from '../../support/faulty-store.ts'
import { anonymousOrder, failure, Lab, order } from '../../support/lab.ts'
import { it } from '../../support/lab-test.ts'

const MINUTE = 60_000

describe('a store that refuses the first write', () => {
  it.each(['throws', 'rejects', 'rejects_done_late', 'hangs', 'done_late'] as const)(
    'create() sends nothing, and reports no if a closed record blocks a late write: it %s once',
    async (fault) => {
      const lab = new Lab()
      const client = lab.elsewhere({}, on('insert', fault, 1))
      const error = await failure(client.orders.create(order('r1')))

      expect(error).toBeInstanceOf(StoreError)
      expect(error).toMatchObject({ code: 'store', charged: 'no', attempts: 0, externalOrderId: 'r1' })
      expect(error.message).toContain('This call sent nothing.')
      expect(lab.posts).toHaveLength(0)
      const closed = { state: 'rejected', rejection: { kind: 'cancelled' } }
      expect(await lab.record('ref:r1')).toMatchObject(closed)
      await lab.runtime.advance(5 * MINUTE)
      expect(await lab.record('ref:r1')).toMatchObject(closed)
    },
  )

  it.each(['throws', 'rejects', 'rejects_done_late', 'hangs', 'done_late'] as const)(
    'create() sends nothing, and reports unknown if the store rejects every other write: it %s',
    async (fault) => {
      const lab = new Lab()
      const client = lab.elsewhere({}, on('insert', fault))
      const error = await failure(client.orders.create(order('r1')))
      expect(error).toMatchObject({ code: 'store', charged: 'unknown', attempts: 0 })
      expect(error.idempotencyKey).toMatch(/^[0-9a-f-]{36}$/)
      if (/throws|rejects/.test(fault)) expect(error.cause).toMatchObject({ message: `the store ${fault}` })
      expect(lab.posts).toHaveLength(0)
    },
  )

  it('create() reports unknown, and stops writing, if the store rejects the closed record too', async (lab) => {
    const store = faultyStore(
      lab.rows,
      lab.runtime,
      on('insert', 'throws', (count) => count <= 2),
    )
    const error = await failure(lab.client({ store }).orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'store', charged: 'unknown', attempts: 0 })
    expect(store.calls.filter((call) => call === 'insert')).toHaveLength(2)
    expect(lab.posts).toHaveLength(0)
  })

  it('create() reports charged no if the store is certain that it wrote nothing and rejects every write', async () => {
    for (const wanted of [order('r1'), anonymousOrder()]) {
      const lab = new Lab()
      const client = lab.elsewhere({}, on('insert', 'refuses'))
      const error = await failure(client.orders.create(wanted))

      expect(error).toMatchObject({ code: 'store', charged: 'no', attempts: 0 })
      expect(error.message).toBe(
        'The order could not be stored. This call sent nothing. The wallet was not charged. Repair the store and call again. The store reported: The disk is full; nothing was written.',
      )
      expect(lab.posts).toHaveLength(0)
    }
  })

  it.each(['refuses', 'rejects'] as const)(
    'create() does not report an order in doubt as uncharged if the store %s',
    async (fault) => {
      const lab = new Lab()
      await lab.doubted()
      const error = await failure(lab.elsewhere({}, on('update', fault)).orders.create(order('r1')))
      expect(error).toMatchObject({ code: 'store', charged: 'unknown', attempts: 0 })
      expect(error.message).toMatch(
        /(could not be|whether the order was) stored\. This call sent nothing\. The wallet may/,
      )
      expect(lab.posts).toHaveLength(1)
    },
  )

  it('create() does not trust a store that claims it wrote nothing but cannot show its content', async (lab) => {
    const client = lab.elsewhere({}, (operation, count) => {
      if (operation === 'insert') return 'refuses'
      return operation === 'get' && count > 1 ? 'rejects' : undefined
    })
    const error = await failure(client.orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'store', charged: 'unknown', attempts: 0 })
  })

  it('create() reports a second anonymous order as not charged if its record cannot be stored', async (lab) => {
    await lab.create(anonymousOrder())
    const client = lab.elsewhere({}, (operation) => (operation === 'get' ? undefined : 'refuses'))
    expect(await failure(client.orders.create(anonymousOrder()))).toMatchObject({
      code: 'store',
      charged: 'no',
    })
    lab.sandbox.expectCharges(1)
  })

  it('create() keeps what was known of a refusal', async () => {
    const lab = new Lab({ preset: 'remembers-refusals' })
    await lab.refused()
    const client = lab.elsewhere({}, on('update', 'rejects', 1))
    expect(await failure(client.orders.create(order('r1')))).toMatchObject({ code: 'store', charged: 'no' })
    expect(await lab.record('ref:r1')).toMatchObject({
      state: 'rejected',
      rejection: { kind: 'refused', status: 402 },
    })
    const placed = await lab.create()
    expect(placed.id).toBe(lab.charged())
  })

  it.each(['loses_answer', 'done_unanswered', 'answers_late'] as const)(
    'create() sends the order if reading back shows that the record is stored: the write %s',
    async (fault) => {
      const lab = new Lab()
      const client = lab.elsewhere({}, on('insert', fault))
      const placed = await client.orders.create(order('r1'))
      expect(placed.id).toBe(lab.charged())
    },
  )

  it("create() reports charged no for a new anonymous order, whatever the previous order's outcome", async (lab) => {
    await lab.create(anonymousOrder())
    const client = lab.elsewhere({}, on('update', 'rejects', 1))
    const error = await failure(client.orders.create(anonymousOrder()))
    expect(error).toMatchObject({ code: 'store', charged: 'no', attempts: 0 })
    expect(error.orderId).toBeUndefined()
    lab.sandbox.expectCharges(1)
  })
})

describe('a store that cannot be read', () => {
  it.each(['throws', 'rejects', 'hangs'] as const)(
    'create() sends nothing and reports unknown if the store cannot be read: it %s',
    async (fault) => {
      const lab = new Lab()
      const client = lab.elsewhere({}, on('get', fault))
      const error = await failure(client.orders.create(order('r1')))
      expect(error).toMatchObject({ code: 'store', charged: 'unknown', attempts: 0, externalOrderId: 'r1' })
      expect(lab.posts).toHaveLength(0)
      expect(await lab.record('ref:r1')).toBeUndefined()
    },
  )

  it('the error of a store that cannot be read names the reference and key of the order', async () => {
    const client = new Lab().elsewhere({}, on('get', 'rejects'))
    const supportReference = { externalOrderId: 'r1', idempotencyKey: 'k1' }
    const options = { idempotencyKey: 'k1' }
    for (const call of [
      client.orders.create(order('r1'), options),
      client.orders.enqueue(order('r1'), options),
    ])
      expect(await failure(call)).toMatchObject({ code: 'store', charged: 'unknown', supportReference })
  })

  it('a store that cannot be read does not hide that the caller aborted', async (lab) => {
    const client = lab.elsewhere({}, on('get', 'rejects'))
    const error = await failure(client.orders.create(order('r1'), { signal: AbortSignal.abort() }))
    expect(error).toMatchObject({ code: 'aborted', charged: 'unknown' })
  })
})

describe('a store that fails when the order is there', () => {
  it.each(['throws', 'rejects', 'hangs', 'done_late'] as const)(
    'an order is returned, reported, and stored later, if the store fails after the charge: it %s',
    async (fault) => {
      const lab = new Lab()
      let broken = true
      const client = lab.elsewhere(
        {},
        on('update', fault, () => broken),
      )
      const placed = await client.orders.create(order('r1'))

      expect(placed.id).toBe(lab.charged())
      expect(lab.settled).toMatchObject([{ ok: true, charged: 'yes', remembered: false, orderId: placed.id }])
      broken = false
      await lab.runtime.advance(5 * MINUTE)
      expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', order: { id: placed.id } })
    },
  )

  it('an order is not lost if another writer has a newer version of its row', async (lab) => {
    let interfered = false
    const client = lab.elsewhere({}, (operation, _count, row) => {
      if (operation !== 'update' || interfered || row === undefined) return undefined
      interfered = true
      // Another call takes the record over just before the proof is written.
      void lab.tamper('ref:r1', () => {})
      return 'loses'
    })
    const placed = await client.orders.create(order('r1'))
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', order: { id: placed.id } })
  })
})

describe('a record that cannot be used', () => {
  async function remembered(): Promise<Lab> {
    const lab = new Lab()
    await lab.doubted()
    return lab
  }

  it.each(['', '{', '{"layout":1}', 'sealed:abc'])(
    'an unreadable record is never sent again: damaged to %j',
    async (data) => {
      const lab = await remembered()
      const row = await lab.row('ref:r1')
      if (row !== undefined) await lab.rows.update({ ...row, data }, row.version)
      const error = await failure(lab.create())
      expect(error).toMatchObject({ code: 'store', charged: 'unknown', attempts: 0 })
      expect(error.message).toContain('cannot be read')
      expect(lab.posts).toHaveLength(1)
      expect((await lab.row('ref:r1'))?.data).toBe(data)
    },
  )

  it('a record of a newer package version is never changed', async () => {
    const lab = await remembered()
    await lab.tamper('ref:r1', { layout: 2 })
    const before = await lab.row('ref:r1')
    const error = await failure(lab.create())
    expect(error).toMatchObject({ code: 'store', charged: 'unknown', attempts: 0 })
    expect(error.message).toContain('newer version')
    expect(await lab.row('ref:r1')).toBe(before)
    expect(lab.posts).toHaveLength(1)
  })

  it.each<[string, (content: Record<string, unknown>) => void]>([
    [
      'quantity in its body',
      (content) => {
        content['body'] = String(content['body']).replace('10', '900')
      },
    ],
    [
      'reference in its body',
      (content) => {
        content['body'] = String(content['body']).replace('r1', 'r2')
      },
    ],
    [
      'key',
      (content) => {
        content['key'] = '00000000-0000-5000-8000-000000000000'
      },
    ],
    [
      'generation',
      (content) => {
        content['generation'] = 1
      },
    ],
    [
      'slot',
      (content) => {
        content['slot'] = 'ref:r2'
      },
    ],
  ])(
    'an order whose record has a changed %s is never sent by create() or recover()',
    async (_what, change) => {
      const lab = await remembered()
      await lab.tamper('ref:r1', change)
      const error = await failure(lab.create())
      // A changed key also makes the API key look like another one.
      expect(['store', 'unresolved_order']).toContain(error.code)
      expect(error).toMatchObject({ charged: 'unknown', attempts: 0 })
      const outcomes = []
      for await (const { outcome, reason } of lab.client().orders.recover()) outcomes.push([outcome, reason])
      // The service shows the reference, so recovery can find the order without sending anything.
      expect(outcomes).toHaveLength(1)
      expect(lab.posts).toHaveLength(1)
      lab.sandbox.expectCharges(1)
    },
  )

  it("a record in another order's row is not returned for that order", async (lab) => {
    await lab.create()
    await lab.create(order('r2'))
    const from = await lab.row('ref:r1')
    const to = await lab.row('ref:r2')
    if (from !== undefined && to !== undefined) await lab.rows.update({ ...to, data: from.data }, to.version)
    const error = await failure(lab.create(order('r2')))
    expect(error).toMatchObject({ code: 'store', charged: 'unknown', attempts: 0 })
  })
})

it('if the store loses every claim, the call ends at its deadline, and pauses between attempts', async (lab) => {
  const begun = lab.runtime.monotonic()
  const client = lab.elsewhere({}, on('insert', 'loses'))
  const error = await failure(client.orders.create(order('r1')))
  expect(error).toMatchObject({ code: 'timeout', deadline: 'total', charged: 'unknown', attempts: 0 })
  expect(lab.runtime.monotonic() - begun).toBeLessThanOrEqual(121_000)
  expect(lab.posts).toHaveLength(0)
})

describe('a codec', () => {
  const mirror: Codec = {
    encrypt: (text) => Promise.resolve([...text].reverse().join('')),
    decrypt: (text) => Promise.resolve([...text].reverse().join('')),
  }

  it.each<readonly [how: string, decrypt: Codec['decrypt']]>([
    ['throws for what it has encrypted', () => Promise.reject(new Error('no key opens it'))],
    ['returns something else than it has encrypted', (text) => text],
    ['cuts off what it has encrypted', async (text) => (await mirror.decrypt(text)).slice(0, -1)],
  ])('a codec that %s is detected before anything is sent', async (_, decrypt) => {
    const lab = new Lab()
    let repaired = false
    const codec: Codec = {
      encrypt: mirror.encrypt,
      decrypt: (text) => (repaired ? mirror.decrypt(text) : decrypt(text)),
    }
    const client = lab.client({ codec })
    for (let call = 0; call < 2; call++) {
      const error = await failure(client.orders.create(order('r1')))
      expect(error).toMatchObject({ code: 'store', charged: 'no', attempts: 0 })
      expect(error.message).toContain(
        'Repair the codec, which cannot decrypt what it encrypts, and call again.',
      )
      // An error from decrypt may contain a secret.
      expect(String(error.cause)).toBe(
        'TypeError: codec.decrypt() did not return the string that codec.encrypt() was given',
      )
    }
    expect(lab.posts).toHaveLength(0)
    lab.sandbox.expectCharges(0)
    repaired = true
    const placed = await client.orders.create(order('r1'))
    expect(placed.id).toBe(lab.charged())
  })

  it('the check of a codec decrypts one text for each client', async (lab) => {
    let opened = 0
    const codec: Codec = {
      encrypt: mirror.encrypt,
      decrypt: (text) => {
        opened++
        return mirror.decrypt(text)
      },
    }
    const client = lab.client({ codec })
    for (const name of ['r1', 'r2', 'r3']) await client.orders.create(order(name))
    expect(opened).toBe(1)
  })
})
