import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { expect, test } from 'vitest'
import { caller, scene, validBody } from './caller.ts'

const code = (value: string) => expect.objectContaining({ code: value })

test("a fractional quantity's price is rounded to a minor unit", async () => {
  const sandbox = createSandbox({
    behaviour: { fractionalQuantity: true },
    services: [{ productId: 'half', amount: 125, minQuantity: 0.1, stepQuantity: 0.1 }],
  })
  const { body } = await caller(sandbox).order('k', { serviceId: 'half', target: '@a', quantity: 0.3 })
  expect(body).toMatchObject({ amount: 38 })
})

test.each([
  ['without a body', ''],
  ['with null', 'null'],
  ['nested without end', '['.repeat(100_000)],
  ['without serviceId', { ...validBody, serviceId: undefined }],
  ['without target', { ...validBody, target: undefined }],
  ['with a blank target', { ...validBody, target: ' ' }],
  ['without quantity', { ...validBody, quantity: undefined }],
  ['with quantity zero', { ...validBody, quantity: 0 }],
  ['with an unsafe quantity', '{"serviceId":"svc_standard","target":"@a","quantity":9007199254740993}'],
  ['with a sourceSystem that is no text', { ...validBody, metadata: { sourceSystem: 7 } }],
])('an order is refused with 400 %s', async (_, body) => {
  const sandbox = createSandbox()
  expect(await caller(sandbox).order('key-1', body)).toMatchObject({
    status: 400,
    body: code('INVALID_REQUEST'),
  })
  sandbox.expectCharges(0)
})

test('a refusal states what is missing', async () => {
  const sandbox = createSandbox()
  const reader = sandbox.addApiKey({ customer: sandbox.customerId, permissions: ['orders:read'] })
  expect((await caller(sandbox, null).order('k')).headers.get('www-authenticate')).toBe('Bearer')
  const { body } = await caller(sandbox, reader).order('k')
  expect(body).toHaveProperty('message', expect.stringContaining('orders:write'))
  expect(await caller(sandbox).get('/v1/services/svc_draft')).toMatchObject({ status: 404 })
})

test('orders reduce the stock', async () => {
  const sandbox = createSandbox()
  sandbox.addService({ productId: 'rare', amount: 10, stock: 3 })
  const api = caller(sandbox)
  const rare = { ...validBody, serviceId: 'rare' }
  expect(await api.order('k1', rare)).toMatchObject({ status: 201 })
  expect(await api.order('k2', rare)).toMatchObject({ status: 422, body: code('OUT_OF_STOCK') })
  expect(await api.order('k3', { ...rare, quantity: 1 })).toMatchObject({ status: 201 })
  expect((await api.get('/v1/services/rare')).body).toMatchObject({ stockState: 'out_of_stock' })
})

test.each(['default', 'balance-before-key'] as const)(
  'no money is spent twice: preset %s',
  async (preset) => {
    const { sandbox, api } = scene({ balance: 700, preset })
    const answers = await Promise.all([api.order('a'), api.order('b')])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 402])
    sandbox.expectCharges(1)
  },
)

test.each([
  ['DELETE', '/v1/orders', 'GET, POST'],
  ['PUT', '/v1/orders/ord_1', 'GET'],
  ['POST', '/v1/services', 'GET'],
  ['PATCH', '/v1/balance', 'GET'],
])('%s %s is a 405, which lists the allowed methods', async (method, path, allow) => {
  const answered = await caller(createSandbox()).send(path, { method })
  expect(answered.status).toBe(405)
  expect(answered.headers.get('allow')).toBe(allow)
})
