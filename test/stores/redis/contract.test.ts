import { describe } from 'vitest'
import { redisServers } from '../support/during.ts'
import { CLIENTS, connect } from '../support/redis-clients.ts'
import { contractOver } from '../support/redis-contract.ts'
import { describeWith } from '../support/services.ts'

describeWith('redis', 'RedisStore', () => {
  describe.each(['single', 'cluster'] as const)('on a %s of Redis', (kind) => {
    const servers = redisServers(kind)

    describe.each(CLIENTS)('through %s', (name) => {
      contractOver(name, () => connect(name, servers().ports), undefined)
    })
  })
})
