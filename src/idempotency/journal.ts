import { defined } from '../defined.ts'
import { StoreError } from '../errors.ts'
import { Deadline, Interruption } from '../http/deadline.ts'
import type { Runtime } from '../runtime.ts'
import {
  type Codec,
  decodeRow,
  encodeRecord,
  forgottenRow,
  type JournalRecord,
  type Unusable,
  unusableError,
} from './record.ts'
import type { OrderStore, RowPage, StoredRow } from './store.ts'

/** How long one operation of a store may take, milliseconds. */
const STORE_TIMEOUT = 10_000
/** How long past the end of a call its store operations may go on, so that what is told is also what is stored. */
const GRACE = 900
/** How often a proven charge is written over other writers' versions before it goes to the background. */
const MAX_MERGES = 8
/** Delays between background attempts to store a proven charge, milliseconds; after the last, `recover()` has to do it. */
const BACKGROUND_DELAYS: readonly number[] = [1000, 2000, 4000, 8000, 16_000, 30_000, 60_000, 120_000]

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

/** What a write sets; version and times are the journal's. */
export type RecordContent = Omit<JournalRecord, 'version' | 'createdAt' | 'updatedAt'>

/** How a conditional write ended. `doubt` means that it may be applied, now or later. */
export type Written =
  | { readonly result: 'written'; readonly found: FoundRecord }
  | { readonly result: 'lost' }
  | { readonly result: 'failed' | 'doubt'; readonly cause: unknown }

/** What the journal needs. */
export interface JournalOptions {
  readonly store: OrderStore
  readonly scope: string
  readonly codec: Codec | undefined
  readonly runtime: Runtime
}

/**
 * The write-ahead journal over a store: reads and conditional writes of records, with an answer to the question that
 * every failed write leaves behind, whether it was applied. It decides nothing about orders.
 */
export class Journal {
  readonly store: OrderStore
  readonly scope: string
  readonly #codec: Codec | undefined
  readonly #runtime: Runtime
  readonly #background = new Set<() => Promise<void>>()

  constructor({ store, scope, codec, runtime }: JournalOptions) {
    this.store = store
    this.scope = scope
    this.#codec = codec
    this.#runtime = runtime
  }

  /**
   * What is stored under a name.
   * @throws {StoreError} `'unknown'`: without reading the record nobody knows what an earlier call did
   */
  async load(id: string, deadline: Deadline): Promise<Found | Interruption> {
    let row: StoredRow | Interruption | undefined
    try {
      row = await this.#bounded(this.store.get(this.scope, id), deadline)
    } catch (cause) {
      throw readError(cause)
    }
    if (row instanceof Interruption) {
      const over = deadline.over()
      if (over !== undefined) return over
      throw readError(undefined)
    }
    return row === undefined ? { id } : await this.open(row)
  }

  /**
   * The record of a row.
   * @throws {StoreError} if it is damaged or a newer package's
   */
  async open(row: StoredRow): Promise<Found> {
    const decoded = await this.decode(row)
    if (typeof decoded === 'object') return { id: row.id, row, record: decoded }
    if (decoded === 'forgotten') return { id: row.id, row }
    throw unusableError(decoded)
  }

  /** The record of a row, or why there is none. */
  decode(row: StoredRow): Promise<JournalRecord | 'forgotten' | Unusable> {
    return decodeRow(row, this.#codec)
  }

  /** Writes a record if nothing changed since it was found. What a lost answer leaves open is read back. */
  async write(found: Found, content: RecordContent, deadline: Deadline): Promise<Written> {
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
      row = await encodeRecord(this.scope, found.id, record, this.#codec)
    } catch (cause) {
      return { result: 'failed', cause }
    }
    const written: Written = { result: 'written', found: { id: found.id, row, record } }
    const pending =
      found.row === undefined
        ? this.#call(() => this.store.insert(row)).then(({ inserted }) => inserted)
        : this.#call(() => this.store.update(row, version - 1))
    let failure: unknown
    try {
      let applied = await this.#bounded(pending, deadline)
      // The write is on its way and may still be applied: knowing is worth a moment past the call's end.
      if (applied instanceof Interruption)
        applied = await new Deadline(this.#runtime, GRACE, undefined).race(pending)
      if (applied === true) return written
      if (applied === false) return { result: 'lost' }
    } catch (cause) {
      failure = cause ?? new Error('the store failed')
    }
    // Read back: the write may have been applied although its answer was lost. The claim tells whose it is.
    const grace = new Deadline(this.#runtime, GRACE, undefined)
    const current = await this.load(found.id, grace).catch(() => new Interruption('deadline'))
    if (current instanceof Interruption) return { result: 'doubt', cause: failure }
    if (current.record?.claim === content.claim && current.row?.version === version) return written
    if (current.row !== undefined && current.row.version >= version) return { result: 'lost' }
    // A write that was answered with an error and is not there is not applied; one without an answer may yet be.
    return { result: failure === undefined ? 'doubt' : 'failed', cause: failure }
  }

  /**
   * Writes what a call learnt over the newest version, whoever wrote that, until it is stored. For proofs of a charge
   * only: they beat every other ending. Returns false if the store could not take it now; it is tried again in the
   * background then.
   */
  async prove(
    found: FoundRecord,
    merge: (newest: JournalRecord) => RecordContent | undefined,
    deadline: Deadline,
  ): Promise<boolean> {
    if (await this.#prove(found, merge, new Deadline(this.#runtime, settleTime(deadline), undefined)))
      return true
    this.#retryInBackground(found, merge)
    return false
  }

  /** Writes the ending of a call if the version that the call wrote last is still the newest. */
  settle(found: FoundRecord, content: RecordContent, deadline: Deadline): Promise<Written> {
    return this.write(found, content, new Deadline(this.#runtime, settleTime(deadline), undefined))
  }

  /** Empties a closed record; false if it changed meanwhile. */
  async forget(found: FoundRecord): Promise<boolean> {
    return await this.store.update(forgottenRow(found.row), found.row.version)
  }

  /** All rows of the scope, page by page: those with work left for recovery, or those written since a time. */
  async *rows(
    which: { readonly open: true } | { readonly since: number },
  ): AsyncGenerator<StoredRow, void, undefined> {
    let after: string | undefined
    do {
      const options = { limit: 100, ...defined({ after }) }
      let page: RowPage
      try {
        page = await ('open' in which
          ? this.store.listOpen(this.scope, options)
          : this.store.list(this.scope, { ...options, since: which.since }))
      } catch (cause) {
        throw readError(cause)
      }
      yield* page.rows
      after = page.next
    } while (after !== undefined)
  }

  /** Tries once more what still waits to be stored. */
  async flush(): Promise<void> {
    for (const attempt of [...this.#background]) await attempt()
  }

  async #prove(
    found: FoundRecord,
    merge: (newest: JournalRecord) => RecordContent | undefined,
    deadline: Deadline,
  ): Promise<boolean> {
    let newest = found
    for (let round = 0; round < MAX_MERGES; round++) {
      const content = merge(newest.record)
      if (content === undefined) return true
      const { result } = await this.write(newest, content, deadline)
      if (result === 'written') return true
      if (result !== 'lost') return false
      const current = await this.load(found.id, deadline).catch(() => undefined)
      if (current === undefined || current instanceof Interruption) return false
      if (current.record === undefined || current.row === undefined) return false
      newest = { id: current.id, row: current.row, record: current.record }
    }
    return false
  }

  #retryInBackground(found: FoundRecord, merge: (newest: JournalRecord) => RecordContent | undefined): void {
    let cancel: () => void = () => {}
    let tries = 0
    const attempt = async (): Promise<void> => {
      cancel()
      this.#background.delete(attempt)
      const stored = await this.#prove(found, merge, new Deadline(this.#runtime, STORE_TIMEOUT, undefined))
      if (!stored) schedule()
    }
    const schedule = (): void => {
      const delay = BACKGROUND_DELAYS[tries++]
      if (delay === undefined) return
      this.#background.add(attempt)
      cancel = this.#runtime.setTimer(() => void attempt(), delay)
    }
    schedule()
  }

  #bounded<T>(pending: Promise<T>, deadline: Deadline): Promise<T | Interruption> {
    const time = Math.min(STORE_TIMEOUT, deadline.remaining())
    return new Deadline(this.#runtime, time, deadline.signal).race(pending)
  }

  /** A store that throws instead of rejecting has failed all the same. */
  async #call<T>(operation: () => Promise<T>): Promise<T> {
    return await operation()
  }
}

/** A call's ending is stored even if the call has no time left: what is told must be what is stored. */
function settleTime(deadline: Deadline): number {
  return Math.min(STORE_TIMEOUT, Math.max(deadline.remaining(), 0)) + GRACE
}

function readError(cause: unknown): StoreError {
  return new StoreError(
    'The store could not be read, so nothing was sent by this call; whether an earlier one was charged is not known. Repair the store and call again with the same request.',
    { charged: 'unknown', ...(cause === undefined ? {} : { cause }) },
  )
}
