import { describe } from 'vitest'
import { RedisStore } from '../../../src/stores/redis.ts'
import { contractOver } from '../support/contract-over.ts'
import { redisServers, two } from '../support/during.ts'
import { CLIENTS, type Connection, connect, ioredis, nodeRedis } from '../support/redis-clients.ts'
import { describeWith } from '../support/services.ts'

/**
 * The oldest clients that the store supports. Before 5.9, node-redis corrupts long replies that are
 * not ASCII.
 */
const OLDEST = {
  'node-redis 5.9': async (port: number) => {
    const socket = { host: '127.0.0.1', port }
    const client = nodeRedis('redis-5').createClient({ socket })
    await client.on('error', () => {}).connect()
    return { client, close: () => client.destroy() }
  },
  'ioredis 5.0': async (port: number) => {
    // This version has no export named `Redis` yet.
    const client = new (ioredis('ioredis-5').default)({ host: '127.0.0.1', port }).on('error', () => {})
    return { client, close: () => client.disconnect() }
  },
}

describeWith('redis', 'RedisStore', () => {
  describe.each(['single', 'cluster'] as const)('on a %s of Redis', (kind) => {
    const servers = redisServers(kind)

    function through(name: string, open: () => Promise<Connection>, operations?: number): void {
      describe(`through ${name}`, () => {
        const connections = two(open, (connection) => connection.close())
        contractOver(
          connections,
          ({ client }, number) => new RedisStore({ client, prefix: `${name} ${number}:` }),
          operations === undefined ? {} : { operations },
        )
      })
    }

    for (const name of CLIENTS) through(name, () => connect(name, servers().ports))
    if (kind === 'single')
      for (const [name, open] of Object.entries(OLDEST)) through(name, () => open(servers().port), 60)
  })
})
