import { StoreError } from '../../errors/classes.ts'
import { type Engine, isRead, type Operation, type Result, type Values } from '../engine.ts'
import type { Failures } from '../failure.ts'
import {
  FIND_KEY,
  FIND_VERSION,
  LOST_KEY,
  type Query,
  runWith,
  SQLITE_MIGRATION,
  SQLITE_VERSION,
  sqliteStatements,
} from '../sql/sqlite.ts'
import { newerTables } from '../sql/text.ts'
import { isNamed, ownMessage, sqliteFailures } from '../sqlite/failure.ts'
import type { StoreDurability } from '../store.ts'

/** How Cloudflare's SQLite is reached. */
export interface Binding {
  /** Where messages say that the store is. */
  readonly place: string
  /** The platform's object. The stores over it check the tables once. */
  readonly object: object
  readonly read: Query
  readonly write: Query
}

const STATEMENTS = sqliteStatements('data')

/** One round trip instead of two. */
const FIND_STATE = `SELECT (${FIND_VERSION}) AS version, EXISTS (${FIND_KEY}) AS keyed`

/**
 * The objects whose tables are complete. A table that is missing later was dropped, and is not
 * created again: the orders in it may have been charged.
 */
const complete = new WeakSet<object>()

/** The SQLite of D1 and of Durable Objects. */
export class CloudflareEngine implements Engine {
  readonly durability: StoreDurability = 'server'
  readonly failures: Failures
  readonly #binding: Binding

  constructor(binding: Binding) {
    this.#binding = binding
    this.failures = failuresOf(binding.place)
  }

  async open(): Promise<void> {
    const { place, object, write } = this.#binding
    if (complete.has(object)) return
    let { version, keyed } = await this.#state().catch((error: unknown) => {
      if (String(error).includes('no such table')) return { version: 0, keyed: false }
      throw error
    })
    if (version > SQLITE_VERSION) throw this.#newer(version)
    if (version < SQLITE_VERSION) {
      // Each step does nothing if another worker has done it in the meantime.
      for (const step of SQLITE_MIGRATION) await write(step, [])
      keyed = (await this.#state()).keyed
    }
    if (!keyed) throw new StoreError(`Cannot open the order store in ${place}: ${LOST_KEY}`)
    complete.add(object)
  }

  async run(operation: Operation, values: Values): Promise<Result> {
    const { read, write } = this.#binding
    return await runWith(isRead(operation) ? read : write, STATEMENTS[operation], operation, values)
  }

  async refusal(): Promise<StoreError | undefined> {
    const { version } = await this.#state()
    return version > SQLITE_VERSION ? this.#newer(version) : undefined
  }

  /** A failure that its code explains, such as that of a disk, may leave the write in the table. */
  isMisfit(error: unknown): boolean {
    const code = codeOf(error)
    return error instanceof StoreError || (code.startsWith('SQLITE_') && !isNamed(code))
  }

  async #state(): Promise<{ readonly version: number; readonly keyed: boolean }> {
    const [state] = await this.#binding.read(FIND_STATE, [])
    const { version, keyed } = Object(state)
    return { version: Number(version), keyed: keyed === 1 }
  }

  #newer(version: number): StoreError {
    return newerTables(version, SQLITE_VERSION, `Cannot use the order store in ${this.#binding.place}`)
  }
}

/** A failure in the store's own words, which does not tell whether the statement has run. */
export class Unproven extends Error {}

/** An error of SQLite, as Cloudflare reports it. A response that is quoted contains a brace. */
const SQLITE_ERROR = /^[^{]*: (SQLITE_[A-Z]+)( \(extended: \w+\))?\.?$/

/** Cloudflare reports the code of a failure in its message only. */
function codeOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  if (/^(D1_ERROR: )?D1 DB is overloaded/.test(message)) return 'OVERLOADED'
  const other = message.startsWith('D1_ERROR: ') ? 'D1_ERROR' : 'STORAGE'
  return error instanceof Unproven ? 'STORAGE' : (SQLITE_ERROR.exec(message)?.[1] ?? other)
}

function failuresOf(place: string): Failures {
  const sqlite = sqliteFailures(place)
  const overloaded = 'its queue of requests is full. Send fewer requests, or use several databases.'
  return {
    place,
    troubles: [...sqlite.troubles, [overloaded, 'OVERLOADED']],
    notApplied: new RegExp(`${sqlite.notApplied.source}|^OVERLOADED$`),
    codeOf,
    // Other messages than those of SQLite may quote a response, and so the rows in it.
    otherwise: (code, error) =>
      error instanceof Unproven || code.startsWith('SQLITE_')
        ? ownMessage(error)
        : 'the connection or the storage failed. Try again when it can be reached.',
  }
}
