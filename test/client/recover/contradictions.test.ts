import type { CustomerOrderingClient, EchoedField } from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import { all } from '../../support/calls.ts'
import { it, sameRequest } from '../../support/history.ts'
import { anonymousOrder, failure, Lab, order } from '../../support/lab.ts'

const MINUTE = 60_000

/** Changes that make a response belong to another request. */
const SOMEBODY_ELSES = [
  ['another reference', { metadata: { externalOrderId: 'r2' } }, order('r1')],
  ['another serviceId, where none has a reference', { serviceId: 'svc_other' }, anonymousOrder()],
  ['another quantity, where none has a reference', { quantity: 1000 }, anonymousOrder()],
] as const

describe.each(SOMEBODY_ELSES)('%s', (_what, difference, request) => {
  const patch = { id: 'ord_of_another', ...difference }

  it('a response with another order is replayed with the same key until the right order comes, for one charge', async (lab) => {
    lab.fault({ type: 'transformBody', patch }, 2, 'createOrder')
    const { id } = await lab.create(request)
    expect(lab.sandbox.ledger.map(({ orderId }) => orderId)).toEqual([id])
    sameRequest(lab)
    expect(lab.posts).toHaveLength(3)
  })

  it('another order is never returned or remembered, and the error reports an unknown charge', async (lab) => {
    lab.fault({ type: 'transformBody', patch }, 'always', 'createOrder')
    const error = await failure(lab.create(request))
    expect(error).toMatchObject({ code: 'invalid_response', charged: 'unknown', status: 201 })
    expect(error.orderId).toBeUndefined()
    expect(JSON.stringify(await all(lab.orders.unresolved()))).not.toContain('ord_of_another')

    lab.sandbox.faults.clear()
    const [recovered] = await all(lab.orders.recover())
    expect(lab.sandbox.ledger.map(({ orderId }) => orderId)).toEqual([recovered?.order?.id])
  })
})

it('a response with other names is accepted if the reference agrees, because a service may rename', async (lab) => {
  const patch = { serviceId: 'SVC_STANDARD', quantity: 10_000 }
  lab.fault({ type: 'transformBody', patch }, 1, 'createOrder')
  const { id } = await lab.create()
  expect(id).toBe(lab.charged())
  expect(lab.posts).toHaveLength(1)
})

it('an order that is read by the id from its own response is accepted, whatever the service shows now', async (lab) => {
  const patch = { status: null }
  lab.fault({ type: 'transformBody', patch }, 'always', 'createOrder')
  expect(await failure(lab.create(anonymousOrder()))).toMatchObject({ charged: 'yes' })
  lab.fault({ type: 'transformBody', patch: { quantity: 3 } }, 'always', 'retrieveOrder')
  const { id } = await lab.create(anonymousOrder())
  expect(lab.sandbox.ledger.map(({ orderId }) => orderId)).toEqual([id])
  expect(await all(lab.orders.unresolved())).toEqual([])
})

it.each<[string, 'id' | 'productId', (client: CustomerOrderingClient, id: string) => Promise<unknown>]>([
  ['orders.retrieve', 'id', ({ orders }, id) => orders.retrieve(id)],
  ['orders.waitFor', 'id', ({ orders }, id) => orders.waitFor(id, { until: () => true })],
  ['services.retrieve', 'productId', ({ services }) => services.retrieve('svc_standard')],
])('%s() does not return a resource with another %s', async (lab, _method, path, call) => {
  const { id } = await lab.create()
  lab.fault({ type: 'transformBody', patch: { [path]: 'of_another' } }, 'always')
  const error = await failure(call(lab.client(), id))
  expect(error).toMatchObject({ code: 'invalid_response', issues: [{ path }] })
})

describe("another integration's order with the same reference", () => {
  const named = (changes: object) => order('r1', changes)
  const OTHERS = [
    ['quantity', named({ quantity: 1 })],
    ['serviceId', named({ serviceId: 'svc_exact' })],
    ['target', named({ target: '@another' })],
  ] as const

  const APART = ['only_local', 'only_remote']
  const kindsOf = async (lab: Lab): Promise<string[]> =>
    (await all(lab.orders.reconcile())).map(({ kind }) => kind).sort()
  /** Changes every row of the list. */
  const lists = (lab: Lab, fields: object) =>
    lab.fault(
      { type: 'mutateList', change: (rows) => rows.map((row) => ({ ...row, ...fields })) },
      'always',
      'listOrders',
    )

  /** An order whose request was lost and that is too old to be repeated. */
  async function lost(lab: Lab): Promise<void> {
    await lab.doubted('drop')
    lab.runtime.jump(60 * MINUTE)
  }

  it.each(OTHERS)(
    "another integration's order whose %s differs is shown to a person, neither adopted nor bought",
    async (lab, field, other) => {
      await lost(lab)
      const { id } = lab.sandbox.addOrder(other)
      const { orders } = lab
      expect(await all(orders.recover())).toMatchObject([
        { outcome: 'needs_attention', reason: 'doubtful', error: { orderId: id, charged: 'unknown' } },
      ])
      const doubtful = { kind: 'doubtful', differs: expect.arrayContaining([field]) }
      expect(await all(orders.reconcile())).toMatchObject([doubtful])
      const created = { as: 'created', orderId: id } as const
      const error = await failure(orders.resolve({ externalOrderId: 'r1' }, created))
      expect(error).toMatchObject({ code: 'invalid_request', charged: 'unknown' })
      expect(error.message).toContain(field)
      expect(await lab.record('ref:r1')).toMatchObject({ state: 'open' })
      expect(lab.posts).toHaveLength(1)
    },
  )

  it.each(OTHERS)(
    "another integration's order does not hide the own order from recover() if its %s differs",
    async (lab, _field, other) => {
      lab.sandbox.addOrder(other)
      await lab.doubted()
      lab.runtime.jump(60 * MINUTE)
      lab.sandbox.addOrder(other)
      const order = { id: lab.charged() }
      expect(await all(lab.orders.recover())).toMatchObject([{ outcome: 'created', order }])
    },
  )

  it.each([
    ['the reference', {}],
    ['no reference', { metadata: {} }],
  ])(
    'a remembered id proves an order whose fields the service changes, listed with %s',
    async (lab, _with, shown) => {
      await lab.create()
      lists(lab, { quantity: 3, target: '@other', ...shown })
      expect(await kindsOf(lab)).toEqual(['matched'])
      lists(lab, { quantity: 3, amount: 1, ...shown })
      expect(await kindsOf(lab)).toEqual(['amount_differs'])
    },
  )

  it('a remembered id proves nothing if the list shows another reference', async (lab) => {
    await lab.create()
    lists(lab, { metadata: { externalOrderId: 'r2' } })
    expect(await kindsOf(lab)).toEqual(APART)
  })

  describe('of another source system', () => {
    const metadata = { externalOrderId: 'r1', sourceSystem: 'shop' }
    const twin = { ...anonymousOrder(), metadata: { externalOrderId: 'r1' }, sourceSystem: 'elsewhere' }
    const systems = (): Lab =>
      new Lab({ behaviour: { orderFields: ['serviceId', 'target', 'quantity', 'metadata', 'sourceSystem'] } })

    it('recover() calls it doubtful, also if its orders name several source systems', async () => {
      const lab = systems()
      await lab.doubted('drop', order('r1', { metadata }))
      await lab.doubted('drop', order('r2'))
      lab.runtime.jump(60 * MINUTE)
      lab.sandbox.addOrder(twin)
      const outcomes = await all(lab.orders.recover())
      expect(outcomes.map(({ outcome, reason }) => `${outcome} ${reason}`)).toEqual([
        'needs_attention doubtful',
        'needs_attention past_window',
      ])
    })

    it('recover() finds the own order among several source systems', async () => {
      const lab = systems()
      lab.sandbox.addOrder(twin)
      await lab.doubted('commitThenDrop', order('r1', { metadata }))
      await lab.doubted('drop', order('r2'))
      const orderId = lab.charged()
      lab.runtime.jump(60 * MINUTE)
      const outcomes = await all(lab.orders.recover())
      expect(outcomes).toMatchObject([
        { outcome: 'created', order: { id: orderId } },
        { outcome: 'needs_attention', reason: 'past_window' },
      ])
    })

    it('reconcile() calls it doubtful, and resolve() accepts it only despite its source system', async () => {
      const lab = systems()
      await lab.doubted('drop', order('r1', { metadata }))
      const { id } = lab.sandbox.addOrder(twin)
      const { orders } = lab
      expect(await all(orders.reconcile())).toMatchObject([{ kind: 'doubtful', differs: ['sourceSystem'] }])
      const resolve = (despite: readonly EchoedField[]) =>
        orders.resolve({ externalOrderId: 'r1' }, { as: 'created', orderId: id, despite })
      expect((await failure(resolve([]))).message).toContain("despite: ['sourceSystem']")
      expect(await resolve(['sourceSystem'])).toMatchObject({ state: 'created', order: { id } })
    })
  })

  it('reconcile() does not match an order with a lone surrogate in its serviceId', async (lab) => {
    await lab.doubted()
    lists(lab, { serviceId: '\ud800' })
    expect(await kindsOf(lab)).toEqual(['doubtful'])
  })
})
