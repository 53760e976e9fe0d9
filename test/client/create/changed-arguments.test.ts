import { describe, expect } from 'vitest'
import type { CreateManyRow } from '../../../src/call-options.ts'
import type { CustomerOrderingClient } from '../../../src/client.ts'
import type { CreateOrderRequest } from '../../../src/schemas/order.ts'
import { it } from '../../support/history.ts'
import { failure, order } from '../../support/lab.ts'
import { on } from '../../support/stores.ts'

describe('arguments that have become wrong since an order was sent', () => {
  it.each<[string, boolean, string]>([
    ['charged', false, 'yes'],
    ['in doubt', true, 'unknown'],
  ])(
    'an order that is %s is reported as remembered, even if its record is no longer valid',
    async (lab, _what, lost, charged) => {
      if (lost) lab.fault({ type: 'commitThenDrop' })
      await lab
        .client({ maxRetries: 0 })
        .orders.create(order('r1'))
        .catch(() => {})
      const row = order('r1', { quantity: -1 })
      const error = await failure(lab.create(row))
      expect(error).toMatchObject({ code: 'invalid_request', charged, externalOrderId: 'r1' })
      expect(error.idempotencyKey).toBe(lab.posts[0]?.key)
      for await (const result of lab.orders.createMany([row]))
        expect(result).toMatchObject({ charged, error: { code: 'invalid_request' } })
      lab.sandbox.expectCharges(1)
    },
  )

  it.each<[string, (client: CustomerOrderingClient) => Promise<unknown>]>([
    ['an option of create()', (client) => client.orders.create(order('r1'), { timeout: -1 })],
    ['a key of create()', (client) => client.orders.create(order('r1'), { idempotencyKey: 'a b' })],
    [
      'a row of createMany()',
      async (client) => {
        const rows: unknown[] = [{ request: { ...order('r1'), quantity: 'many' } }]
        const { failures } = await client.orders.createMany(rows as CreateManyRow[])
        throw failures[0]?.error
      },
    ],
  ])('a charged order is reported as charged if %s is wrong', async (lab, _what, call) => {
    const { id } = await lab.create()
    const charged = { code: 'invalid_request', charged: 'yes', orderId: id }
    expect(await failure(call(lab.client()))).toMatchObject(charged)
    lab.sandbox.expectCharges(1)
  })

  const metadata = { externalOrderId: 'r1' }
  it.each<[string, () => object]>([
    ['toJSON()', () => ({ toJSON: () => order('r1', { quantity: 2.5 }) })],
    [
      'a getter',
      () => ({
        ...order('r1', { quantity: 2.5 }),
        get metadata() {
          return metadata
        },
      }),
    ],
    [
      'toJSON() of metadata',
      () => ({ ...order('r1', { quantity: 2.5 }), metadata: { toJSON: () => metadata } }),
    ],
    [
      'toJSON() of the reference',
      () => ({ ...order('r1', { quantity: 2.5 }), metadata: { externalOrderId: { toJSON: () => 'r1' } } }),
    ],
  ])(
    'a charged order is reported as charged if its invalid request names it by %s',
    async (lab, _how, make) => {
      const { id } = await lab.create()
      const request = make() as CreateOrderRequest
      const wrong = { code: 'invalid_request', charged: 'yes', orderId: id }
      expect(await failure(lab.create(request))).toMatchObject(wrong)
      expect(await failure(lab.create(request, { timeout: -1 }))).toMatchObject(wrong)
      const { failures } = await lab.orders.createMany([request])
      expect(failures[0]?.error).toMatchObject(wrong)
    },
  )

  it('an invalid request whose getter fails reports charged no', async (lab) => {
    const request = {
      ...order('r1', { quantity: 2.5 }),
      get metadata(): never {
        throw new Error('no reference')
      },
    }
    await expect(lab.create(request)).rejects.toThrow('no reference')
    expect(await failure(lab.create(request, { timeout: -1 }))).toMatchObject({ charged: 'no' })
  })

  it('an invalid order reports charged no if nothing is remembered, and unknown if the store cannot be read', async (lab) => {
    const row = order('r1', { quantity: -1 })
    expect(await failure(lab.create(row))).toMatchObject({ charged: 'no' })
    const blind = lab.elsewhere({}, on('get', 'rejects'))
    const unknown = { code: 'invalid_request', charged: 'unknown' }
    expect(await failure(blind.orders.create(row))).toMatchObject(unknown)
  })
})
