import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { RedisStore } from 'customer-ordering-sdk/stores/redis'
import { afterAll, beforeAll, describe, it } from 'vitest'
import type { Connection } from './redis-clients.ts'

/** The store contract with two connections to the same rows. */
export function contractOver(
  name: string,
  connect: () => Promise<Connection>,
  history: { readonly clients: number; readonly operations: number } | undefined,
): void {
  let connections: Connection[] = []
  beforeAll(async () => {
    connections = [await connect(), await connect()]
  })
  afterAll(() => {
    for (const connection of connections) connection.close()
  })

  let stores = 0
  const open = (which: number): RedisStore => {
    const client = connections[which]?.client
    if (client === undefined) throw new Error('not connected')
    return new RedisStore({ client, prefix: `${name} ${stores}:` })
  }
  storeContract({
    test: { describe, it },
    createStore: () => {
      stores++
      return open(0)
    },
    openSecond: () => open(1),
    reopenStore: () => open(1),
    ...(history && { history }),
  })
}
