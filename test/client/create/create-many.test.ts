import {
  type CreateManyOptions,
  type CreateManyProgress,
  type CreateManyResult,
  type CreateManyRow,
  type CreateOrderRequest,
  type Order,
  RequestAbortedError,
} from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import { all, throwing } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { anonymousOrder, type Lab, order } from '../../support/lab.ts'

type Rows = Iterable<CreateManyRow> | AsyncIterable<CreateManyRow>
const place = (lab: Lab, rows: Rows, options: CreateManyOptions = {}) =>
  all(lab.orders.createMany(rows, options))

/** Places rows, one at a time, until an error. Returns the results before it, and the error. */
async function failing(lab: Lab, rows: Rows, options: CreateManyOptions = {}) {
  const results: CreateManyResult<Order>[] = []
  try {
    for await (const result of lab.orders.createMany(rows, { concurrency: 1, ...options }))
      results.push(result)
  } catch (error) {
    return { results, error }
  }
  throw new Error('createMany did not fail')
}

it.each([5, null])(
  'createMany reports what is wrong with a reference that is %s',
  async (lab, externalOrderId) => {
    const row = { ...order('r1'), metadata: { externalOrderId } } as unknown as CreateManyRow
    const [failed] = await all(lab.orders.createMany([row]))
    expect(failed).toMatchObject({ ok: false, error: { issues: [{ path: 'metadata.externalOrderId' }] } })
    expect(failed).not.toMatchObject({ error: { message: expect.stringContaining('is missing') } })
  },
)

it('createMany places every row once, and reports which orders are new', async (lab) => {
  const { orders } = lab
  const rows = Array.from({ length: 25 }, (_, index) => order(`row-${index}`))
  const first = await all(orders.createMany(rows, { concurrency: 4 }))
  const again = await all(orders.createMany(rows))
  expect(first.map((result) => 'order' in result && result.charged)).toEqual(rows.map(() => 'yes'))
  expect(new Set(first.map(({ request }) => request.metadata?.externalOrderId)).size).toBe(25)
  expect(again.every((result) => 'order' in result && result.replayed === true)).toBe(true)
  lab.sandbox.expectCharges(25)
})

it('rows with the same reference or the same key are one order', async (lab) => {
  const keyed = { request: anonymousOrder(), idempotencyKey: 'key-1' }
  const results = await place(lab, [order('same'), order('same'), keyed, keyed])
  const ids = results.map((result) => ('order' in result ? result.order.id : 'failed'))
  expect(new Set(ids)).toEqual(new Set(lab.sandbox.ledger.map(({ orderId }) => orderId)))
  lab.sandbox.expectCharges(2)
})

it.each([{ idempotencykey: 'old' }, { options: { idempotencyKey: 'old' } }, { allowDuplicate: true }])(
  'createMany refuses a row with a further field, which may be a misspelled key: %j',
  async (lab, further) => {
    await lab.elsewhere({ account: 'before' }).orders.create(order('r1'), { idempotencyKey: 'old' })
    const row = { request: order('r1'), ...further } as unknown as CreateOrderRequest
    const [name] = Object.keys(further)
    expect(await place(lab, [row])).toMatchObject([
      { charged: 'no', error: { code: 'invalid_request', issues: [{ path: name }] } },
    ])
    lab.sandbox.expectCharges(1)
  },
)

it('a failed row has its error and the state of the wallet, and createMany continues', async (lab) => {
  const rows = [order('big', { quantity: 1000 }), order('dear', { serviceId: 'svc_premium' }), order('small')]
  const results = await place(lab, rows, { concurrency: 1, maxRetries: 0 })
  expect(
    results.map((result) => [result.charged, 'error' in result ? result.error.code : 'created']),
  ).toEqual([
    ['yes', 'created'],
    ['no', 'payment_required'],
    ['yes', 'created'],
  ])
})

it('createMany reads no more rows than are in progress or waiting to be consumed', async (lab) => {
  let read = 0
  function* rows(): Generator<CreateOrderRequest> {
    for (;;) yield order(`endless-${read++}`)
  }
  let taken = 0
  for await (const result of lab.orders.createMany(rows(), { concurrency: 3 })) {
    expect('order' in result).toBe(true)
    taken++
    expect(read - taken).toBeLessThanOrEqual(3)
    if (taken === 20) break
  }
  expect(lab.sandbox.ledger.length).toBe(read)
})

it('when the loop is left, createMany closes the source and waits for orders in progress', async (lab) => {
  const client = lab.client()
  let closed = false
  async function* rows(): AsyncGenerator<CreateOrderRequest> {
    try {
      for (let index = 0; ; index++) yield order(`left-${index}`)
    } finally {
      closed = true
    }
  }
  for await (const _ of client.orders.createMany(rows(), { concurrency: 4 })) break
  expect(closed).toBe(true)
  expect(await all(client.orders.unresolved())).toEqual([])
})

it('createMany reports progress after each row', async (lab) => {
  const { orders } = lab
  await orders.create(order('known'))
  const seen: CreateManyProgress[] = []
  const rows = [order('known'), order('none', { serviceId: 'svc_missing' }), order('new')]
  await all(orders.createMany(rows, { concurrency: 1, onProgress: (progress) => seen.push(progress) }))
  expect(seen.map(({ completed }) => completed)).toEqual([1, 2, 3])
  expect(seen.at(-1)).toEqual({ completed: 3, created: 1, replayed: 1, failed: 1 })
})

it("after an abort, createMany ends with the signal's reason once the rows in progress have ended", async (lab) => {
  lab.fault({ type: 'stall', commit: true })
  const controller = new AbortController()
  const run = failing(lab, [order('stuck'), order('fine')], { signal: controller.signal })
  while (lab.sandbox.requests.length === 0) await new Promise((resolve) => setImmediate(resolve))
  controller.abort(new Error('Ctrl-C'))
  const { results, error } = await run
  expect(error).toBeInstanceOf(RequestAbortedError)
  expect(error).toMatchObject({ charged: 'unknown' })
  expect(results.map(({ charged }) => charged)).toEqual(['unknown'])
  lab.sandbox.expectNotCharged('fine')
})

function* failingSource(): Generator<CreateOrderRequest> {
  yield order('one')
  throw new Error('mine')
}
it.each<[string, Rows, CreateManyOptions]>([
  ['a failing source', failingSource(), { concurrency: 4 }],
  ['a throwing progress function', [order('one'), order('two')], { onProgress: throwing('mine') }],
  ['a rejecting one', [order('one'), order('two')], { onProgress: async () => throwing('mine')() }],
])('createMany ends with the error of %s, after the rows before it', async (lab, _what, rows, options) => {
  const { results, error } = await failing(lab, rows, options)
  expect(error).toEqual(new Error('mine'))
  expect(results).toHaveLength(1)
  lab.sandbox.expectChargedOnce('one')
  lab.sandbox.expectNotCharged('two')
})

describe('a source that waits for its next row', () => {
  /** Yields one row and then waits forever, as a queue does. */
  function queue(): { rows: AsyncIterable<never>; returned: () => number } {
    let returned = 0
    const given = [{ done: false, value: order('q1') }]
    const source = {
      next: (): Promise<unknown> => Promise.resolve(given.shift() ?? new Promise(() => {})),
      return: (): Promise<unknown> => {
        returned++
        return new Promise(() => {})
      },
    }
    return { rows: { [Symbol.asyncIterator]: () => source } as never, returned: () => returned }
  }

  it.each(['break', 'abort', 'timeout', 'onProgress', 'async onProgress'])(
    'createMany tells a waiting source to end, and does not wait for it, after %s',
    async (lab, how) => {
      const { rows, returned } = queue()
      const controller = new AbortController()
      const fail = throwing('mine')
      const onProgress = { onProgress: fail, 'async onProgress': async () => fail() }[how] ?? (() => {})
      const options = { signal: controller.signal, onProgress }
      const run = async (): Promise<void> => {
        for await (const _result of lab.orders.createMany(rows, options)) {
          if (how === 'abort') controller.abort()
          else if (how === 'timeout') controller.abort(new DOMException('', 'TimeoutError'))
          else if (how === 'break') break
        }
      }
      const ended = run().catch(({ name }: Error) => name)
      const names = { break: undefined, abort: 'RequestAbortedError', timeout: 'TimeoutError' }
      expect(await ended).toBe({ onProgress: 'Error', 'async onProgress': 'Error', ...names }[how])
      expect(returned()).toBe(1)
      lab.sandbox.expectChargedOnce('q1')
    },
  )
})
