import type { ClientOptions, CustomerOrderingClient, OrderStore } from 'customer-ordering-sdk'
import { describe, expect, test } from 'vitest'
import { throwing } from '../../support/calls.ts'
import { Lab, order as orderOf } from '../../support/lab.ts'

/** A store that cannot be reached. */
const down = async (): Promise<never> => throwing('down')()
const BROKEN = {
  durability: 'memory',
  ...{ get: down, insert: down, update: down, prune: down, listOpen: down, list: down, close: down },
} as unknown as OrderStore

const NAME = { externalOrderId: 'r1' }
const order = orderOf('r1')
type Client = CustomerOrderingClient

const silent = (): Promise<Response> => new Promise(() => {})

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
  'orders.resolve': async ({ orders }) => await orders.resolve(NAME, { as: 'created', orderId: 'o' }),
  'orders.resolve, abandoned': async ({ orders }) => await orders.resolve(NAME, { as: 'abandoned' }),
  'orders.forget': async ({ orders }) => await orders.forget(NAME),
}

/** Calls that reject before they begin. */
const closed: typeof refused = {
  ...refused,
  ...stored,
  'orders.createMany, awaited': async ({ orders }) => await orders.createMany([order]),
  'orders.createMany, iterated': async ({ orders }) => await through(orders.createMany([order])),
}

/** Calls whose request is cut by a time limit or a signal. */
const late: typeof refused = {
  'orders.create': async ({ orders }) => await orders.create(order, { timeout: 1 }),
  'orders.retrieve': async ({ orders }) => await orders.retrieve('o', { timeout: 1 }),
  'orders.list, iterated': async ({ orders }) => await through(orders.list({}, { timeout: 1 })),
  'orders.create, aborted': async ({ orders }) => await orders.create(order, { signal: AbortSignal.abort() }),
  'orders.retrieve, aborted': async ({ orders }) =>
    await orders.retrieve('o', { signal: AbortSignal.abort() }),
}

/** Calls with an argument that is refused. */
const wrong: typeof refused = {
  'orders.create': async ({ orders }) => await orders.create({ ...order, quantity: 0 }),
  'orders.create, options': async ({ orders }) => await orders.create(order, { timeout: -1 }),
  'orders.retrieve': async ({ orders }) => await orders.retrieve(''),
  'orders.list': async ({ orders }) => await orders.list({ limit: 0 }),
  'orders.list().toArray()': async ({ orders }) => await orders.list().toArray({ max: 0 }),
  'orders.forget': async ({ orders }) => await orders.forget({ externalOrderId: '' }),
}

/** A client of a service that refuses everything. */
function client(options: ClientOptions = {}): Client {
  const lab = new Lab()
  lab.fault({ type: 'status', status: 404 }, 'always')
  return lab.client({ maxRetries: 0, ...options })
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
  ['the call ends early', late, { fetch: silent }],
  ['an argument is wrong', wrong, {}],
])('if %s', (_why, calls, options) => {
  test.each(Object.entries(calls))('the stack trace of %s has the line of the caller', async (_, call) => {
    const stack = await stackOf(() => call(client(options)))
    expect(stack).toContain('stacks.test.ts')
    expect(stack.split('\n').length).toBeLessThanOrEqual(11)
  })
})

test.each(Object.entries(closed))('the stack trace of %s has that line after close()', async (_, call) => {
  const ended = client()
  await ended.close()
  expect(await stackOf(() => call(ended))).toContain('stacks.test.ts')
})
