import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { RedisStore } from 'customer-ordering-sdk/stores/redis'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { describeWith, RedisServers } from '../support/redis.ts'
import { type ClientName, type Connection, connect } from '../support/redis-clients.ts'

describeWith('server', 'RedisStore', () => {
  describe.each(['single', 'cluster'] as const)('on a %s of Redis', (kind) => {
    let servers: RedisServers | undefined
    beforeAll(async () => {
      servers = await RedisServers.start(kind)
    })
    afterAll(() => servers?.stop())

    describe.each<ClientName>(['node-redis', 'ioredis'])('through %s', (name) => {
      /** Two ways to the same rows. */
      let connections: Connection[] = []
      beforeAll(async () => {
        const ports = servers?.ports ?? []
        connections = [await connect(name, ports), await connect(name, ports)]
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
      })
    })
  })
})
