import { type ClientOptions, CustomerOrderingClient, type OrderStore } from 'customer-ordering-sdk'
import { describe, expect, test } from 'vitest'
import { fakeRuntime } from '../../support/runtime.ts'
import { throwing } from '../../support/throwing.ts'

/** A store that cannot be reached. */
const down = async (): Promise<never> => throwing('down')()
const BROKEN = {
  durability: 'memory',
  ...{ get: down, insert: down, update: down, prune: down, listOpen: down, list: down, close: down },
} as unknown as OrderStore

const order = { serviceId: 's', target: 't', quantity: 1, metadata: { externalOrderId: 'r1' } }
type Client = CustomerOrderingClient

async function through(items: AsyncIterable<unknown>): Promise<void> {
  for await (const item of items) expect(item).toBeDefined()
}

/** Calls that reject because the service refuses them. */
const refused: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  'orders.create': async ({ orders }) => await orders.create(order),
  'orders.retrieve': async ({ orders }) => await orders.retrieve('o'),
  'orders.list, awaited': async ({ orders }) => await orders.list(),
  'orders.list, iterated': async ({ orders }) => await through(orders.list()),
  'orders.list().pages()': async ({ orders }) => await through(orders.list().pages()),
  'orders.list().toArray()': async ({ orders }) => await orders.list().toArray({ max: 3 }),
  'orders.waitFor': async ({ orders }) => await orders.waitFor('o', { until: () => true }),
  'orders.reconcile, awaited': async ({ orders }) => await orders.reconcile(),
  'orders.reconcile, iterated': async ({ orders }) => await through(orders.reconcile()),
  'services.list': async ({ services }) => await services.list(),
  'services.retrieve': async ({ services }) => await services.retrieve('x'),
  'balance.retrieve': async ({ balance }) => await balance.retrieve(),
  request: async (client) => await client.request({ method: 'GET', path: '/x' }),
}

/** Calls that reject because their store cannot be reached. */
const stored: typeof refused = {
  'orders.create': async ({ orders }) => await orders.create(order),
  'orders.remembered, awaited': async ({ orders }) => await orders.remembered({ since: 0 }),
  'orders.remembered, iterated': async ({ orders }) => await through(orders.remembered({ since: 0 })),
  'orders.unresolved, awaited': async ({ orders }) => await orders.unresolved(),
  'orders.unresolved, iterated': async ({ orders }) => await through(orders.unresolved()),
  'orders.recover, awaited': async ({ orders }) => await orders.recover(),
  'orders.recover, iterated': async ({ orders }) => await through(orders.recover()),
  'orders.reconcile': async ({ orders }) => await orders.reconcile(),
}

function client(options: ClientOptions = {}): Client {
  const fetch = async (): Promise<Response> =>
    new Response('{"code":"X","message":"m"}', {
      status: 404,
      headers: { 'content-type': 'application/json' },
    })
  const base = { baseUrl: 'https://api.example.com', apiKey: 'k', fetch, maxRetries: 0 }
  // These tests run in browsers, too.
  const settings = { ...base, dangerouslyAllowBrowser: true, ...options }
  return new CustomerOrderingClient(settings, fakeRuntime({ auto: true }))
}

async function stackOf(call: () => Promise<unknown>): Promise<string> {
  try {
    await call()
  } catch (error) {
    return error instanceof Error ? String(error.stack) : ''
  }
  throw new Error('the call succeeded')
}

describe.each([
  ['the service refuses', refused, {}],
  ['the store cannot be reached', stored, { store: BROKEN }],
])('if %s', (_why, calls, options) => {
  test.each(Object.entries(calls))(
    'the stack trace of %s contains the line of the caller',
    async (_name, call) => {
      const stack = await stackOf(() => call(client(options)))
      expect(stack).toContain('stacks.test.ts')
      // The default of V8 is ten lines.
      expect(stack.split('\n').length).toBeLessThanOrEqual(11)
    },
  )
})
