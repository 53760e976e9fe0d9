import type { StoreError } from '../errors/classes.ts'
import type { Reporter } from '../hooks.ts'
import { Deadline, GRACE, Interruption } from '../http/deadline.ts'
import type { Codec } from '../options.ts'
import type { Runtime } from '../runtime.ts'
import type { OrderStore, StoredRow } from '../stores/store.ts'
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

const MAX_MERGES = 8
/**
 * Milliseconds before each attempt to store a proven charge. If all attempts fail, `recover()` or a
 * repetition of the call can still store the charge.
 */
const BACKGROUND_DELAYS: readonly number[] = [1000, 2000, 4000, 8000, 16_000, 30_000, 60_000, 120_000]

export interface Found {
  readonly id: string
  readonly row?: StoredRow
  readonly record?: JournalRecord
}

export interface FoundRecord extends Found {
  readonly row: StoredRow
  readonly record: JournalRecord
}

/** `failed`: the record could not be encoded as a row, so nothing reached the store. */
export type Written =
  | { readonly result: 'written'; readonly found: FoundRecord }
  | { readonly result: 'failed'; readonly repair: string; readonly cause: unknown }
  | Exclude<Applied, { readonly result: 'written' }>

export type Unwritten = Extract<Written, { readonly cause: unknown }>

export interface JournalOptions {
  readonly store: OrderStore
  readonly scope: string
  readonly codec: Codec | undefined
  readonly runtime: Runtime
}

interface RetentionMs {
  readonly created: number
  readonly rejected: number
}

const PRUNE_INTERVAL = 60 * 60 * 1000

const prunedAt = new WeakMap<OrderStore, Map<string, number>>()
const backgrounds = new WeakMap<OrderStore, Map<() => Promise<void>, Journal>>()

export class Journal {
  readonly store: OrderStore
  readonly scope: string
  readonly #rows: Rows
  readonly #codec: Codec | undefined
  readonly #runtime: Runtime
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

  async load(id: string, deadline: Deadline): Promise<Found | Interruption> {
    const row = await this.#rows.read(id, deadline)
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

  async decode(row: StoredRow): Promise<JournalRecord | 'forgotten' | Unusable> {
    const decoded = await this.#decoded(row, new Deadline(this.#runtime, STORE_TIMEOUT, undefined))
    return decoded instanceof Interruption ? 'unanswered' : decoded
  }

  write(found: Found, content: RecordContent, deadline: Deadline): Promise<Written> {
    return this.#write(found, content, deadline, deadline)
  }

  async #write(
    found: Found,
    content: RecordContent,
    deadline: Deadline,
    codecDeadline: Deadline,
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
      const timely =
        this.#codec === undefined ? await encoded : await this.#rows.bounded(encoded, codecDeadline)
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
    const applied = await this.#rows.apply(found.row, row, deadline)
    return applied.result === 'written'
      ? { result: 'written', found: { id: found.id, row, record } }
      : applied
  }

  /**
   * Inserts or rewrites the row, so that the store rejects a write that an earlier call abandoned.
   * Needs no codec, so it works even if the codec fails.
   */
  async fence({ id, row: base }: Found, deadline: Deadline): Promise<boolean> {
    const now = this.#runtime.now()
    const row =
      base === undefined
        ? emptyRow(this.scope, id, now)
        : { ...base, version: base.version + 1, updatedAt: now }
    return (await this.#rows.apply(base, row, deadline)).result === 'written'
  }

  /**
   * Stores a proof of a charge even if another call has changed the record: a charge overrides any
   * other outcome. Returns false if the proof is not stored yet.
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

  settle(found: FoundRecord, content: RecordContent, deadline: Deadline): Promise<Written> {
    return this.#learnt(found, content, this.#settling(deadline))
  }

  async forget({ row }: FoundRecord, deadline: Deadline): Promise<boolean> {
    const emptied = (): Promise<boolean> =>
      this.store.update(forgottenRow(row, this.#runtime.now()), row.version)
    const message =
      'The store did not confirm the removal of the record. Nothing was sent. Repair the store, then call again.'
    return await this.#rows.confirmed(emptied, message, deadline)
  }

  pruneHourly(kept: RetentionMs, reporter: Reporter): void {
    const times = prunedAt.get(this.store) ?? new Map<string, number>()
    prunedAt.set(this.store, times)
    const now = this.#runtime.monotonic()
    const last = times.get(this.scope)
    if (last !== undefined && now - last < PRUNE_INTERVAL) return
    times.set(this.scope, now)
    this.prune(kept).catch(({ code }: StoreError) => {
      reporter.log('warn', 'old records could not be removed; no new attempt for an hour', { code })
    })
  }

  async prune(kept: RetentionMs): Promise<void> {
    const pruned = this.#prune(kept)
    // `flush()` waits for this removal before the store closes its connections.
    const finish = async (): Promise<void> => void (await pruned.catch(() => {}))
    this.#background.set(finish, this)
    await pruned.finally(() => this.#background.delete(finish))
  }

  async #prune(kept: RetentionMs): Promise<void> {
    const limits = {
      createdBefore: await this.#rows.prunableBefore(kept.created),
      rejectedBefore: await this.#rows.prunableBefore(kept.rejected),
    }
    const pruned = (): Promise<number> => this.store.prune(this.scope, limits)
    await this.#rows.confirmed(
      pruned,
      'The store could not remove old records. Nothing was sent. Call again.',
    )
  }

  rows(which: Which): AsyncGenerator<StoredRow, void, undefined> {
    return this.#rows.all(which)
  }

  /**
   * Makes a last attempt to store each proven charge that is not stored yet.
   * @param whole true if the store is about to close: includes the charges of its other clients
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
      // If the record was forgotten or pruned since this call read it, write it again: a proven
      // charge must not get lost.
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

  #learnt(found: Found, content: RecordContent, deadline: Deadline): Promise<Written> {
    // Give the codec time even after the deadline: without encryption, the outcome is not stored.
    const codecDeadline = new Deadline(this.#runtime, Math.max(deadline.remaining(), GRACE), undefined)
    return this.#write(found, content, deadline, codecDeadline)
  }

  /** Has a deadline because a codec may call a key service that never responds. */
  #decoded(
    row: StoredRow,
    deadline: Deadline,
  ): Promise<JournalRecord | 'forgotten' | Unusable | Interruption> {
    const decoded = decodeRow(row, this.#codec)
    return this.#codec === undefined ? decoded : this.#rows.bounded(decoded, deadline)
  }

  /**
   * Omits the deadline's own signal, so that the outcome is stored even if the caller aborts the
   * call.
   */
  #settling(deadline: Deadline, signal?: AbortSignal): Deadline {
    return deadline.over() === undefined
      ? new Deadline(this.#runtime, deadline.remaining(), signal)
      : new Deadline(this.#runtime, 0, undefined)
  }
}
