import { expect, it } from 'vitest'
import type { CustomerOrderingClient as Client } from '../../src/client.ts'
import { suggestedStatus } from '../../src/suggested-status.ts'
import { failure, Lab, order } from '../support/lab.ts'

const refuse = (status: number) => (lab: Lab) => void lab.fault({ type: 'status', status: status as 500 })
const fault = (type: 'commitThenDrop' | 'drop') => (lab: Lab) => void lab.fault({ type })

const create = (client: Client, changes: Parameters<typeof order>[1] = {}) =>
  client.orders.create(order('r1', changes))
const balance = (client: Client) => client.balance.retrieve()
const nothing = () => {}

const cases: readonly [string, (lab: Lab) => void, (client: Client) => Promise<unknown>, number][] = [
  ['the response to an order is lost', fault('commitThenDrop'), create, 202],
  ['an order ends in a 500', refuse(500), create, 202],
  ['the wallet is empty', (lab) => lab.drain(), create, 402],
  ['the service is not known', nothing, (client) => create(client, { serviceId: 'svc_none' }), 404],
  ['a quantity is refused', nothing, (client) => create(client, { quantity: Number.NaN }), 400],
  [
    'a reference belongs to another order',
    nothing,
    async (client) => {
      await create(client)
      return await create(client, { quantity: 2 })
    },
    409,
  ],
  ['the API key is revoked', ({ sandbox }) => sandbox.revokeApiKey(sandbox.apiKey), create, 500],
  ['there are too many requests', refuse(429), balance, 503],
  ['a read ends in a 500', refuse(500), balance, 502],
  ['a read is lost', fault('drop'), balance, 503],
  ['an order is not there', nothing, (client) => client.orders.retrieve('none'), 404],
  ['a wallet is not there', refuse(404), balance, 500],
]

it.each(cases)('suggestedStatus follows the documented table: %s', async (_what, prepare, call, status) => {
  const lab = new Lab()
  prepare(lab)
  expect(suggestedStatus(await failure(call(lab.client({ maxRetries: 0 }))))).toBe(status)
})

it('suggestedStatus is 500 for an error of another package', () => {
  for (const thrown of [new Error('mine'), undefined, null, 'text', { code: 'timeout', charged: 'no' }])
    expect(suggestedStatus(thrown)).toBe(500)
})
