import { StoreError } from '../errors/classes.ts'
import { type Evaluate, evaluateWith, onConnected, type RedisClient } from './redis/client.ts'
import { explain } from './redis/failures.ts'
import { type Inspected, inspect, type Vouched } from './redis/inspection.ts'
import {
  ENTRY_TIME_LENGTH,
  foreignRow,
  headOf,
  keysOf,
  type ScopeKeys,
  timeText,
  toRow,
} from './redis/rows.ts'
import { GET, INSERT, INSPECT, MARK_LENGTH, PAGE, PRUNE, UPDATE } from './redis/scripts.ts'
import { storable } from './storable.ts'
import type {
  InsertResult,
  ListRowsOptions,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from './store.ts'
import { UncertainWrites } from './uncertain-writes.ts'

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

const DEFAULT_PREFIX = 'customer-ordering:'

/** In milliseconds. Inspections expire, because the server's settings may change. */
const INSPECTION_LIFETIME = 60 * 60 * 1000

// A script blocks the server until it ends. These limits keep each script short.
const PRUNE_BATCH = 200
const MOST_ROWS = 1_000
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
 * Every failure is a `StoreError` that explains what happened and what to do. Its `cause`, if any,
 * is a plain error with the server's or the client's code, for example `OOM`.
 *
 * @example
 * const client = await createClient({ url }).on('error', log).connect()
 * const store = new RedisStore({ client })
 */
export class RedisStore implements OrderStore {
  /** `'server'`: shared by all machines that use the server. */
  readonly durability: StoreDurability = 'server'
  readonly #evaluate: Evaluate
  readonly #prefix: string
  readonly #vouched: Vouched
  /** Keyed by `''` if one inspection is valid for all scopes, otherwise by a key of the scope. */
  readonly #inspections = new Map<string, { readonly passed: Promise<void>; readonly at: number }>()
  readonly #unlisten: () => void
  readonly #uncertain: UncertainWrites = new UncertainWrites()
  #closed = false

  /**
   * Creates the store. Sends nothing to the server.
   *
   * @throws {StoreError} if an option is wrong
   */
  constructor(options: RedisStoreOptions) {
    // Without `Object`, a call without options would throw a TypeError, not a StoreError.
    const { client, prefix = DEFAULT_PREFIX, persistence, eviction }: RedisStoreOptions = Object(options)
    this.#evaluate = evaluateWith(client, async (script, [key]) => {
      if (script === INSPECT || key === undefined || this.#trusted) return
      this.#inspections.clear()
      await this.#inspect(key)
    })
    if (typeof prefix !== 'string' || /[{}]/.test(prefix)) {
      throw new StoreError('The option `prefix` of RedisStore must be a string without braces.')
    }
    this.#prefix = storable(prefix)
    this.#vouched = {
      persistence: isAssumed('persistence', persistence),
      eviction: isAssumed('eviction', eviction),
    }
    // A new connection may lead to another server, for example after a failover, so the next call
    // inspects the server again.
    this.#unlisten = onConnected(client, () => this.#inspections.clear())
  }

  async get(scope: string, id: string): Promise<StoredRow | undefined> {
    return await this.#run('read', scope, async (keys) => {
      const [text] = await this.#evaluate(GET, [keys.row(id)], [])
      return text === undefined ? undefined : toRow(scope, id, text)
    })
  }

  async insert(row: StoredRow): Promise<InsertResult> {
    const { scope, id } = row
    const parameters = [id, makeMark(), headOf(row), storable(row.data)]
    return await this.#write<InsertResult>(row, async (keys) => {
      const [result, found] = await this.#evaluate(INSERT, rowKeys(keys, id), parameters)
      if (result === 'written') return { inserted: true }
      if (result !== 'found' || found === undefined) throw foreignRow()
      return { inserted: false, current: toRow(scope, id, found) }
    })
  }

  async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    const { id } = row
    const parameters = [id, makeMark(), headOf(row), storable(row.data), String(expectedVersion)]
    return await this.#write(row, async (keys) => {
      const [result] = await this.#evaluate(UPDATE, rowKeys(keys, id), parameters)
      if (result === 'written') return true
      if (result === 'other') return false
      throw foreignRow()
    })
  }

  async listOpen(scope: string, { after, limit }: ListRowsOptions): Promise<RowPage> {
    const from = after === undefined ? '-' : `(${storable(after)}`
    return await this.#page(scope, 'open', from, limit)
  }

  async prune(scope: string, { createdBefore, rejectedBefore }: PruneOptions): Promise<number> {
    const created = await this.#prune(scope, 'created', createdBefore)
    return created + (await this.#prune(scope, 'rejected', rejectedBefore))
  }

  async list(scope: string, options: ListRowsOptions & { readonly since?: number }): Promise<RowPage> {
    const { after, limit, since = 0 } = options
    if (after !== undefined && !/^\d{16} /.test(after)) {
      throw new StoreError('The option `after` must be the `next` of a page that this store returned.')
    }
    const from = after === undefined ? `[${timeText(since)}` : `(${storable(after)}`
    return await this.#page(scope, 'list', from, limit)
  }

  /** Closes the store, but not your client. Later calls reject with `StoreError`. */
  async close(): Promise<void> {
    this.#closed = true
    this.#unlisten()
  }

  async #page(scope: string, index: 'open' | 'list', from: string, limit: number): Promise<RowPage> {
    return await this.#run('read', scope, async (keys) => {
      const idAt = index === 'list' ? ENTRY_TIME_LENGTH + 1 : 1
      const parameters = [index, from, Math.min(limit, MOST_ROWS), MOST_BYTES, idAt].map(String)
      const [next, ...found] = await this.#evaluate(PAGE, [keys[index]], parameters)
      const rows: StoredRow[] = []
      for (let at = 0; at < found.length; at += 2)
        rows.push(toRow(scope, found[at] ?? '', found[at + 1] ?? ''))
      return next ? { rows, next } : { rows }
    })
  }

  async #prune(scope: string, state: 'created' | 'rejected', before: number): Promise<number> {
    let removed = 0
    for (;;) {
      const [found, batch] = await this.#run('write', scope, async (keys) => {
        const parameters = [timeText(before), String(PRUNE_BATCH), state]
        return (await this.#evaluate(PRUNE, [keys.list, keys[state]], parameters)).map(Number)
      })
      removed += batch ?? 0
      if (found !== PRUNE_BATCH) return removed
    }
  }

  #write<T>(row: StoredRow, action: (keys: ScopeKeys) => Promise<T>): Promise<T> {
    return this.#uncertain.run(row, () => this.#run('write', row.scope, action))
  }

  async #run<T>(
    access: 'read' | 'write',
    scope: string,
    action: (keys: ScopeKeys) => Promise<T>,
  ): Promise<T> {
    if (this.#closed) {
      throw new StoreError('The order store in Redis was closed. Create a new RedisStore.')
    }
    const keys = keysOf(this.#prefix, scope)
    try {
      await this.#inspected(keys.list)
      return await action(keys)
    } catch (error) {
      throw explain(error, access)
    }
  }

  #inspected(key: string): Promise<void> | undefined {
    if (this.#trusted) return undefined
    const at = performance.now()
    const done = this.#inspections.get('') ?? this.#inspections.get(key)
    if (done !== undefined && at - done.at < INSPECTION_LIFETIME) return done.passed
    const passed = this.#inspect(key).then(({ cluster }) => {
      // Outside a cluster, one inspection is valid for every scope.
      if (cluster || this.#inspections.get(key) !== inspection) return
      this.#inspections.clear()
      this.#inspections.set('', inspection)
    })
    const inspection = { passed, at }
    this.#inspections.delete('')
    this.#inspections.set(key, inspection)
    passed.catch(() => {
      // The next call repeats a failed inspection.
      if (this.#inspections.get(key) === inspection) this.#inspections.delete(key)
    })
    return passed
  }

  #inspect(key: string): Promise<Inspected> {
    return inspect(async () => (await this.#evaluate(INSPECT, [key], []))[0] ?? '', this.#vouched)
  }

  get #trusted(): boolean {
    return this.#vouched.persistence && this.#vouched.eviction
  }
}

/** In the order of KEYS in the scripts that write a row. */
function rowKeys({ row, list, open, created, rejected }: ScopeKeys, id: string): readonly string[] {
  return [row(id), list, open, created, rejected]
}

function makeMark(): string {
  const bytes = crypto.getRandomValues(new Uint8Array((MARK_LENGTH * 3) / 4))
  return btoa(String.fromCharCode(...bytes))
}

function isAssumed(name: string, value: unknown): boolean {
  if (value === undefined || value === 'check') return false
  if (value === 'assume') return true
  throw new StoreError(`The option \`${name}\` of RedisStore must be 'check' or 'assume'.`)
}
