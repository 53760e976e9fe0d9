import { StoreError } from '../../errors/classes.ts'
import { hasMethod } from '../options.ts'
import { toText } from '../strings.ts'
import type { Script } from './scripts.ts'

/** Parameters of a script, in the form that node-redis accepts. */
export interface NodeRedisScriptOptions {
  /** Keys that the script uses. */
  keys: string[]
  /** Other parameters of the script. */
  arguments: string[]
}

interface Connecting {
  on?(event: string, listener: () => void): unknown
  off?(event: string, listener: () => void): unknown
}

/**
 * The part of node-redis that the store uses: a client, a pool, a cluster or a sentinel of the
 * package `redis`.
 */
export interface NodeRedisClient extends Connecting {
  /** Runs a script. */
  eval(script: string, options: NodeRedisScriptOptions): Promise<unknown>
  /** Runs the script with this SHA-1 digest from the server's cache. */
  evalSha(sha1: string, options: NodeRedisScriptOptions): Promise<unknown>
}

/** The part of ioredis that the store uses: a `Redis` or a `Cluster`. */
export interface IoredisClient extends Connecting {
  /** Runs a script. */
  eval(script: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>
  /** Runs the script with this SHA-1 digest from the server's cache. */
  evalsha(sha1: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>
}

/** A client that the store accepts. */
export type RedisClient = NodeRedisClient | IoredisClient

export type Evaluate = (
  script: Script,
  keys: readonly string[],
  parameters: readonly string[],
) => Promise<string[]>

/**
 * Events that report a new connection: `ready` in both packages; for a node of a cluster,
 * `node-ready` in node-redis and `+node` in ioredis.
 */
const CONNECTED = ['ready', 'node-ready', '+node'] as const

/** Returns a function that removes the listener. */
export function onConnected(client: RedisClient, listener: () => void): () => void {
  for (const event of CONNECTED) client.on?.(event, listener)
  return () => {
    for (const event of CONNECTED) client.off?.(event, listener)
  }
}

/**
 * The store sends only scripts, even to read: some clients send other reads to replicas, which may
 * lag behind.
 *
 * @param beforeLoading called before a script is sent to a server that has not cached it: this may
 * be a different server, which the store must inspect first
 */
export function evaluateWith(
  client: RedisClient,
  beforeLoading: (script: Script, keys: readonly string[]) => Promise<void>,
): Evaluate {
  const send = senderOf(client)
  return async (script, keys, parameters) => {
    const sha1 = await script.sha1()
    let reply: unknown
    try {
      reply = await send('sha1', sha1, keys, parameters)
    } catch (error) {
      // The server has not cached the script, for example after a restart, and has run nothing.
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      await beforeLoading(script, keys)
      reply = await send('text', script.text, keys, parameters)
    }
    return textsOf(reply)
  }
}

type Send = (
  by: 'sha1' | 'text',
  script: string,
  keys: readonly string[],
  parameters: readonly string[],
) => Promise<unknown>

function senderOf(client: RedisClient): Send {
  if (hasMethod(client, 'evalSha') && 'evalSha' in client) {
    return (by, script, keys, parameters) => {
      const options = { keys: [...keys], arguments: [...parameters] }
      return by === 'sha1' ? client.evalSha(script, options) : client.eval(script, options)
    }
  }
  if (hasMethod(client, 'evalsha') && 'evalsha' in client) {
    return (by, script, keys, parameters) =>
      by === 'sha1'
        ? client.evalsha(script, keys.length, ...keys, ...parameters)
        : client.eval(script, keys.length, ...keys, ...parameters)
  }
  throw new StoreError(
    'The option `client` of RedisStore must be a client of node-redis (the package `redis`) or of ioredis, ' +
      'or a cluster of either.',
  )
}

/** Some clients are configured to return bytes instead of strings. */
function textsOf(reply: unknown): string[] {
  if (Array.isArray(reply)) {
    const texts: unknown[] = reply.map(toText)
    if (texts.every((text) => typeof text === 'string')) return texts
  }
  throw new StoreError(
    'The Redis client returned something that is not the result of a script. If the call was a write, ' +
      'it may have happened. Pass a client that is not inside a transaction, and does not transform replies.',
  )
}
