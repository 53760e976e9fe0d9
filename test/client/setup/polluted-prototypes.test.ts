import { afterEach, expect, it } from 'vitest'
import { check } from '../../../src/schemas/check.ts'
import { readEnvelope } from '../../../src/schemas/list.ts'
import { createOrderRequestSchema } from '../../../src/schemas/order.ts'
import { readProblem } from '../../../src/schemas/problem.ts'
import { failure, Lab, order } from '../../support/lab.ts'

const added: string[] = []
/**
 * Members that other code may add to every object, with values that look like the service's or the
 * platform's own.
 */
function pollute(name: string, value: unknown): void {
  Object.defineProperty(Object.prototype, name, { value, configurable: true, writable: true })
  added.push(name)
}
afterEach(() => {
  for (const name of added.splice(0)) Reflect.deleteProperty(Object.prototype, name)
})

it.each(['code', 'title', 'detail', 'message', 'reason', 'type', 'error'])(
  "a polluted prototype does not turn a gateway's page into a refusal: %s",
  (name) => {
    pollute(name, 'REFUSED')
    expect(readProblem('{}')).toEqual({ recognised: false })
    expect(readProblem('{"code":"NO_FUNDS"}')).toMatchObject({ recognised: true, code: 'NO_FUNDS' })
  },
)

it('a polluted prototype does not complete a row of a list', async () => {
  const lab = new Lab()
  const body = '[{"id":"ord_1","status":"done","amount":1},{"id":"ord_2","status":"done"}]'
  lab.fault({ type: 'bytes', body })
  pollute('amount', 7)
  await expect(lab.orders.list()).rejects.toMatchObject({
    issues: [{ path: expect.stringMatching(/^\[1\]/) }],
  })
})

it('a polluted prototype does not end a list', () => {
  pollute('hasMore', false)
  pollute('total', 1)
  pollute('meta', { hasMore: false })
  expect(readEnvelope({ data: [{ id: 'a' }] }, 'id')).toEqual({ value: { items: [{ id: 'a' }] } })
})

it.each(['code', 'cause', 'errors'])('a polluted prototype proves no request unsent: %s', async (name) => {
  pollute(name, name === 'code' ? 'ECONNREFUSED' : { code: 'ECONNREFUSED', syscall: 'connect' })
  const fetch = () => Promise.reject(new TypeError('fetch failed'))
  const error = await failure(new Lab().client({ fetch, maxRetries: 0 }).orders.create(order('r1')))
  expect(error).toMatchObject({ code: 'connection', charged: 'unknown' })
  expect(error.message).not.toContain('ECONNREFUSED')
})

it('a polluted prototype is neither the order of a refusal nor the time of a key', async () => {
  const lab = new Lab()
  lab.fault({ type: 'status', status: 402 })
  pollute('firstSentAt', 1)
  pollute('order', { id: 'ord_1', status: 'done', amount: 7 })
  expect(await failure(lab.create())).toMatchObject({ code: 'payment_required', charged: 'no' })
  expect((await lab.create()).id).toBe(lab.charged())
})

it('a polluted prototype is no field of a record', async () => {
  const lab = new Lab()
  await lab.doubted('drop')
  pollute('busyUntil', 2e12)
  expect(await lab.orders.recover()).toMatchObject({ created: 1 })
})

it("a polluted prototype is not an order's reference, even on a platform without __proto__", () => {
  const proto = Object.getOwnPropertyDescriptor(Object.prototype, '__proto__')
  if (proto === undefined) throw new Error('this platform has none')
  Reflect.deleteProperty(Object.prototype, '__proto__')
  try {
    pollute('externalOrderId', 'x')
    const request = { serviceId: 's', target: 't', quantity: 1, metadata: {} }
    const checked = check(createOrderRequestSchema, request)
    if (checked instanceof Promise || !('value' in checked)) throw new Error('is not accepted')
    expect(checked.value.metadata?.externalOrderId).toBeUndefined()
  } finally {
    Object.defineProperty(Object.prototype, '__proto__', proto)
  }
})
