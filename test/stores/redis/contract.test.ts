import { describe } from 'vitest'
import { RedisStore } from '../../../src/stores/redis.ts'
import { contractOver } from '../support/contract-over.ts'
import { redisServers, two } from '../support/during.ts'
import { CLIENTS, connect } from '../support/redis-clients.ts'
import { describeWith } from '../support/services.ts'

describeWith('redis', 'RedisStore', () => {
  describe.each(['single', 'cluster'] as const)('on a %s of Redis', (kind) => {
    const servers = redisServers(kind)

    describe.each(CLIENTS)('through %s', (name) => {
      const connections = two(
        () => connect(name, servers().ports),
        (connection) => connection.close(),
      )
      contractOver(
        connections,
        ({ client }, number) => new RedisStore({ client, prefix: `${name} ${number}:` }),
      )
    })
  })
})
