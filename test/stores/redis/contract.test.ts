import { afterAll, beforeAll, describe } from 'vitest'
import { RedisServers } from '../support/redis.ts'
import { type ClientName, connect } from '../support/redis-clients.ts'
import { contractOver } from '../support/redis-contract.ts'
import { describeWith } from '../support/services.ts'

describeWith('redis', 'RedisStore', () => {
  describe.each(['single', 'cluster'] as const)('on a %s of Redis', (kind) => {
    let servers: RedisServers | undefined
    beforeAll(async () => {
      servers = await RedisServers.start(kind)
    })
    afterAll(() => servers?.stop())

    describe.each<ClientName>(['node-redis', 'ioredis'])('through %s', (name) => {
      contractOver(name, () => connect(name, servers?.ports ?? []), undefined)
    })
  })
})
