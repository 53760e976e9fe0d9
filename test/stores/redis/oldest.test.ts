import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { type RedisClient, RedisStore } from 'customer-ordering-sdk/stores/redis'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { describeWith, RedisServers } from '../support/redis.ts'
import { ioredis, nodeRedis } from '../support/redis-clients.ts'

/** The other tests run the newest. Before 5.9, node-redis garbles long replies that are not ASCII. */
const OLDEST = {
  'node-redis 5.9': async (port: number) => {
    const options = { socket: { host: '127.0.0.1', port } }
    const client = await nodeRedis('redis-5')
      .createClient(options)
      .on('error', () => {})
      .connect()
    return { client, close: () => client.destroy() }
  },
  'ioredis 5.0': async (port: number) => {
    // It has no export of the name `Redis` yet.
    const client = new (ioredis('ioredis-5').default)({ host: '127.0.0.1', port }).on('error', () => {})
    return { client, close: () => client.disconnect() }
  },
}

describeWith('server', 'RedisStore over the oldest clients that it supports', () => {
  let servers: RedisServers
  beforeAll(async () => {
    servers = await RedisServers.start('single')
  })
  afterAll(() => servers.stop())

  describe.each(Object.entries(OLDEST))('%s', (name, connect) => {
    let connections: { readonly client: RedisClient; close(): void }[] = []
    beforeAll(async () => {
      connections = [await connect(servers.port), await connect(servers.port)]
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
      history: { clients: 8, operations: 60 },
    })
  })
})
