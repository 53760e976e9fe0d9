import { type CreateOptions, type CreateOrderRequest, responseInfo } from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import { it, sameRequest } from '../../support/history.ts'
import { anonymousOrder, failure, type Lab, order, told } from '../../support/lab.ts'

const MINUTE = 60_000
const WINDOW = 20 * MINUTE

/**
 * Two clients for one order: in one process, where they share calls in progress, or in two
 * processes.
 */
const PAIRS = [
  ['in one process', (lab: Lab) => [lab.client(), lab.client()] as const],
  ['in two processes', (lab: Lab) => [lab.client(), lab.elsewhere()] as const],
] as const

const CONFLICT = { code: 'idempotency_conflict', local: true } as const
const KEY = ['idempotencyKey']

describe.each(PAIRS)('two calls for one order %s', (_where, clientsOf) => {
  /** The two clients, and the first one's call, which takes a while. */
  async function begun(lab: Lab, options: CreateOptions = {}, ms = 3000) {
    lab.fault({ type: 'delay', ms })
    const [first, second] = clientsOf(lab)
    const { ending } = await lab.begin(() => first.orders.create(order('r1'), options))
    return [first, second, ending] as const
  }

  it('two calls place the order once if the second starts after the first', async (lab) => {
    const [first, second] = clientsOf(lab)
    const placed = await first.orders.create(order('r1'))
    const again = await second.orders.create(order('r1'))
    expect(again).toEqual(placed)
    expect(responseInfo(again)).toMatchObject({ attempts: 0, replayed: true })
    expect(lab.posts).toHaveLength(1)
    lab.sandbox.expectCharges(1)
  })

  it('two concurrent calls place the order once: the second polls the record and returns the order', async (lab) => {
    lab.fault({ type: 'delay', ms: 3000, when: 'during' })
    const [first, second] = clientsOf(lab)
    const [a, b] = await Promise.all([first.orders.create(order('r1')), second.orders.create(order('r1'))])
    expect(b).toEqual(a)
    expect(b).not.toBe(a)
    expect(lab.posts).toHaveLength(1)
    expect(responseInfo(b)).toMatchObject({ attempts: 0, replayed: true, idempotencyKey: lab.posts[0]?.key })
  })

  it('two calls place the order once if the second waited for a first that was refused', async (lab) => {
    lab.fault({ type: 'status', status: 422, code: 'OUT_OF_STOCK' })
    lab.fault({ type: 'delay', ms: 3000 })
    const [first, second] = clientsOf(lab)
    const [a, b] = await Promise.all([
      told(first.orders.create(order('r1'))),
      told(second.orders.create(order('r1'))),
    ])
    expect(a.error).toMatchObject({ code: 'order_not_accepted', charged: 'no' })
    expect(b.order?.id).toBe(lab.charged())
    expect(new Set(lab.posts.map(({ key }) => key)).size).toBe(1)
  })

  it('a second call continues an open order inside the window, with its key and its bytes', async (lab) => {
    await lab.doubted()
    lab.runtime.jump(5 * MINUTE)
    const [, second] = clientsOf(lab)
    const metadata = { externalOrderId: 'r1', note: 'asked again' }
    const noted = order('r1', { metadata })
    const { order: placed, info } = await told(second.orders.create(noted))
    expect(placed?.id).toBe(lab.charged())
    expect(info).toMatchObject({ attempts: 1, replayed: true })
    expect(lab.posts).toHaveLength(2)
    sameRequest(lab)
  })

  it('a second call rejects an open order past the window, and sends nothing', async (lab) => {
    await lab.doubted()
    lab.runtime.jump(WINDOW)
    const [, second] = clientsOf(lab)
    const error = await failure(second.orders.create(order('r1')))
    const names = { externalOrderId: 'r1', idempotencyKey: lab.posts[0]?.key }
    expect(error).toMatchObject({ code: 'unresolved_order', charged: 'unknown', attempts: 0, ...names })
    expect(lab.posts).toHaveLength(1)
  })

  const another = { ...order('r1'), quantity: 11, target: '@else' }
  it.each<[string, CreateOptions, CreateOptions, CreateOrderRequest, fields: string[]]>([
    ['another payload', {}, {}, another, ['quantity', 'target']],
    ['another given key', { idempotencyKey: 'first' }, { idempotencyKey: 'second' }, order('r1'), KEY],
    ['a given key that differs from the computed key', {}, { idempotencyKey: 'mine' }, order('r1'), KEY],
  ])(
    '%s is rejected, and nothing is sent for it, while the first call is running and after it',
    async (lab, _what, options, others, request, fields) => {
      const [, second, running] = await begun(lab, options)
      const early = await failure(second.orders.create(request, others))
      expect(early).toMatchObject({ ...CONFLICT, fields, attempts: 0 })
      expect(early.charged).not.toBe('no')
      expect((await running).id).toBe(lab.charged())
      const late = await failure(second.orders.create(request, others))
      expect(late).toMatchObject({ ...CONFLICT, fields, charged: 'yes' })
      expect(lab.posts).toHaveLength(1)
    },
  )

  it('another payload is rejected after the first is created, open, or past the window', async (lab) => {
    const [, second] = clientsOf(lab)
    await lab.doubted()
    const other = () => failure(second.orders.create(order('r1', { quantity: 11 })))
    const conflict = { ...CONFLICT, fields: ['quantity'] }
    expect(await other()).toMatchObject({ ...conflict, charged: 'unknown' })
    lab.runtime.jump(WINDOW)
    expect(await other()).toMatchObject({ ...conflict, charged: 'unknown' })
    lab.runtime.jump(-WINDOW)
    const sent = lab.posts.length + 1
    await lab.create()
    expect(await other()).toMatchObject({ ...conflict, charged: 'yes', orderId: lab.charged() })
    expect(lab.posts).toHaveLength(sent)
  })

  it("a call without a key joins a call with the caller's key", async (lab) => {
    lab.fault({ type: 'delay', ms: 3000 })
    const [first, second] = clientsOf(lab)
    const [a, b] = await Promise.all([
      first.orders.create(order('r1'), { idempotencyKey: 'mine' }),
      second.orders.create(order('r1')),
    ])
    expect(b).toEqual(a)
    expect(lab.posts.map(({ key }) => key)).toEqual(['mine'])
  })

  it('a refused order is sent again with the same key, even with a corrected payload', async (lab) => {
    const [first, second] = clientsOf(lab)
    const refused = await failure(first.orders.create(order('r1', { quantity: 5000 })))
    expect(refused).toMatchObject({ code: 'order_not_accepted', charged: 'no' })
    const placed = await second.orders.create(order('r1'))
    expect(placed.id).toBe(lab.charged())
    expect(new Set(lab.posts.map(({ key }) => key)).size).toBe(1)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', generation: 0 })
  })

  it('a waiting call stops at its own deadline, and never reports that nothing was charged', async (lab) => {
    const [, second, running] = await begun(lab, {}, 20_000)
    const before = lab.runtime.monotonic()
    const error = await failure(second.orders.create(order('r1'), { totalTimeout: 5000 }))
    expect(error).toMatchObject({ code: 'timeout', deadline: 'total', charged: 'unknown', attempts: 0 })
    expect(lab.runtime.monotonic() - before).toBeLessThanOrEqual(6000)
    expect((await running).id).toBe(lab.charged())
    expect(lab.posts).toHaveLength(1)
  })

  it('a waiting call stops when its caller aborts', async (lab) => {
    const [, second, running] = await begun(lab, {}, 20_000)
    const controller = new AbortController()
    const { ending } = await lab.begin(() =>
      failure(second.orders.create(order('r1'), { signal: controller.signal })),
    )
    controller.abort('enough')
    const aborted = { code: 'aborted', charged: 'unknown', attempts: 0, cause: 'enough' }
    expect(await ending).toMatchObject(aborted)
    expect((await running).id).toBe(lab.charged())
  })
})

it('the key is computed from server, account and reference, so a wiped store sends the same key', async (lab) => {
  await lab.create()
  lab.wipe()
  const { order: again, info } = await told(lab.create())
  expect(again?.id).toBe(lab.charged())
  expect(lab.posts).toHaveLength(2)
  expect(lab.posts[1]?.key).toBe(lab.posts[0]?.key)
  // It is unknown whether the service created the order or replayed it.
  expect(info).not.toHaveProperty('replayed')
})

it("another account has another key, and the two never see each other's orders", async (lab) => {
  const one = await lab.client({ account: 'one' }).orders.create(order('r1'))
  const two = await lab.client({ account: 'two' }).orders.create(order('r1'))
  expect(two.id).not.toBe(one.id)
  expect(lab.posts[1]?.key).not.toBe(lab.posts[0]?.key)
})

it('the key is random without an account', async (lab) => {
  const { info } = await told(lab.unlabelled().orders.create(order('r1')))
  expect(info).toMatchObject({ replayed: false, attempts: 1 })
  expect(lab.posts[0]?.key).toMatch(/^00000000-0000-4000-8000-/)
  expect(await lab.record('ref:r1', null)).toMatchObject({ origin: 'random' })
})

it('a given key is sent byte for byte, and names an order that has no reference', async (lab) => {
  const client = lab.client()
  const idempotencyKey = '~!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}'
  const placed = await client.orders.create(anonymousOrder(), { idempotencyKey })
  const again = await client.orders.create(anonymousOrder(), { idempotencyKey })
  expect(lab.posts.map(({ key }) => key)).toEqual([idempotencyKey])
  expect(again.id).toBe(placed.id)
  expect(await lab.record(`key:${idempotencyKey}`)).toMatchObject({ origin: 'caller' })
})

it("a given key is never taken for another order's key", async (lab) => {
  const client = lab.client()
  await client.orders.create(anonymousOrder(), { idempotencyKey: 'k1' })
  const error = await failure(
    client.orders.create(anonymousOrder({ quantity: 11 }), { idempotencyKey: 'k1' }),
  )
  expect(error).toMatchObject({ code: 'idempotency_conflict', local: true, fields: ['quantity'] })
  lab.sandbox.expectCharges(1)
})

describe('an order that was created but never readable', () => {
  /** The service always responds with a 201 without an order. */
  async function unreadable(lab: Lab, body: string): Promise<void> {
    const remove = lab.fault({ type: 'bytes', body, status: 201 }, 'always', 'createOrder')
    const error = await failure(lab.create())
    expect(error).toMatchObject({ code: 'invalid_response', charged: 'yes', status: 201 })
    remove()
  }

  it('an unreadable order is read inside the window by repeating the request with its key', async (lab) => {
    await unreadable(lab, '<html>')
    const { order: placed, info } = await told(lab.create())
    expect(placed?.id).toBe(lab.charged())
    expect(info).toMatchObject({ replayed: true, attempts: 1 })
    sameRequest(lab)
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', readable: true })
    expect(await lab.record('ref:r1')).not.toHaveProperty('body')
  })

  it('an unreadable order is read past the window by its id, if known', async (lab) => {
    const remove = lab.fault({ type: 'transformBody', patch: { amount: 'much' } }, 'always', 'createOrder')
    const flawed = await failure(lab.create())
    expect(flawed).toMatchObject({ code: 'invalid_response', charged: 'yes', orderId: expect.any(String) })
    remove()
    lab.runtime.jump(WINDOW)
    lab.fault({ type: 'status', status: 403 }, 1, 'retrieveOrder')
    const { supportReference } = flawed
    expect(await failure(lab.create())).toMatchObject({ charged: 'yes', status: 403, supportReference })
    lab.settled.length = 0
    const { order: placed, info } = await told(lab.create())
    expect(placed?.id).toBe(flawed.orderId)
    expect(placed?.amount).toBe(2500)
    expect(info).toMatchObject({ replayed: true, status: 200 })
    expect(lab.posts).toHaveLength(1)
    expect(await lab.record('ref:r1')).toMatchObject({ readable: true, order: { amount: 2500 } })
    expect(lab.settled.filter(({ operation }) => operation === 'orders.create')).toHaveLength(1)
  })

  it.each([
    ['its id is not known', '<html>'],
    ...['..', '.', 'a/../b', ' '].map((id) => [`no path can contain its id ${id}`, JSON.stringify({ id })]),
  ])('an unreadable order past the window needs a person if %s', async (lab, _why, body = '') => {
    await unreadable(lab, body)
    lab.runtime.jump(WINDOW)
    const told = { code: 'unresolved_order', charged: 'yes', attempts: 0 }
    expect(await failure(lab.create())).toMatchObject(told)
  })

  it('an order is reported as charged while its response is unreadable, or while another call reads it', async (lab) => {
    await unreadable(lab, '<html>')
    lab.fault({ type: 'delay', ms: 20_000 })
    const [reading, waiting] = await Promise.all([
      told(lab.create()),
      told(lab.elsewhere().orders.create(order('r1'), { totalTimeout: 5000 })),
    ])
    expect(reading.order?.id).toBe(lab.charged())
    expect(waiting.error).toMatchObject({ code: 'timeout', charged: 'yes' })
  })
})

it('a call reads its arguments once: later changes by the caller have no effect', async (lab) => {
  lab.fault({ type: 'drop' })
  const request = structuredClone(order('r1')) as {
    quantity: number
    target: string
    metadata: { externalOrderId: string }
  }
  const options = { idempotencyKey: 'mine', maxRetries: 4 }
  const placing = lab.create({ serviceId: 'svc_standard', ...request }, options)
  const same = lab.create({ serviceId: 'svc_standard', ...request }, options)
  request.quantity = 999
  request.target = '@changed'
  request.metadata.externalOrderId = 'r2'
  options.idempotencyKey = 'other'
  options.maxRetries = 0
  await Promise.all([placing, same])
  expect(lab.posts.map(({ key, status }) => [key, status])).toEqual([
    ['mine', 'dropped'],
    ['mine', 201],
  ])
  expect(lab.posts[1]?.body).toBe(lab.posts[0]?.body)
  expect(JSON.parse(lab.posts[0]?.body ?? '')).toMatchObject({
    quantity: 10,
    metadata: { externalOrderId: 'r1' },
  })
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'created' })
})

it('a call returns an order that the caller may change, even to calls that joined it', async (lab) => {
  lab.fault({ type: 'delay', ms: 3000 })
  const client = lab.client()
  const spoiled = client.orders.create(order('r1')).then((placed) => {
    Object.assign(placed, { amount: -1, metadata: { externalOrderId: 'spoiled' } })
    return placed
  })
  const [, joined] = await Promise.all([spoiled, client.orders.create(order('r1'))])
  expect(joined).toMatchObject({ amount: 2500, metadata: { externalOrderId: 'r1' } })
  expect(await client.orders.create(order('r1'))).toEqual(joined)
})

it('an order nested 100,000 deep is returned in full, and remembered with at least its documented fields', async (lab) => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  const body = `{"id":"ord_deep","status":"pending","amount":5,"deep":${deep}}`
  lab.fault({ type: 'bytes', body, status: 201 })
  lab.fault({ type: 'delay', ms: 3000 })
  const client = lab.client()
  const [placed, joined] = await Promise.all([
    client.orders.create(order('r1')),
    client.orders.create(order('r1')),
  ])
  expect(placed).toMatchObject({ deep: expect.any(Array) })
  // Engines differ in how deeply nested a value they can write as JSON or copy.
  const documented = { id: 'ord_deep', status: 'pending', amount: 5 }
  expect(joined).toMatchObject(documented)
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', readable: true, order: documented })
  expect(lab.posts).toHaveLength(1)
})
