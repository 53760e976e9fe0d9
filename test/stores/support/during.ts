/** Servers and databases that run during the tests of a `describe`. */
import { afterAll, beforeAll } from 'vitest'
import { RedisServers } from './redis.ts'
import { HOOK_TIMEOUT, SqlServer } from './sql-server.ts'

/** What `start` resolves to, from before the first test of a `describe` until after its last. */
export function during<T>(start: () => Promise<T>, stop: (started: T) => unknown): () => T {
  let running: { readonly value: T } | undefined
  beforeAll(async () => {
    running = { value: await start() }
  }, HOOK_TIMEOUT)
  afterAll(async () => {
    if (running !== undefined) await stop(running.value)
  }, HOOK_TIMEOUT)
  return () => {
    if (running === undefined) throw new Error('not started')
    return running.value
  }
}

/** Two of them, for tests in which two clients have the same rows. */
export const two = <T>(open: () => T | Promise<T>, end: (one: T) => unknown): (() => readonly [T, T]) =>
  during(
    async () => [await open(), await open()] as const,
    (opened) => Promise.all(opened.map(end)),
  )

export const sqlServer = (...parameters: Parameters<typeof SqlServer.start>): (() => SqlServer) =>
  during(
    () => SqlServer.start(...parameters),
    (server) => server.stop(),
  )

export const redisServers = (...settings: Parameters<typeof RedisServers.start>): (() => RedisServers) =>
  during(
    () => RedisServers.start(...settings),
    (servers) => servers.stop(),
  )
