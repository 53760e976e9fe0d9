import { defined } from '../defined.ts'
import { StoreError } from '../errors.ts'
import { Deadline, GRACE, Interruption } from '../http/deadline.ts'
import type { Runtime } from '../runtime.ts'
import type { OrderOutbox, OrderStore, RowPage, StoredRow } from '../stores/store.ts'
import {
  type Codec,
  decodeRow,
  emptyRow,
  encodeRecord,
  forgottenRow,
  type JournalRecord,
  type RecordContent,
  type Unusable,
  unusableError,
} from './record.ts'
import { RoundTripError, withRoundTrip } from './round-trip.ts'

/** How long one operation of a store may take, milliseconds. */
const STORE_TIMEOUT = 10_000
/** How often a proven charge is written over other writers' versions before it goes to the background. */
const MAX_MERGES = 8
/** Delays between background attempts to store a proven charge, milliseconds; after the last, `recover()` has to do it. */
const BACKGROUND_DELAYS: readonly number[] = [1000, 2000, 4000, 8000, 16_000, 30_000, 60_000, 120_000]

/** How far back the witness for a pruning is looked for, as multiples of its least age: further where orders are rare. */
const WITNESS_AGES: readonly number[] = [1.1, 2, 8, 32, 128]

/** What the store has under a name: nothing, a row whose record was forgotten, or a record. */
export interface Found {
  readonly id: string
  readonly row?: StoredRow
  readonly record?: JournalRecord
}

/** A record that the store has. */
export interface FoundRecord extends Found {
  readonly row: StoredRow
  readonly record: JournalRecord
}

/**
 * How a conditional write ended.
 * - `lost`: another writer was faster.
 * - `failed`: it could not be put into a row, so nothing reached the store.
 * - `refused`: the store is certain that it never happens, as with a full disk (see {@link StoreError.applied}).
 * - `doubt`: it is not there, and may still be applied, also where the store has rejected it: a database goes on with a
 *   statement whose client has stopped waiting.
 */
export type Written =
  | { readonly result: 'written'; readonly found: FoundRecord }
  | { readonly result: 'lost' }
  | { readonly result: 'failed'; readonly repair: string; readonly cause: unknown }
  | { readonly result: 'refused' | 'doubt'; readonly repair?: undefined; readonly cause: unknown }

/** A write that is not there, and why. */
export type Unwritten = Extract<Written, { readonly cause: unknown }>

/** What the journal needs. */
export interface JournalOptions {
  readonly store: OrderStore
  readonly scope: string
  readonly codec: Codec | undefined
  readonly runtime: Runtime
}

const backgrounds = new WeakMap<OrderStore, Map<() => Promise<void>, Journal>>()

/**
 * The write-ahead journal over a store: reads and conditional writes of records, with an answer to the question that
 * every failed write leaves behind, whether it was applied. It decides nothing about orders.
 */
export class Journal {
  readonly store: OrderStore
  readonly scope: string
  readonly #codec: Codec | undefined
  readonly #runtime: Runtime
  /** Ends of the background work that is going on over the store, and whose it is. */
  readonly #background: Map<() => Promise<void>, Journal>

  constructor({ store, scope, codec, runtime }: JournalOptions) {
    this.store = store
    this.scope = scope
    this.#codec = codec && withRoundTrip(codec)
    this.#runtime = runtime
    this.#background = backgrounds.get(store) ?? new Map()
    backgrounds.set(store, this.#background)
  }

  /**
   * What is stored under a name.
   * @throws {StoreError} `'unknown'`: without reading the record nobody knows what an earlier call did
   */
  async load(id: string, deadline: Deadline, store: OrderOutbox = this.store): Promise<Found | Interruption> {
    const row = await this.#read(id, deadline, store)
    if (row instanceof Interruption) return row
    if (row === undefined) return { id }
    const decoded = await this.#decoded(row, deadline)
    if (decoded instanceof Interruption) {
      const over = deadline.over()
      if (over !== undefined) return over
      throw unusableError('unanswered')
    }
    if (typeof decoded === 'object') return { id: row.id, row, record: decoded }
    if (decoded === 'forgotten') return { id: row.id, row }
    throw unusableError(decoded)
  }

  /** The record of a row, or why there is none. */
  async decode(row: StoredRow): Promise<JournalRecord | 'forgotten' | Unusable> {
    const decoded = await this.#decoded(row, new Deadline(this.#runtime, STORE_TIMEOUT, undefined))
    return decoded instanceof Interruption ? 'unanswered' : decoded
  }

  /**
   * Writes a record if nothing changed since it was found. What a lost answer leaves open is read back: a row of this
   * version with this very text can only be this write's, because every call's `claim` is in the text.
   */
  write(
    found: Found,
    content: RecordContent,
    deadline: Deadline,
    store: OrderOutbox = this.store,
  ): Promise<Written> {
    return this.#write(found, content, deadline, store, deadline)
  }

  /** @param sealing how long the codec may take */
  async #write(
    found: Found,
    content: RecordContent,
    deadline: Deadline,
    store: OrderOutbox,
    sealing: Deadline,
  ): Promise<Written> {
    const now = this.#runtime.now()
    const version = (found.row?.version ?? 0) + 1
    const record: JournalRecord = {
      ...content,
      version,
      createdAt: found.record?.createdAt ?? now,
      updatedAt: now,
    }
    let row: StoredRow
    try {
      const encoded = encodeRecord(this.scope, found.id, record, this.#codec)
      const timely = this.#codec === undefined ? await encoded : await this.#bounded(encoded, sealing)
      if (timely instanceof Interruption)
        return {
          result: 'failed',
          repair: 'Repair the codec, which did not encrypt it in time,',
          cause: undefined,
        }
      row = timely
    } catch (cause) {
      const failed =
        cause instanceof RoundTripError ? 'cannot decrypt what it encrypts' : 'could not encrypt it'
      return { result: 'failed', repair: `Repair the codec, which ${failed},`, cause }
    }
    const applied = await this.#apply(found.row, row, deadline, store)
    return applied.result === 'written'
      ? { result: 'written', found: { id: found.id, row, record } }
      : applied
  }

  /**
   * Writes what is there over itself, or a row without a record where nothing is, so that a write which an earlier call gave
   * up comes too late. Needs no codec. False if the store did not confirm it.
   */
  async fence({ id, row: base }: Found, deadline: Deadline): Promise<boolean> {
    const now = this.#runtime.now()
    const row =
      base === undefined
        ? emptyRow(this.scope, id, now)
        : { ...base, version: base.version + 1, updatedAt: now }
    return (await this.#apply(base, row, deadline, this.store)).result === 'written'
  }

  /** Writes a row if nothing changed since its base was read. */
  async #apply(
    base: StoredRow | undefined,
    row: StoredRow,
    deadline: Deadline,
    store: OrderOutbox,
  ): Promise<{ readonly result: 'written' } | Exclude<Written, { readonly result: 'written' }>> {
    const { id, version } = row
    const written = { result: 'written' } as const
    const pending =
      base === undefined
        ? this.#call(() => store.insert(row)).then(({ inserted }) => inserted)
        : this.#call(() => store.update(row, base.version))
    let failure: unknown
    let applied: boolean | Interruption | undefined
    let grace: Deadline | undefined
    try {
      applied = await this.#bounded(pending, deadline)
      if (applied instanceof Interruption) {
        // The write is on its way and may still be applied: knowing is worth a moment past the call's end.
        grace = new Deadline(this.#runtime, GRACE, undefined)
        applied = await new Deadline(this.#runtime, GRACE / 2, undefined).race(pending)
      }
      if (isConfirmed(applied)) return written
    } catch (cause) {
      failure = cause ?? new Error('the store failed')
    }
    // A database client that sent the write twice, because the first answer was lost, answers that it was too late.
    grace ??= new Deadline(this.#runtime, GRACE, undefined)
    const read = await this.#read(id, grace, store).catch(() => 'unreadable' as const)
    const unread = read instanceof Interruption || read === 'unreadable'
    const current = unread ? undefined : read
    if (isThisWrite(current, row)) return written
    if (applied === false || (current !== undefined && current.version >= version)) return { result: 'lost' }
    // A client that repeats a statement may be refused the second time after the first was applied, so the row decides, too.
    const refused = !unread && failure instanceof StoreError && failure.applied === false
    return { result: refused ? 'refused' : 'doubt', cause: failure }
  }

  /**
   * Writes what a call learnt over the newest version, whoever wrote that, until it is stored. For proofs of a charge
   * only: they beat every other ending. Returns false if the store could not take it now; it is tried again in the
   * background then.
   * @param signal ends the wait, and with it no more than that; default until the deadline
   */
  async prove(
    found: FoundRecord,
    merge: (newest: JournalRecord) => RecordContent | undefined,
    deadline: Deadline,
    signal?: AbortSignal,
  ): Promise<boolean> {
    if (await this.#prove(found, merge, this.#settling(deadline, signal))) return true
    this.#proveInBackground(found, merge)
    return false
  }

  /** Writes the ending of a call if the version that the call wrote last is still the newest. */
  settle(found: FoundRecord, content: RecordContent, deadline: Deadline): Promise<Written> {
    return this.#learnt(found, content, this.#settling(deadline))
  }

  /**
   * Empties a closed record; false if it changed meanwhile.
   * @throws {StoreError} if the store did not confirm it
   */
  async forget({ row }: FoundRecord, deadline: Deadline): Promise<boolean> {
    const pending = this.#call(() => this.store.update(forgottenRow(row, this.#runtime.now()), row.version))
    return await this.#confirmed(pending, 'The store did not confirm that the record was removed.', deadline)
  }

  /**
   * Removes closed records that were last written longer ago than their state is kept, milliseconds.
   * @throws {StoreError} if the store failed
   */
  async prune(kept: { readonly created: number; readonly rejected: number }): Promise<void> {
    const pruned = this.#prune(kept)
    // Whoever closes the store, or the connections under it, waits for this first.
    const finish = async (): Promise<void> => void (await pruned.catch(() => {}))
    this.#background.set(finish, this)
    await pruned.finally(() => this.#background.delete(finish))
  }

  async #prune(kept: { readonly created: number; readonly rejected: number }): Promise<void> {
    const limits = {
      createdBefore: await this.#prunableBefore(kept.created),
      rejectedBefore: await this.#prunableBefore(kept.rejected),
    }
    const pending = this.#call(() => this.store.prune(this.scope, limits))
    await this.#confirmed(pending, 'The store could not remove old records.')
  }

  /**
   * The time before which closed records may go; 0 if none may. This clock alone must not decide: while it is far
   * ahead, everybody's records look old. So a record that was written well before now, the witness, has to stand three
   * quarters of the time after what goes. A clock that is ahead writes a witness itself only after it was wrong for a
   * quarter of the time.
   */
  async #prunableBefore(kept: number): Promise<number> {
    const now = this.#runtime.now()
    const settled = kept / 4
    for (const factor of WITNESS_AGES) {
      const { rows } = await this.#page({ since: Math.floor(Math.max(0, now - settled * factor)) })
      const witness = witnessOf(rows, now - settled)
      if (witness !== undefined) return Math.floor(Math.min(now - kept, witness.updatedAt - (kept * 3) / 4))
    }
    return 0
  }

  /** All rows of the scope, page by page: those with work left for recovery, or those written since a time. */
  async *rows(
    which: { readonly open: true } | { readonly since: number },
  ): AsyncGenerator<StoredRow, void, undefined> {
    let after: string | undefined
    do {
      const page = await this.#page(which, after)
      yield* page.rows
      after = page.next
    } while (after !== undefined)
  }

  #page(which: { readonly open: true } | { readonly since: number }, after?: string): Promise<RowPage> {
    const options = { limit: 100, ...defined({ after }) }
    const pending = this.#call(() =>
      'open' in which
        ? this.store.listOpen(this.scope, options)
        : this.store.list(this.scope, { ...options, since: which.since }),
    )
    return this.#confirmed(pending, UNREADABLE)
  }

  /**
   * Tries once more, for the last time, what still waits to be stored; afterwards nothing of it goes on in the background.
   * With `whole`, also what other journals want to store there: their store is about to be closed.
   */
  async flush({ whole }: { readonly whole: boolean }): Promise<void> {
    const waiting = [...this.#background].filter(([, owner]) => whole || owner === this)
    await Promise.all(waiting.map(([finish]) => finish()))
  }

  async #prove(
    found: FoundRecord,
    merge: (newest: JournalRecord) => RecordContent | undefined,
    deadline: Deadline,
  ): Promise<boolean> {
    const last = new Deadline(this.#runtime, Math.max(deadline.remaining(), 0) + GRACE, deadline.signal)
    let newest: Found & { readonly record: JournalRecord } = found
    for (let round = 0; round < MAX_MERGES; round++) {
      const content = merge(newest.record)
      if (content === undefined) return true
      const { result } = await this.#learnt(newest, content, deadline)
      if (result === 'written') return true
      if (result !== 'lost') return false
      const current = await this.load(found.id, last).catch(() => undefined)
      if (current === undefined || current instanceof Interruption) return false
      // A record that was forgotten or pruned meanwhile comes back: a proven charge is never left out.
      newest = { ...current, record: current.record ?? newest.record }
    }
    return false
  }

  #proveInBackground(found: FoundRecord, merge: (newest: JournalRecord) => RecordContent | undefined): void {
    let cancel: () => void = () => {}
    let tries = 0
    let last = false
    const attempt = async (): Promise<void> => {
      const time = new Deadline(this.#runtime, STORE_TIMEOUT, undefined)
      const stored = await this.#prove(found, merge, time)
      if (stored || last) this.#background.delete(finish)
      else schedule()
    }
    const finish = async (): Promise<void> => {
      last = true
      cancel()
      await attempt()
    }
    const schedule = (): void => {
      const delay = BACKGROUND_DELAYS[tries++]
      if (delay === undefined) this.#background.delete(finish)
      else cancel = this.#runtime.setTimer(() => void attempt(), delay)
    }
    this.#background.set(finish, this)
    schedule()
  }

  /** What the store has, or the interruption of the call. */
  async #read(
    id: string,
    deadline: Deadline,
    store: OrderOutbox,
  ): Promise<StoredRow | Interruption | undefined> {
    let row: StoredRow | Interruption | undefined
    try {
      row = await this.#bounded(
        this.#call(() => store.get(this.scope, id)),
        deadline,
      )
    } catch (cause) {
      throw storeError(UNREADABLE, cause)
    }
    return row instanceof Interruption ? overOr(deadline) : row
  }

  /** Writes what a call has learnt, for which the codec is given a moment past the call's end as well. */
  #learnt(found: Found, content: RecordContent, deadline: Deadline): Promise<Written> {
    const sealing = new Deadline(this.#runtime, Math.max(deadline.remaining(), GRACE), undefined)
    return this.#write(found, content, deadline, this.store, sealing)
  }

  /** A codec may ask a key service, which may never answer. */
  #decoded(
    row: StoredRow,
    deadline: Deadline,
  ): Promise<JournalRecord | 'forgotten' | Unusable | Interruption> {
    const decoded = decodeRow(row, this.#codec)
    return this.#codec === undefined ? decoded : this.#bounded(decoded, deadline)
  }

  /** What the store answers in its time, or by the deadline where one is given. */
  async #confirmed<T>(
    pending: Promise<T>,
    otherwise: string,
    deadline: Deadline = new Deadline(this.#runtime, STORE_TIMEOUT, undefined),
  ): Promise<T> {
    let result: T | Interruption
    try {
      result = await this.#bounded(pending, deadline)
    } catch (cause) {
      throw storeError(otherwise, cause)
    }
    if (result instanceof Interruption) throw storeError(otherwise)
    return result
  }

  #bounded<T>(pending: Promise<T>, deadline: Deadline): Promise<T | Interruption> {
    const time = Math.min(STORE_TIMEOUT, deadline.remaining())
    return new Deadline(this.#runtime, time, deadline.signal).race(pending)
  }

  /**
   * A call's ending is stored even if the call is over: what is told must be what is stored.
   * @param signal ends the wait later on
   */
  #settling(deadline: Deadline, signal?: AbortSignal): Deadline {
    return deadline.over() === undefined
      ? new Deadline(this.#runtime, deadline.remaining(), signal)
      : new Deadline(this.#runtime, 0, undefined)
  }

  /** A store that throws instead of rejecting has failed all the same. */
  async #call<T>(operation: () => Promise<T>): Promise<T> {
    return await operation()
  }
}

/** True if the store has said that it wrote: one that has not responded in time may have written nothing. */
export function isConfirmed(applied: boolean | Interruption): boolean {
  return applied === true
}

/** True if what is stored is this very write. No other has its text, because every call's `claim` is in there. */
export function isThisWrite(stored: StoredRow | undefined, row: StoredRow): boolean {
  return stored?.version === row.version && stored.data === row.data
}

/** A row that proves by its age that time has passed, whatever this process's clock says. */
export function witnessOf<Row extends Pick<StoredRow, 'updatedAt'>>(
  rows: readonly Row[],
  latest: number,
): Row | undefined {
  return rows.find(({ updatedAt }) => updatedAt <= latest)
}

/** The end of a call; its store was given up if it has not come. */
function overOr(deadline: Deadline): Interruption {
  const over = deadline.over()
  if (over !== undefined) return over
  throw storeError(UNREADABLE)
}

const UNREADABLE =
  'The store could not be read, so nothing was sent by this call; whether an earlier one was charged is not known. Repair the store and call again with the same request.'

function storeError(message: string, cause?: unknown): StoreError {
  return new StoreError(message + reasonOf(cause), { charged: 'unknown', ...defined({ cause }) })
}

/** What a store said of itself, for the end of a message. Whatever else it threw may hold a secret. */
export function reasonOf(cause: unknown): string {
  return cause instanceof StoreError ? ` The store said: ${cause.message}` : ''
}
