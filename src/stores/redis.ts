import { StoreError } from '../errors/classes.ts'
import { type Engine, EngineStore, type Operation, type Result, type Values } from './engine.ts'
import { given } from './options.ts'
import { type Evaluate, evaluateWith, onConnected, type RedisClient } from './redis/client.ts'
import { REDIS_FAILURES } from './redis/failures.ts'
import { inspect, type Vouched } from './redis/inspection.ts'
import { ENTRY_TIME_LENGTH, fromStored, headOf, keysOf, type ScopeKeys, timeText } from './redis/rows.ts'
import { GET, INSERT, INSPECT, MARK_LENGTH, PAGE, PRUNE, UPDATE } from './redis/scripts.ts'
import { foreignRow } from './rows.ts'
import type { StoreDurability, StoredRow } from './store.ts'
import { makeMark, storable } from './strings.ts'

export type { EngineStore } from './engine.ts'
export type { IoredisClient, NodeRedisClient, NodeRedisScriptOptions, RedisClient } from './redis/client.ts'

/** Options of {@link RedisStore}. */
export interface RedisStoreOptions {
  /**
   * A connected client, pool, cluster or sentinel of node-redis, or a `Redis` or `Cluster` of
   * ioredis.
   *
   * You can use the client for other commands, too. The store never closes it.
   */
  readonly client: RedisClient
  /** Prefix of all keys of the store, without braces. Default `'customer-ordering:'`. */
  readonly prefix?: string
  /**
   * `'check'` (default) rejects a server without an append-only file.
   *
   * With `'assume'`, you vouch that the server persists every write, as some managed services do
   * although their `INFO` does not show it.
   */
  readonly persistence?: 'check' | 'assume'
  /**
   * `'check'` (default) rejects a server that may evict the store's keys when its memory is full.
   *
   * With `'assume'`, you vouch that the server never evicts them.
   */
  readonly eviction?: 'check' | 'assume'
}

/** In milliseconds. Inspections expire, because the server's settings may change. */
const INSPECTION_LIFETIME = 60 * 60 * 1000

// A script blocks the server until it ends. These limits keep each script short.
const PRUNE_BATCH = 200
const MOST_BYTES = 4 * 2 ** 20

/**
 * Remembers orders in Redis, for all machines that share it.
 *
 * Every read or write of a row is one script, which Redis runs without interruption, so exactly one
 * of several racing writers wins. All rows of one account share a cluster slot. No key of the store
 * ever expires.
 *
 * Redis acknowledges a write before its replicas have received it, so a failover can lose the most
 * recent orders. A crash of the server can lose them too, unless `appendfsync` is `always`. Give
 * every order an `externalOrderId`, so that its key can be computed again.
 *
 * Before its first call for an account, the store checks that the server is a primary, has an
 * append-only file, and evicts no keys of the store. If a check fails, the call rejects. The checks
 * run again every hour, after every new connection that the client reports, and after a restart of
 * the server. If both `persistence` and `eviction` are `'assume'`, the store checks nothing before a
 * call. Every call, even a read, begins with a write that changes nothing, which a replica rejects.
 *
 * @example
 * const client = await createClient({ url }).on('error', log).connect()
 * const store = new RedisStore({ client })
 */
export class RedisStore extends EngineStore {
  /**
   * Creates the store. Sends nothing to the server.
   *
   * @throws {StoreError} if an option is wrong
   */
  constructor(options: RedisStoreOptions) {
    const {
      client,
      prefix = 'customer-ordering:',
      persistence,
      eviction,
    }: RedisStoreOptions = given('RedisStore', options, {
      client: true,
      prefix: true,
      persistence: true,
      eviction: true,
    })
    if (typeof prefix !== 'string' || /[{}]/.test(prefix)) {
      throw new StoreError('The option `prefix` of RedisStore must be a string without braces.')
    }
    const vouched = {
      persistence: isAssumed('persistence', persistence),
      eviction: isAssumed('eviction', eviction),
    }
    super('RedisStore', new RedisEngine(client, storable(prefix), vouched))
  }
}

class RedisEngine implements Engine {
  readonly durability: StoreDurability = 'server'
  readonly failures = REDIS_FAILURES
  readonly #evaluate: Evaluate
  readonly #prefix: string
  readonly #vouched: Vouched
  /** By a key of the scope: in a cluster, scopes are on servers with settings of their own. */
  readonly #inspections = new Map<string, { readonly passed: Promise<void>; readonly at: number }>()
  readonly close: () => void

  constructor(client: RedisClient, prefix: string, vouched: Vouched) {
    this.#evaluate = evaluateWith(client, async (script, [key]) => {
      if (script === INSPECT || key === undefined || this.#trusted) return
      this.#inspections.clear()
      await this.#inspect(key)
    })
    this.#prefix = prefix
    this.#vouched = vouched
    // A new connection may lead to another server, for example after a failover, so the next call
    // inspects the server again.
    this.close = onConnected(client, () => this.#inspections.clear())
  }

  async run(operation: Operation, values: Values): Promise<Result> {
    const { scope, id = '', since = 0, before = 0, state = 'created' } = values
    const keys = keysOf(this.#prefix, scope)
    await this.#inspected(keys.list)
    switch (operation) {
      case 'get': {
        const [text] = await this.#evaluate(GET, [keys.row(id)], [])
        return { written: 0, rows: text === undefined ? [] : [fromStored(scope, id, text)] }
      }
      case 'insert':
      case 'update':
        return await this.#write(operation, keys, values)
      case 'open':
        return await this.#page('open', keys, values, id === '' ? '-' : `(${id}`)
      case 'list':
        return await this.#page('list', keys, values, `(${timeText(since)} ${id}`)
      case 'prune': {
        const parameters = [timeText(before), String(PRUNE_BATCH), state]
        const [found, removed] = await this.#evaluate(PRUNE, [keys.list, keys[state]], parameters)
        return { written: Number(removed), rows: [], more: Number(found) === PRUNE_BATCH }
      }
    }
  }

  async #write(operation: 'insert' | 'update', keys: ScopeKeys, values: Values): Promise<Result> {
    const { scope, id = '', data = '' } = values
    const { row, list, open, created, rejected } = keys
    const parameters = [id, makeMark((MARK_LENGTH * 3) / 4), headOf(values), data]
    if (operation === 'update') parameters.push(String(values.expected))
    const script = operation === 'insert' ? INSERT : UPDATE
    const [result, found] = await this.#evaluate(script, [row(id), list, open, created, rejected], parameters)
    if (result === 'written') return { written: 1, rows: [] }
    if (result === 'other') return { written: 0, rows: [] }
    if (result !== 'found' || found === undefined) throw foreignRow()
    return { written: 0, rows: [fromStored(scope, id, found)] }
  }

  async #page(index: 'open' | 'list', keys: ScopeKeys, values: Values, from: string): Promise<Result> {
    const idAt = index === 'list' ? ENTRY_TIME_LENGTH + 1 : 1
    // The script itself reads one entry beyond the limit.
    const parameters = [index, from, (values.limit ?? 1) - 1, MOST_BYTES, idAt].map(String)
    const [next, ...found] = await this.#evaluate(PAGE, [keys[index]], parameters)
    const rows: StoredRow[] = []
    for (let at = 0; at < found.length; at += 2)
      rows.push(fromStored(values.scope, found[at] ?? '', found[at + 1] ?? ''))
    return next ? { written: 0, rows, next } : { written: 0, rows }
  }

  #inspected(key: string): Promise<void> | undefined {
    if (this.#trusted) return undefined
    const at = performance.now()
    const done = this.#inspections.get(key)
    if (done !== undefined && at - done.at < INSPECTION_LIFETIME) return done.passed
    const inspection = { passed: this.#inspect(key), at }
    this.#inspections.set(key, inspection)
    inspection.passed.catch(() => {
      // The next call repeats a failed inspection.
      if (this.#inspections.get(key) === inspection) this.#inspections.delete(key)
    })
    return inspection.passed
  }

  #inspect(key: string): Promise<void> {
    return inspect(async () => (await this.#evaluate(INSPECT, [key], []))[0] ?? '', this.#vouched)
  }

  get #trusted(): boolean {
    return this.#vouched.persistence && this.#vouched.eviction
  }
}

function isAssumed(name: string, value: unknown): boolean {
  if (value === undefined || value === 'check') return false
  if (value === 'assume') return true
  throw new StoreError(`The option \`${name}\` of RedisStore must be 'check' or 'assume'.`)
}
