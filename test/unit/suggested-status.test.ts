import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { describe, expect, it } from 'vitest'
import { CustomerOrderingClient } from '../../src/client.ts'
import { suggestedStatus } from '../../src/suggested-status.ts'
import { failure, order } from '../support/lab.ts'

type Sandbox = ReturnType<typeof createSandbox>
type Client = CustomerOrderingClient

const refuse = (status: number) => (sandbox: Sandbox) =>
  void sandbox.faults.add({ action: { type: 'status', status: status as 500 } })
const fault = (type: 'commitThenDrop' | 'drop') => (sandbox: Sandbox) =>
  void sandbox.faults.add({ action: { type } })

const create = (client: Client, changes: Parameters<typeof order>[1] = {}) =>
  client.orders.create(order('r1', changes))
const balance = (client: Client) => client.balance.retrieve()
const nothing = () => {}

const cases: readonly [string, (sandbox: Sandbox) => void, (client: Client) => Promise<unknown>, number][] = [
  ['the response to an order is lost', fault('commitThenDrop'), create, 202],
  ['an order ends in a 500', refuse(500), create, 202],
  ['the wallet is empty', (sandbox) => sandbox.setBalance(sandbox.customerId, 0), create, 402],
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
  ['the API key is revoked', (sandbox) => sandbox.revokeApiKey(sandbox.apiKey), create, 500],
  ['there are too many requests', refuse(429), balance, 503],
  ['a read ends in a 500', refuse(500), balance, 502],
  ['a read is lost', fault('drop'), balance, 503],
  ['an order is not there', nothing, (client) => client.orders.retrieve('none'), 404],
  ['a wallet is not there', refuse(404), balance, 500],
]

describe('suggestedStatus', () => {
  it.each(cases)('suggestedStatus follows the documented table: %s', async (_what, prepare, call, status) => {
    const sandbox = createSandbox()
    const { baseUrl, apiKey, fetch } = sandbox
    const client = new CustomerOrderingClient({ baseUrl, apiKey, fetch, account: 'shop', maxRetries: 0 })
    prepare(sandbox)
    expect(suggestedStatus(await failure(call(client)))).toBe(status)
  })

  it('suggestedStatus is 500 for an error of another package', () => {
    for (const thrown of [new Error('mine'), undefined, null, 'text', { code: 'timeout', charged: 'no' }])
      expect(suggestedStatus(thrown)).toBe(500)
  })
})
