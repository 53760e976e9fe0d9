import { RedisStore } from 'customer-ordering-sdk/stores/redis'
import { it } from 'vitest'
import { expectOneWinner, race } from '../support/race.ts'
import { describeWith, RedisServers } from '../support/redis.ts'
import { connect } from '../support/redis-clients.ts'

const prefix = 'fleet:'

describeWith('server', 'RedisStore and a fleet of processes', () => {
  it.each(['single', 'cluster'] as const)(
    'that race for 200 rows of a %s, are killed, and live through the crash of the servers: each row has one winner',
    async (kind) => {
      const servers = await RedisServers.start(kind, '--appendfsync', 'always')
      try {
        const seen = await race(['redis', servers.ports.join(), prefix], () => servers.crash())
        const { client, close } = await connect('ioredis', servers.ports)
        await expectOneWinner(seen, new RedisStore({ client, prefix })).finally(close)
      } finally {
        await servers.stop()
      }
    },
  )
})
