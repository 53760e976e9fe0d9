/**
 * Reads and conditional writes of records. Every safety decision is one such write. Also removes old
 * closed records; open ones are never removed.
 */
import { defined } from '../../defined.ts'
import { StoreError } from '../../errors/classes.ts'
import type { Reporter } from '../../hooks.ts'
import { Deadline, GRACE, Interruption } from '../../http/deadline.ts'
import type { Codec } from '../../options.ts'
import type { Runtime } from '../../runtime.ts'
import type { InsertResult, OrderStore, RowPage, StoredRow } from '../../stores/store.ts'
import {
  checkedCodec,
  decodeRow,
  emptyRow,
  encodeRecord,
  type JournalRecord,
  type RecordContent,
  type Unusable,
  unusableError,
} from './record.ts'

const STORE_TIMEOUT = 10_000

/** What was read or written last. The next write replaces it. */
export type Found =
  | FoundRecord
  | { readonly id: string; readonly row?: StoredRow; readonly record?: undefined }

export interface FoundRecord {
  readonly id: string
  readonly row?: StoredRow
  readonly record: JournalRecord
}

/**
 * - `lost`: another writer was faster.
 * - `refused`: the write can never be applied ({@link StoreError.applied} is false).
 * - `doubt`: the write may still be applied, because a database may continue a statement after its
 *   client has stopped waiting. An earlier write may still be applied if the codec failed.
 */
export interface Unwritten {
  readonly result: 'refused' | 'doubt'
  readonly cause: unknown
  /** What to do before another call. */
  readonly repair: string
}

type Failed = { readonly result: 'lost' } | Unwritten

export type Written = { readonly result: 'written'; readonly found: FoundRecord } | Failed

/** What clients that share a store and a scope must know of each other. */
export interface Shared {
  /** The calls of this process that are working on an order, by row id. They never reject. */
  readonly live: Map<string, Promise<void>>
  /** The removal of old records, and when it last began. */
  pruning?: { readonly since: number; readonly ended: Promise<void> }
  /** When a lookup of a record last stopped before the end of the list, by row id. */
  readonly cuts: Map<string, number>
}

const shared = new WeakMap<OrderStore, Map<string, Shared>>()

/** `open`: rows with work left for recovery. A time: rows written since then. */
export type Which = 'open' | number

export interface JournalOptions {
  readonly store: OrderStore
  readonly scope: string
  readonly codec: Codec | undefined
  readonly runtime: Runtime
  readonly reporter: Reporter
  /** Milliseconds for which closed records are kept. */
  readonly retention: { readonly created: number; readonly rejected: number }
}

/** How far back to search for a witness, in multiples of its minimum age. */
const WITNESS_AGES: readonly number[] = [1.1, 2, 8, 32, 128]

const PRUNE_INTERVAL = 60 * 60 * 1000

export class Journal {
  readonly store: OrderStore
  readonly scope: string
  readonly shared: Shared
  readonly options: JournalOptions
  readonly #scopes: ReadonlyMap<string, Shared>
  readonly #codec: Codec | undefined
  readonly #runtime: Runtime

  constructor(options: JournalOptions) {
    const { store, scope, codec, runtime } = options
    this.store = store
    this.scope = scope
    this.options = options
    const scopes = shared.get(store) ?? new Map<string, Shared>()
    shared.set(store, scopes)
    this.shared = scopes.get(scope) ?? { live: new Map(), cuts: new Map() }
    scopes.set(scope, this.shared)
    this.#scopes = scopes
    this.#codec = codec && checkedCodec(codec)
    this.#runtime = runtime
  }

  async load(id: string, deadline: Deadline): Promise<Found | Interruption> {
    const row = await this.#called(() => this.store.get(this.scope, id), UNREADABLE, deadline)
    if (row instanceof Interruption || row === undefined) return row ?? { id }
    const record = await this.#decoded(row, deadline)
    if (typeof record === 'object') return { id, row, record }
    if (record === 'forgotten') return { id, row }
    const over = record === 'unanswered' ? deadline.over() : undefined
    if (over === undefined) throw unusableError(record, row)
    return over
  }

  /** The record as it is now, or undefined if it cannot be read in time. */
  async newest(id: string, deadline: Deadline): Promise<Found | undefined> {
    const found = await this.load(id, deadline).catch(() => undefined)
    return found instanceof Interruption ? undefined : found
  }

  /** Has a deadline because a codec may call a key service that never responds. */
  async #decoded(
    row: StoredRow,
    deadline: Deadline = this.#time(STORE_TIMEOUT),
  ): Promise<JournalRecord | 'forgotten' | Unusable> {
    const decoding = decodeRow(row, this.#codec)
    const decoded = this.#codec === undefined ? await decoding : await deadline.race(decoding, STORE_TIMEOUT)
    return decoded instanceof Interruption ? 'unanswered' : decoded
  }

  /** Replaces the version that was found. Nothing is sent before such a write was confirmed. */
  async write(
    found: Found,
    content: RecordContent,
    deadline: Deadline,
    codecTime: Deadline = deadline,
  ): Promise<Written> {
    const now = this.#runtime.now()
    // A version must not come again in a row that was pruned meanwhile, or an old claim would fit it.
    const version = (found.row?.version ?? now) + 1
    const createdAt = found.record?.createdAt ?? now
    const record: JournalRecord = { ...content, version, createdAt, updatedAt: now }
    let row: StoredRow | Interruption
    try {
      const encoded = encodeRecord(this.scope, found.id, record, this.#codec)
      row = encoded instanceof Promise ? await codecTime.race(encoded, STORE_TIMEOUT) : encoded
      if (row instanceof Interruption) throw new TypeError('codec.encrypt() did not finish in time')
    } catch (cause) {
      return { result: 'doubt', repair: 'Repair the codec, which did not encrypt the record,', cause }
    }
    const failed = await this.#apply(found.row, row, deadline)
    return failed ?? { result: 'written', found: { id: found.id, row, record } }
  }

  /** Writes an outcome, also after the call's end: what was learnt must be stored before it is told. */
  writeOutcome(
    found: Found,
    content: RecordContent,
    deadline: Deadline,
    signal?: AbortSignal,
  ): Promise<Written> {
    const isOver = deadline.over() !== undefined
    const time = isOver ? this.#time(0) : this.#time(deadline.remaining(), signal)
    // The codec has time even after the call's end: without encryption, no outcome is stored.
    return this.write(found, content, time, this.#time(Math.max(deadline.remaining(), GRACE)))
  }

  /**
   * Inserts or rewrites the row, also without a codec that works. Returns true if the store now rejects
   * every earlier write of the row.
   */
  async fence({ id, row: base }: Found, deadline: Deadline): Promise<boolean> {
    const now = this.#runtime.now()
    const row =
      base === undefined
        ? emptyRow(this.scope, id, now)
        : { ...base, version: base.version + 1, updatedAt: now }
    const failed = await this.#apply(base, row, deadline)
    return failed === undefined || failed.result === 'refused'
  }

  /** Forgets the record, and keeps its row. Returns false if another call has changed the record. */
  async empty({ id, row, record }: FoundRecord, deadline: Deadline): Promise<boolean> {
    const emptied = (): Promise<boolean> =>
      this.store.update(emptyRow(this.scope, id, this.#runtime.now(), row), record.version)
    const message =
      'The store did not confirm the removal of the record. Nothing was sent. Repair the store, then call again.'
    return await this.#confirmed(emptied, message, deadline)
  }

  /** Yields what is remembered, or why a row cannot be read. */
  async *records(
    which: Which,
  ): AsyncGenerator<{ row: StoredRow; record: JournalRecord | Unusable }, void, undefined> {
    let after: string | undefined
    do {
      const options = { limit: 100, ...defined({ after }) }
      const listed = (): Promise<RowPage> =>
        which === 'open'
          ? this.store.listOpen(this.scope, options)
          : this.store.list(this.scope, { ...options, since: which })
      const page = await this.#confirmed(listed)
      for (const row of page.rows) {
        const record = await this.#decoded(row)
        if (record !== 'forgotten') yield { row, record }
      }
      after = page.next
    } while (after !== undefined)
  }

  /** Waits for all calls and removals, whatever their account: they use the same store. */
  async idle(): Promise<void> {
    await Promise.all(
      [...this.#scopes.values()].flatMap(({ live, pruning }) => [...live.values(), pruning?.ended]),
    )
  }

  /**
   * Removes old closed records. `close()` waits for the removal, so that the store can be closed. The
   * first `create()` only begins the hour: a worker with a client for each request would search for
   * old records at each order.
   */
  pruneHourly(command: 'create' | 'recover'): void {
    const since = this.#runtime.monotonic()
    if (command === 'create') this.shared.pruning ??= { since, ended: Promise.resolve() }
    if (this.shared.pruning !== undefined && since - this.shared.pruning.since < PRUNE_INTERVAL) return
    const ended = this.prune().catch(({ code }: { readonly code?: string }) => {
      const problem = 'old records could not be removed; no new attempt for an hour'
      this.options.reporter.log('warn', problem, { code })
    })
    this.shared.pruning = { since, ended }
  }

  async prune(): Promise<void> {
    const { created, rejected } = this.options.retention
    const now = this.#runtime.now()
    const createdBefore = await this.#prunableBefore(created, now)
    const rejectedBefore = await this.#prunableBefore(rejected, now)
    const pruned = () => this.store.prune(this.scope, { createdBefore, rejectedBefore })
    await this.#confirmed(pruned)
  }

  /**
   * Returns the time before which records may be removed, or 0. To a clock that is far ahead, every
   * record looks old, so a record must also be older than another one, the witness, by three quarters
   * of the retention. A witness less than a quarter of the retention old may have the wrong clock's time.
   */
  async #prunableBefore(retention: number, now: number): Promise<number> {
    const minAge = retention / 4
    for (const factor of WITNESS_AGES) {
      const since = Math.floor(Math.max(0, now - minAge * factor))
      const listed = () => this.store.list(this.scope, { since, limit: 100 })
      const { rows } = await this.#confirmed(listed)
      const witness = rows.find(({ updatedAt }) => updatedAt <= now - minAge)
      if (witness !== undefined) return Math.floor(witness.updatedAt - (retention * 3) / 4)
    }
    return 0
  }

  async #confirmed<T>(
    operation: () => Promise<T>,
    message: string = UNREADABLE,
    deadline: Deadline = this.#time(STORE_TIMEOUT),
  ): Promise<T> {
    const result = await this.#called(operation, message, deadline)
    if (result instanceof Interruption) throw storeError(message)
    return result
  }

  async #called<T>(
    operation: () => Promise<T>,
    message: string,
    deadline: Deadline,
  ): Promise<T | Interruption> {
    let failure: unknown
    // Asked before, because a timer may fire a little early: if the call has no more time than the
    // store, the call's time is over.
    const isLonger = deadline.remaining() > STORE_TIMEOUT
    try {
      const result = await deadline.race(Promise.resolve(operation()), STORE_TIMEOUT)
      if (!(result instanceof Interruption) || !isLonger || deadline.over() !== undefined) return result
    } catch (cause) {
      failure = cause
    }
    throw storeError(message, failure)
  }

  /** Undefined if the row was written. */
  async #apply(base: StoredRow | undefined, row: StoredRow, deadline: Deadline): Promise<Failed | undefined> {
    let failure: unknown
    let applied: boolean | InsertResult | Interruption | undefined
    let grace: Deadline | undefined
    try {
      const { store } = this
      const put = base === undefined ? store.insert(row) : store.update(row, base.version)
      const pending = Promise.resolve<boolean | InsertResult>(put)
      applied = await deadline.race(pending, STORE_TIMEOUT)
      if (applied instanceof Interruption) {
        // The store may still confirm the write, so wait briefly after the call's end.
        grace = this.#time(GRACE)
        applied = await this.#time(GRACE / 2).race(pending)
      }
      if (!(applied instanceof Interruption) && typeof applied === 'object') applied = applied.inserted
      if (applied === true) return undefined
    } catch (cause) {
      failure = cause ?? new Error('the store failed')
    }
    // Read the row even if the store reported that another writer was faster: a database client may
    // have repeated this write after a lost response.
    const get = this.#called(() => this.store.get(this.scope, row.id), UNREADABLE, grace ?? this.#time(GRACE))
    const read = await get.catch(() => 'unreadable' as const)
    const unread = read instanceof Interruption || read === 'unreadable'
    const current = unread ? undefined : read
    // The content tells whose write it is: it has the random id of the call that wrote it.
    if (current?.version === row.version && current.data === row.data) return undefined
    const isOthers = current !== undefined && (base === undefined || current.version >= row.version)
    if (applied === false || isOthers) return { result: 'lost' }
    // Trust a rejection only if the row was read afterwards: a database client may repeat a
    // statement that was applied, and report that the repetition was rejected.
    const refused = !unread && failure instanceof StoreError && failure.applied === false
    return { result: refused ? 'refused' : 'doubt', cause: failure, repair: 'Repair the store' }
  }

  #time(milliseconds: number, signal?: AbortSignal): Deadline {
    return new Deadline(this.#runtime, milliseconds, signal)
  }
}

const UNREADABLE =
  'The store could not be read, so nothing more was sent. An earlier attempt may have charged the wallet. Repair the store, then repeat this call unchanged.'

function storeError(message: string, cause?: unknown): StoreError {
  const reason = cause === undefined ? ' The store did not respond.' : reasonOf(cause)
  const error = new StoreError(message + reason, { charged: 'unknown', cause })
  // By default, V8 keeps only ten lines, and the caller's own line must be one of them.
  Error.captureStackTrace?.(error, storeError)
  return error
}

/** Quotes only a StoreError: the message of any other error may contain a secret. */
export function reasonOf(cause: unknown): string {
  return cause instanceof StoreError ? ` The store reported: ${cause.message}` : ''
}
