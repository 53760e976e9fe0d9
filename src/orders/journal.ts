import type { StoreError } from '../errors.ts'
import type { Reporter } from '../hooks.ts'
import { Deadline, GRACE, Interruption } from '../http/deadline.ts'
import type { Codec } from '../options.ts'
import type { Runtime } from '../runtime.ts'
import type { OrderOutbox, OrderStore, StoredRow } from '../stores/store.ts'
import type { JournalRecord, RecordContent } from './record.ts'
import {
  decodeRow,
  emptyRow,
  encodeRecord,
  forgottenRow,
  RoundTripError,
  type Unusable,
  unusableError,
  withRoundTrip,
} from './row.ts'
import { type Applied, Rows, STORE_TIMEOUT, type Which } from './rows.ts'

/**
 * Maximum number of attempts to write a proven charge over other writers' versions, before further
 * attempts are made in the background.
 */
const MAX_MERGES = 8
/**
 * Milliseconds between background attempts to store a proven charge. If the last attempt fails,
 * only `recover()` can store the charge.
 */
const BACKGROUND_DELAYS: readonly number[] = [1000, 2000, 4000, 8000, 16_000, 30_000, 60_000, 120_000]

/** The content stored under a name: nothing, a row whose record was forgotten, or a record. */
export interface Found {
  readonly id: string
  readonly row?: StoredRow
  readonly record?: JournalRecord
}

export interface FoundRecord extends Found {
  readonly row: StoredRow
  readonly record: JournalRecord
}

/**
 * Result of a conditional write. `failed`: the record could not be encoded as a row, so nothing
 * reached the store.
 */
export type Written =
  | { readonly result: 'written'; readonly found: FoundRecord }
  | { readonly result: 'failed'; readonly repair: string; readonly cause: unknown }
  | Exclude<Applied, { readonly result: 'written' }>

/** A write that did not happen, and why. */
export type Unwritten = Extract<Written, { readonly cause: unknown }>

export interface JournalOptions {
  readonly store: OrderStore
  readonly scope: string
  readonly codec: Codec | undefined
  readonly runtime: Runtime
}

/** Milliseconds for which closed records are remembered. */
interface Kept {
  readonly created: number
  readonly rejected: number
}

/** Milliseconds between consecutive removals of old records. */
const PRUNE_INTERVAL = 60 * 60 * 1000

// Times of the last removal, per store: clients that share a store need only one removal.
const pruned = new WeakMap<OrderStore, Map<string, number>>()
const backgrounds = new WeakMap<OrderStore, Map<() => Promise<void>, Journal>>()

/**
 * The write-ahead journal in a store. It reads records, writes them conditionally, and finds out
 * whether a failed write was applied. It decides nothing about orders.
 */
export class Journal {
  readonly store: OrderStore
  readonly scope: string
  readonly #rows: Rows
  readonly #codec: Codec | undefined
  readonly #runtime: Runtime
  /** Background work in progress for the store, each entry with its journal. */
  readonly #background: Map<() => Promise<void>, Journal>

  constructor({ store, scope, codec, runtime }: JournalOptions) {
    this.store = store
    this.scope = scope
    this.#rows = new Rows(store, scope, runtime)
    this.#codec = codec && withRoundTrip(codec)
    this.#runtime = runtime
    this.#background = backgrounds.get(store) ?? new Map()
    backgrounds.set(store, this.#background)
  }

  /**
   * Reads what is stored under a name.
   * @throws {StoreError} with `charged: 'unknown'`, because the record may belong to an earlier
   * call that was charged
   */
  async load(id: string, deadline: Deadline, store: OrderOutbox = this.store): Promise<Found | Interruption> {
    const row = await this.#rows.read(id, deadline, store)
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

  /** The record of a row, or why the row has no usable record. */
  async decode(row: StoredRow): Promise<JournalRecord | 'forgotten' | Unusable> {
    const decoded = await this.#decoded(row, new Deadline(this.#runtime, STORE_TIMEOUT, undefined))
    return decoded instanceof Interruption ? 'unanswered' : decoded
  }

  /**
   * Writes a record if the row has not changed since it was read. After a lost response, reads the
   * row back. Only this write can have made a row with this version and content, because the
   * content includes the call's random `claim`.
   */
  write(
    found: Found,
    content: RecordContent,
    deadline: Deadline,
    store: OrderOutbox = this.store,
  ): Promise<Written> {
    return this.#write(found, content, deadline, store, deadline)
  }

  /** @param sealing deadline of the codec */
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
      const timely = this.#codec === undefined ? await encoded : await this.#rows.bounded(encoded, sealing)
      if (timely instanceof Interruption)
        return {
          result: 'failed',
          repair: 'Repair the codec, which did not encrypt the record in time,',
          cause: undefined,
        }
      row = timely
    } catch (cause) {
      const failed =
        cause instanceof RoundTripError ? 'cannot decrypt what it encrypts' : 'could not encrypt the record'
      return { result: 'failed', repair: `Repair the codec, which ${failed},`, cause }
    }
    const applied = await this.#rows.apply(found.row, row, deadline, store)
    return applied.result === 'written'
      ? { result: 'written', found: { id: found.id, row, record } }
      : applied
  }

  /**
   * Overwrites the record with itself, or inserts a row without a record, so that the store rejects
   * an abandoned write of an earlier call. Needs no codec. Returns false if the store did not
   * confirm the write.
   */
  async fence({ id, row: base }: Found, deadline: Deadline): Promise<boolean> {
    const now = this.#runtime.now()
    const row =
      base === undefined
        ? emptyRow(this.scope, id, now)
        : { ...base, version: base.version + 1, updatedAt: now }
    return (await this.#rows.apply(base, row, deadline, this.store)).result === 'written'
  }

  /**
   * Writes a proof of a charge over the newest version, whichever call wrote that version, and
   * tries again until the proof is stored. Only a proof of a charge may override any other outcome.
   * Returns false if the store did not accept the proof. The write is then retried in the
   * background.
   * @param signal ends the wait, but not the writing; without a signal, the deadline ends the wait
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

  /** Writes the outcome of a call if the version that the call wrote last is still the newest. */
  settle(found: FoundRecord, content: RecordContent, deadline: Deadline): Promise<Written> {
    return this.#learnt(found, content, this.#settling(deadline))
  }

  /**
   * Empties a closed record. Returns false if the record has changed since it was read.
   * @throws {StoreError} if the store did not confirm the removal
   */
  async forget({ row }: FoundRecord, deadline: Deadline): Promise<boolean> {
    const emptied = (): Promise<boolean> =>
      this.store.update(forgottenRow(row, this.#runtime.now()), row.version)
    const otherwise = 'The store did not confirm the removal of the record. Nothing was sent; call again.'
    return await this.#rows.confirmed(emptied, otherwise, deadline)
  }

  /** Runs {@link prune} in the background, at most once an hour. */
  pruneHourly(kept: Kept, reporter: Reporter): void {
    const times = pruned.get(this.store) ?? new Map<string, number>()
    pruned.set(this.store, times)
    const now = this.#runtime.monotonic()
    const last = times.get(this.scope)
    if (last !== undefined && now - last < PRUNE_INTERVAL) return
    times.set(this.scope, now)
    this.prune(kept).catch(({ code }: StoreError) => {
      reporter.log('warn', 'old records could not be removed; the next attempt is in an hour', { code })
    })
  }

  /**
   * Removes closed records that are older than the retention for their state.
   * @throws {StoreError} if the store failed
   */
  async prune(kept: Kept): Promise<void> {
    const pruned = this.#prune(kept)
    // Code that closes the store, or its connections, waits for this removal first.
    const finish = async (): Promise<void> => void (await pruned.catch(() => {}))
    this.#background.set(finish, this)
    await pruned.finally(() => this.#background.delete(finish))
  }

  async #prune(kept: Kept): Promise<void> {
    const limits = {
      createdBefore: await this.#rows.prunableBefore(kept.created),
      rejectedBefore: await this.#rows.prunableBefore(kept.rejected),
    }
    const pruned = (): Promise<number> => this.store.prune(this.scope, limits)
    await this.#rows.confirmed(
      pruned,
      'The store could not remove old records. Nothing was sent; call again.',
    )
  }

  /** Yields the scope's rows with work left for recovery, or those written since a time. */
  rows(which: Which): AsyncGenerator<StoredRow, void, undefined> {
    return this.#rows.all(which)
  }

  /**
   * Makes a last attempt to store every charge that is not stored yet, and ends the background
   * work. With `whole`, does the same for the other journals of the store, because the store is
   * about to close.
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
      // Write the record again if it was forgotten or pruned in the meantime: a proven charge must
      // not get lost.
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

  /** Writes the outcome of a call. The codec gets a short time even after the call's deadline. */
  #learnt(found: Found, content: RecordContent, deadline: Deadline): Promise<Written> {
    const sealing = new Deadline(this.#runtime, Math.max(deadline.remaining(), GRACE), undefined)
    return this.#write(found, content, deadline, this.store, sealing)
  }

  /** Decodes a row within the deadline: a codec may call a key service that never responds. */
  #decoded(
    row: StoredRow,
    deadline: Deadline,
  ): Promise<JournalRecord | 'forgotten' | Unusable | Interruption> {
    const decoded = decodeRow(row, this.#codec)
    return this.#codec === undefined ? decoded : this.#rows.bounded(decoded, deadline)
  }

  /**
   * The deadline for storing a call's outcome. It extends past the call's own deadline, because the
   * call reports whether its outcome is stored.
   * @param signal ends the wait early
   */
  #settling(deadline: Deadline, signal?: AbortSignal): Deadline {
    return deadline.over() === undefined
      ? new Deadline(this.#runtime, deadline.remaining(), signal)
      : new Deadline(this.#runtime, 0, undefined)
  }
}
