import { describe } from 'vitest'
import { RedisStore } from '../../../src/stores/redis.ts'
import { contractOver } from '../support/contract-over.ts'
import { redisServers, two } from '../support/during.ts'
import { type Connection, ioredis, nodeRedis } from '../support/redis-clients.ts'
import { describeWith } from '../support/services.ts'

/**
 * Other tests use the newest clients. Before 5.9, node-redis corrupts long replies that are not
 * ASCII.
 */
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
    // This version has no export named `Redis` yet.
    const client = new (ioredis('ioredis-5').default)({ host: '127.0.0.1', port }).on('error', () => {})
    return { client, close: () => client.disconnect() }
  },
}

describeWith('redis', 'RedisStore over the oldest clients that it supports', () => {
  const servers = redisServers('single')

  describe.each(Object.entries(OLDEST))('%s', (name, connect) => {
    const connections = two<Connection>(
      () => connect(servers().port),
      (connection) => connection.close(),
    )
    const open = ({ client }: Connection, number: number) =>
      new RedisStore({ client, prefix: `${name} ${number}:` })
    contractOver(connections, open, { operations: 60 })
  })
})
