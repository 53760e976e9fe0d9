import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { expect, test } from 'vitest'
import { caller, manualClock } from './caller.ts'

function idsOf(body: unknown): readonly unknown[] {
  const { data } = body as { data: readonly { id?: string; productId?: string }[] }
  return data.map((row) => row.id ?? row.productId)
}

function withOrders(count: number, options: Parameters<typeof createSandbox>[0] = {}) {
  const sandbox = createSandbox(options)
  for (let i = 1; i <= count; i++) sandbox.addOrder({ id: `o${i}`, amount: 1000 - i })
  return { sandbox, api: caller(sandbox) }
}

test('GET /v1/orders limits a page to 100 rows by default', async () => {
  const { api } = withOrders(150)
  expect(idsOf((await api.get('/v1/orders?limit=1000')).body)).toHaveLength(100)
})

test.each([
  ['limit=0', ['o3']],
  ['limit=-4', ['o3']],
  ['limit=abc', ['o3', 'o2', 'o1']],
  ['limit=1.5', ['o3', 'o2', 'o1']],
  ['limit=', ['o3', 'o2', 'o1']],
  ['offset=-1', ['o3', 'o2', 'o1']],
  ['offset=99999999999999999999', []],
])('GET /v1/orders clamps %s', async (query, expected) => {
  const { api } = withOrders(3)
  const { status, body } = await api.get(`/v1/orders?${query}`)
  expect(status).toBe(200)
  expect(idsOf(body)).toEqual(expected)
})

test.each(['limit=0', 'limit=abc', 'offset=-1', 'offset=1e3'])('a list can reject %s', async (query) => {
  const { api } = withOrders(3, { behaviour: { invalidPaging: 'refuse' } })
  expect(await api.get(`/v1/orders?${query}`)).toMatchObject({ status: 400 })
  expect(await api.get('/v1/orders?limit=2&offset=0')).toMatchObject({ status: 200 })
})

test('GET /v1/orders/{orderId} decodes the identifier', async () => {
  const { sandbox, api } = withOrders(0)
  sandbox.addOrder({ id: 'a/b?c' })
  expect(await api.get(`/v1/orders/${encodeURIComponent('a/b?c')}`)).toMatchObject({ status: 200 })
})

test("an order's status changes with time until it is set by hand", async () => {
  const clock = manualClock()
  const { sandbox, api } = withOrders(1, {
    ...clock.options,
    behaviour: {
      statuses: [
        { status: 'received', after: 0 },
        { status: 'done', after: 1000 },
      ],
    },
  })
  const status = async () => (await api.get('/v1/orders/o1')).body
  expect(await status()).toMatchObject({ status: 'received' })
  clock.advance(1000)
  expect(await status()).toMatchObject({ status: 'done' })
  sandbox.setOrderStatus('o1', 'cancelled')
  expect(await status()).toMatchObject({ status: 'cancelled' })
})
