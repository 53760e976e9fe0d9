import { describe, expect } from 'vitest'
import { StoreError } from '../../../src/errors/classes.ts'
import type { Codec } from '../../../src/options.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { all } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { anonymousOrder, failure, Lab, order } from '../../support/lab.ts'
import { faultyStore, on, storeOver } from '../../support/stores.ts'

const MINUTE = 60_000
const UNKNOWN = { code: 'store', charged: 'unknown', attempts: 0 } as const
const NOT_CHARGED = { code: 'store', charged: 'no', attempts: 0 } as const
const SILENT_WRITES = ['throws', 'rejects', 'rejects_done_late', 'hangs', 'done_late'] as const

/** create() of a client whose store has these faults must fail. Returns the error. */
const failsOver = (lab: Lab, plan: Parameters<typeof faultyStore>[2], request = order('r1')) =>
  failure(lab.elsewhere({}, plan).orders.create(request))

it.each(SILENT_WRITES)(
  'create() sends nothing, and reports no if an emptied row blocks a late write: it %s once',
  async (lab, fault) => {
    const error = await failsOver(lab, on('insert', fault, 1))
    expect(error).toMatchObject({ ...NOT_CHARGED, externalOrderId: 'r1' })
    expect(lab.posts).toHaveLength(0)
    expect(await lab.record('ref:r1')).toBeUndefined()
    await lab.runtime.advance(5 * MINUTE)
    expect(await lab.record('ref:r1')).toBeUndefined()
  },
)

it.each(SILENT_WRITES)(
  'create() sends nothing, and reports unknown if the store rejects every other write: it %s',
  async (lab, fault) => {
    const error = await failsOver(lab, on('insert', fault))
    expect(error).toMatchObject({ ...UNKNOWN, idempotencyKey: expect.stringMatching(/^[0-9a-f-]{36}$/) })
    if (/throws|rejects/.test(fault)) expect(error.cause).toMatchObject({ message: `the store ${fault}` })
    expect(lab.posts).toHaveLength(0)
  },
)

it('create() reports unknown, and stops writing, if the store rejects the emptied row too', async (lab) => {
  const throwsTwice = on('insert', 'throws', (count) => count <= 2)
  const store = faultyStore(lab.rows, lab.runtime, throwsTwice)
  expect(await failure(lab.client({ store }).orders.create(order('r1')))).toMatchObject(UNKNOWN)
  expect(store.calls.filter((call) => call === 'insert')).toHaveLength(2)
  expect(lab.posts).toHaveLength(0)
})

it.each([
  ['with a reference', order('r1')],
  ['without a name', anonymousOrder()],
])(
  'create() reports charged no if the store certainly wrote nothing and rejects every write: an order %s',
  async (lab, _what, request) => {
    const message =
      'The order could not be stored. This call sent nothing. The wallet was not charged. Repair the store and call again. The store reported: The disk is full; nothing was written.'
    const error = await failsOver(lab, on('insert', 'refuses'), request)
    expect(error).toMatchObject({ ...NOT_CHARGED, message })
    expect(lab.posts).toHaveLength(0)
  },
)

it.each([
  ['does not say that it wrote nothing', {}, 10],
  ['cannot be read afterwards', { applied: false as const }, 1],
])('create() reports unknown if its store rejects every insert and %s', async (lab, _what, facts, reads) => {
  const broken = (): Promise<never> => Promise.reject(new StoreError('broken', { charged: 'no', ...facts }))
  let count = 0
  const get: OrderStore['get'] = (scope, id) => (count++ < reads ? lab.rows.get(scope, id) : broken())
  const { orders } = lab.client({ store: storeOver(lab.rows, { insert: broken, get }) })
  const idempotencyKey = expect.any(String)
  expect(await failure(orders.create(order('r1')))).toMatchObject({ ...UNKNOWN, idempotencyKey })
})

it('a call whose insert fails returns the order that a call with a slow clock has inserted', async (lab) => {
  const insert = async (): Promise<never> => {
    await lab.ahead(-5000).orders.create(order('r1'))
    throw new Error('the connection is gone')
  }
  const { id } = await lab.client({ store: storeOver(lab.rows, { insert }) }).orders.create(order('r1'))
  expect(id).toBe(lab.charged())
})

it('create() reports charged no once the store certainly wrote nothing, whatever it does next', async (lab) => {
  const error = await failsOver(lab, (operation, count) =>
    operation === 'insert' ? (count === 1 ? 'refuses' : 'rejects') : undefined,
  )
  expect(error).toMatchObject(NOT_CHARGED)
})

it.each([
  ['create() that reads', 'get', 'create'],
  ['create() that writes', 'insert', 'create'],
  ['recover() that reads', 'listOpen', 'recover'],
  ['recover() that writes', 'update', 'recover'],
] as const)(
  "%s reports the driver's code as the store's own error does",
  async (lab, _what, operation, method) => {
    await lab.doubted('drop', order('in-doubt'))
    const cause = Object.assign(new Error('42501'), { code: '42501' })
    const failing = async (): Promise<never> => {
      throw new StoreError('This role may not use the tables.', { cause })
    }
    const { orders } = lab.client({ store: storeOver(lab.rows, { [operation]: failing }) })
    const error =
      operation === 'update'
        ? (await all(orders.recover()))[0]?.error
        : await failure(method === 'create' ? orders.create(order('r1')) : Promise.resolve(orders.recover()))
    expect(error).toMatchObject({ code: 'store', cause })
    expect(error?.message).toContain('The store reported: This role may not use the tables.')
  },
)

it.each(['refuses', 'rejects'] as const)(
  'create() does not report an order in doubt as uncharged if the store %s',
  async (lab, fault) => {
    await lab.doubted()
    const error = await failsOver(lab, on('update', fault))
    expect(error).toMatchObject(UNKNOWN)
    expect(lab.posts).toHaveLength(1)
  },
)

it.each([
  ['refuses every write', undefined, 'refuses'],
  ['rejects one write', 1, 'rejects'],
] as const)(
  'create() reports a new anonymous order as not charged if the previous one is, and the store %s',
  async (lab, _how, only, fault) => {
    await lab.create(anonymousOrder())
    const error = await failsOver(lab, on('update', fault, only), anonymousOrder())
    expect(error).toMatchObject(NOT_CHARGED)
    expect(error.orderId).toBeUndefined()
    lab.sandbox.expectCharges(1)
  },
)

it('create() keeps what was known of a refusal', async () => {
  const lab = new Lab({ preset: 'remembers-refusals' })
  await lab.refused()
  expect(await failsOver(lab, on('update', 'rejects', 1))).toMatchObject({ code: 'store', charged: 'no' })
  const rejection = { kind: 'refused', status: 402 }
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', rejection })
  expect((await lab.create()).id).toBe(lab.charged())
})

it.each(['loses_answer', 'done_unanswered', 'answers_late'] as const)(
  'create() sends the order if reading back shows that the record is stored: the write %s',
  async (lab, fault) => {
    const placed = await lab.elsewhere({}, on('insert', fault)).orders.create(order('r1'))
    expect(placed.id).toBe(lab.charged())
  },
)

it.each(['throws', 'rejects', 'hangs'] as const)(
  'create() sends nothing and reports unknown if the store cannot be read: it %s',
  async (lab, fault) => {
    expect(await failsOver(lab, on('get', fault))).toMatchObject({ ...UNKNOWN, externalOrderId: 'r1' })
    expect(lab.posts).toHaveLength(0)
    expect(await lab.record('ref:r1')).toBeUndefined()
  },
)

it('the error of a store that cannot be read names the reference and key of the order', async (lab) => {
  const { orders } = lab.elsewhere({}, on('get', 'rejects'))
  const supportReference = { externalOrderId: 'r1', idempotencyKey: 'k1' }
  const error = await failure(orders.create(order('r1'), { idempotencyKey: 'k1' }))
  expect(error).toMatchObject({ code: 'store', charged: 'unknown', supportReference })
})

it('a store that cannot be read does not hide that the caller aborted', async (lab) => {
  const client = lab.elsewhere({}, on('get', 'rejects'))
  const error = await failure(client.orders.create(order('r1'), { signal: AbortSignal.abort() }))
  expect(error).toMatchObject({ code: 'aborted', charged: 'unknown' })
})

it.each(['throws', 'rejects', 'hangs', 'done_late'] as const)(
  'an order is returned and reported, and recovery stores it, if the store fails after the charge: it %s',
  async (lab, fault) => {
    let broken = true
    const fails = on('update', fault, () => broken)
    const client = lab.elsewhere({}, fails)
    const placed = await client.orders.create(order('r1'))

    expect(placed.id).toBe(lab.charged())
    expect(lab.settled).toMatchObject([{ ok: true, charged: 'yes', remembered: false, orderId: placed.id }])
    broken = false
    await lab.runtime.advance(5 * MINUTE)
    await all(lab.orders.recover())
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', order: { id: placed.id } })
    lab.sandbox.expectCharges(1)
  },
)

it.each([
  ['aborted', undefined],
  ['timeout', new DOMException('', 'TimeoutError')],
])('%s: a call ends within a second of its signal, even if the store hangs', async (lab, code, reason) => {
  const { orders } = lab.elsewhere({}, (name, count) => (name === 'get' && count === 1 ? undefined : 'hangs'))
  const controller = new AbortController()
  const { ending } = await lab.begin(() => failure(orders.create(order('r1'), { signal: controller.signal })))
  const firedAt = lab.runtime.monotonic()
  controller.abort(reason)
  expect(await ending).toMatchObject({ code, charged: 'unknown' })
  expect(lab.runtime.monotonic() - firedAt).toBeLessThanOrEqual(1_000)
})

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

describe('a record that cannot be used', () => {
  async function overwrite(lab: Lab, slot: string, data: string): Promise<void> {
    const row = await lab.row(slot)
    if (row !== undefined) await lab.rows.update({ ...row, data }, row.version)
  }

  it.each([
    ...['', '{', '{"layout":1}', 'sealed:abc'].map((data) => [data, 'cannot be read']),
    ['{"layout":2}', 'newer version'],
  ])('an unreadable record is never sent or changed: %j %s', async (lab, data = '', why) => {
    await lab.doubted()
    if (data.startsWith('{"layout":2')) await lab.tamper('ref:r1', { layout: 2 })
    else await overwrite(lab, 'ref:r1', data)
    const before = await lab.row('ref:r1')
    const message = expect.stringContaining(why ?? '')
    expect(await failure(lab.create())).toMatchObject({ ...UNKNOWN, message })
    expect(lab.posts).toHaveLength(1)
    expect(await lab.row('ref:r1')).toBe(before)
  })

  it.each<[string, (content: Record<string, unknown>) => object]>([
    ['quantity in its body', ({ body }) => ({ body: String(body).replace('10', '900') })],
    ['reference in its body', ({ body }) => ({ body: String(body).replace('r1', 'r2') })],
    ['key', () => ({ key: '00000000-0000-5000-8000-000000000000' })],
    ['generation', () => ({ generation: 1 })],
    ['slot', () => ({ slot: 'ref:r2' })],
  ])(
    'an order whose record has a changed %s is never sent by create() or recover()',
    async (lab, _what, change) => {
      await lab.doubted()
      await lab.tamper('ref:r1', (content) => Object.assign(content, change(content)))
      const error = await failure(lab.create())
      // A changed key also makes the API key look like another one.
      expect(['store', 'unresolved_order']).toContain(error.code)
      expect(error).toMatchObject({ charged: 'unknown', attempts: 0 })
      // The service shows the reference, so recovery can find the order without sending anything.
      expect(await all(lab.orders.recover())).toHaveLength(1)
      expect(lab.posts).toHaveLength(1)
      lab.sandbox.expectCharges(1)
    },
  )

  it("a record in another order's row is not returned for that order", async (lab) => {
    await lab.create()
    await lab.create(order('r2'))
    await overwrite(lab, 'ref:r2', (await lab.row('ref:r1'))?.data ?? '')
    expect(await failure(lab.create(order('r2')))).toMatchObject(UNKNOWN)
  })
})

it('an aborted call does not change the record of an order in doubt', async (lab) => {
  await lab.doubted()
  const row = await lab.row('ref:r1')
  expect(await failure(lab.create(order('r1'), { signal: AbortSignal.abort() }))).toMatchObject({
    charged: 'unknown',
  })
  expect(await lab.row('ref:r1')).toEqual(row)
})

it('if the store loses every claim, the call ends at its deadline, and pauses between attempts', async (lab) => {
  const begun = lab.runtime.monotonic()
  const error = await failsOver(lab, on('insert', 'loses'))
  expect(error).toMatchObject({ code: 'timeout', deadline: 'total', charged: 'unknown', attempts: 0 })
  expect(lab.runtime.monotonic() - begun).toBeLessThanOrEqual(121_000)
  expect(lab.posts).toHaveLength(0)
})

describe('a codec', () => {
  const reversed = async (text: string): Promise<string> => [...text].reverse().join('')

  it.each<readonly [how: string, decrypt: Codec['decrypt']]>([
    ['throws for what it has encrypted', () => Promise.reject(new Error('no key opens it'))],
    ['returns something else than it has encrypted', (text) => text],
    ['cuts off what it has encrypted', async (text) => (await reversed(text)).slice(0, -1)],
  ])('a codec that %s is detected before anything is sent', async (lab, _, decrypt) => {
    let repaired = false
    const codec: Codec = { encrypt: reversed, decrypt: (text) => (repaired ? reversed(text) : decrypt(text)) }
    const client = lab.client({ codec })
    for (let call = 0; call < 2; call++) {
      const error = await failure(client.orders.create(order('r1')))
      expect(error).toMatchObject({ ...NOT_CHARGED })
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
    const decrypt = (text: string) => reversed(text).finally(() => opened++)
    const client = lab.client({ codec: { encrypt: reversed, decrypt } })
    for (const name of ['r1', 'r2', 'r3']) await client.orders.create(order(name))
    expect(opened).toBe(1)
  })
})
