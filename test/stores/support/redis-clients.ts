import type { IoredisClient, NodeRedisClient, RedisClient } from '../../../src/stores/redis.ts'
import { engine } from './engines.ts'

/** The part of node-redis that the tests use. Its types are not installed with the project. */
export interface NodeRedis extends NodeRedisClient {
  on(event: 'error', listener: (error: Error) => void): this
  connect(): Promise<this>
  destroy(): void
  withTypeMapping(mapping: Readonly<Record<number, unknown>>): NodeRedis
}

interface NodeRedisModule {
  createClient(options: object): NodeRedis
  createClientPool(options: object, poolOptions: object): NodeRedis
  createCluster(options: object): NodeRedis
  readonly RESP_TYPES: { readonly BLOB_STRING: number }
}

/** The part of ioredis that the tests use. */
export interface Ioredis extends IoredisClient {
  on(event: 'error', listener: (error: Error) => void): this
  connect(): Promise<void>
  disconnect(): void
  multi(options: { readonly pipeline: false }): Promise<unknown>
  call(command: string, ...parameters: (string | number)[]): Promise<unknown>
}

interface IoredisModule {
  readonly Redis: new (options: object) => Ioredis
  readonly default: new (options: object) => Ioredis
  readonly Cluster: new (nodes: readonly object[], options?: object) => Ioredis
}

export const nodeRedis = (name: 'redis' | 'redis-5' = 'redis'): NodeRedisModule => engine(name)
export const ioredis = (name: 'ioredis' | 'ioredis-5' = 'ioredis'): IoredisModule => engine(name)

export interface Connection {
  readonly client: RedisClient
  close(): void
}

export const CLIENTS = ['node-redis', 'ioredis'] as const
export type ClientName = (typeof CLIENTS)[number]

/**
 * Connects to the servers with these ports: to one with a plain client, to several with a cluster
 * client.
 */
export async function connect(
  name: ClientName,
  ports: readonly number[],
  options: Readonly<Record<string, unknown>> = {},
): Promise<Connection> {
  const nodes = ports.map((port) => ({ host: '127.0.0.1', port }))
  const alone = nodes.length === 1
  if (name === 'ioredis') {
    const { Redis, Cluster } = ioredis()
    const client = alone ? new Redis({ ...nodes[0], ...options }) : new Cluster(nodes, options)
    client.on('error', () => {})
    return { client, close: () => client.disconnect() }
  }
  const client = alone
    ? nodeRedis().createClient({ socket: nodes[0], ...options })
    : nodeRedis().createCluster({ rootNodes: nodes.map((socket) => ({ socket })), ...options })
  await client.on('error', () => {}).connect()
  return { client, close: () => client.destroy() }
}
