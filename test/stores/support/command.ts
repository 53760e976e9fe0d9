import { expect } from 'vitest'
import { CustomerOrderingClient } from '../../../src/client.ts'
import { serveSandbox } from '../../../src/sandbox/http/server.ts'
import { createSandbox } from '../../../src/sandbox/index.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { type Ran, runHere } from '../../command/terminal.ts'
import { failure, order } from '../../support/lab.ts'

export async function command(
  line: string,
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const service = {
    CUSTOMER_ORDERING_BASE_URL: 'http://127.0.0.1:1',
    CUSTOMER_ORDERING_API_KEY: 'key-of-nobody-at-all',
  }
  return await runHere(line.split(' '), { folder, env: { ...service, ...env } })
}

/**
 * Checks that the command finds an order in doubt in a program's store, recovers it, and leaves no
 * order open.
 */
export async function settlesThroughCommand(store: OrderStore, flags: string, folder: string): Promise<void> {
  const sandbox = createSandbox()
  const service = await serveSandbox(sandbox)
  try {
    const account = `shop-${Math.random()}`
    const { apiKey } = sandbox
    const client = new CustomerOrderingClient({ baseUrl: service.url, apiKey, account, store, maxRetries: 0 })
    sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
    await failure(client.orders.create(order('in-doubt')))

    const env = { CUSTOMER_ORDERING_BASE_URL: service.url, CUSTOMER_ORDERING_API_KEY: apiKey }
    const on = (name: string) => command(`${name} ${flags} --account ${account}`, folder, env)
    const listed = await on('unresolved --json')
    expect([listed.code, listed.err]).toEqual([3, ''])
    expect(JSON.parse(listed.out)).toMatchObject({ externalOrderId: 'in-doubt', ambiguous: true })
    const mistyped = await command(`unresolved ${flags} --account nobody`, folder, env)
    expect(mistyped).toMatchObject({ code: 2, out: 'none\n' })
    expect(mistyped.err).toContain(JSON.stringify([service.url, account]))
    const recovered = await on('recover --yes --json --safe-retry-window 1200000')
    expect(recovered.code).toBe(0)
    expect(recovered.err).toContain(`service ${service.url}, account ${account}, store `)
    expect(JSON.parse(recovered.out)).toMatchObject({ outcome: 'created' })
    expect(await on('unresolved')).toMatchObject({ code: 0, out: 'none\n', err: '' })
    sandbox.expectChargedOnce('in-doubt')
  } finally {
    await service.close()
  }
}

/** Checks that the command fails if no server listens at this address, and prints no password. */
export async function failsWithoutServer(address: string, folder: string): Promise<void> {
  const { code, out, err } = await command(`unresolved --store ${address} --account shop`, folder)
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toMatch(/^customer-ordering-sdk: /)
  expect(err).not.toContain('secret-word')
}

/** Checks that the command finds no order store at this address, whatever it should do there. */
export async function findsNoStore(address: string, folder: string): Promise<void> {
  for (const line of ['unresolved', 'recover --yes --safe-retry-window 1200000']) {
    const { code, out, err } = await command(`${line} --store ${address} --account shop`, folder)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain('has no order store: it lacks the table customer_ordering_rows. Check --store.')
  }
}
