import { StoreError } from '../../errors/classes.ts'
import { type Columns, toRow } from '../rows.ts'
import {
  ADD_VERSION,
  CREATE_VERSIONS,
  FIND_KEY,
  FIND_VERSION,
  LOST_KEY,
  SQLITE_MIGRATIONS,
  SQLITE_VERSION,
  sqliteStatements,
} from '../sql/sqlite.ts'
import type { Result, SqlEngine } from '../sql/store.ts'
import { newerTables, type StatementName, type Values } from '../sql/text.ts'
import { codeOf, explain, isNamed } from '../sqlite/failure.ts'
import type { StoreDurability } from '../store.ts'

/** Runs one statement, and returns its rows. A write resolves when it is durable. */
export type Query = (text: string, parameters: readonly (string | number)[]) => Promise<readonly Columns[]>

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
export class CloudflareEngine implements SqlEngine {
  readonly durability: StoreDurability = 'server'
  readonly #binding: Binding

  constructor(binding: Binding) {
    this.#binding = binding
  }

  async run(name: StatementName, values: Values): Promise<Result> {
    const { place, object, read, write } = this.#binding
    if (!complete.has(object)) await this.#migrate()
    const { text, parameters } = STATEMENTS[name]
    const bound = parameters.map((parameter) => {
      const value = values[parameter]
      return typeof value === 'string' ? value : Number(value)
    })
    const reads = name === 'get' || name === 'open' || name === 'list'
    try {
      if (reads) {
        const found = await read(text, bound)
        return { rows: found.map((columns) => toRow(String(values.scope), columns)), written: 0 }
      }
      const { length } = await write(text, bound)
      // The statement writes nothing after a newer version of this package has changed the tables.
      if (length === 0) await this.#state()
      return { rows: [], written: length }
    } catch (error) {
      throw explain(await this.#newerOr(error), reads ? 'read from' : 'write to', place)
    }
  }

  close(): void {}

  /** Reports the upgrade if a newer version of this package made the tables look damaged. */
  async #newerOr(error: unknown): Promise<unknown> {
    const failure = withCode(error)
    // A failure that its code explains, such as that of a disk, may leave the write in the table.
    const misfit = !isNamed(failure) && codeOf(failure).startsWith('SQLITE_')
    if (!misfit && !(error instanceof StoreError)) return failure
    return await this.#state().then(
      () => failure,
      (newer: unknown) => (newer instanceof StoreError ? newer : failure),
    )
  }

  /** Throws a `StoreError` if a newer version of this package has changed the tables. */
  async #state(): Promise<{ readonly version: number; readonly keyed: boolean }> {
    const { place, read } = this.#binding
    const [state] = await read(FIND_STATE, [])
    const version = Number(Reflect.get(Object(state), 'version'))
    if (version > SQLITE_VERSION)
      throw newerTables(version, SQLITE_VERSION, `Cannot use the order store in ${place}`)
    return { version, keyed: Reflect.get(Object(state), 'keyed') === 1 }
  }

  async #migrate(): Promise<void> {
    const { place, object, write } = this.#binding
    try {
      let { version, keyed } = await this.#state().catch((error: unknown) => {
        if (String(error).includes('no such table')) return { version: 0, keyed: false }
        throw error
      })
      if (version < SQLITE_VERSION) {
        // Each step does nothing if another worker has done it in the meantime.
        await write(CREATE_VERSIONS, [])
        for (; version < SQLITE_VERSION; version++) {
          for (const step of SQLITE_MIGRATIONS[version] ?? []) await write(step, [])
          await write(ADD_VERSION, [version + 1])
        }
        keyed = (await this.#state()).keyed
      }
      if (!keyed) throw new StoreError(`Cannot open the order store in ${place}: ${LOST_KEY}`)
      complete.add(object)
    } catch (error) {
      throw explain(withCode(error), 'open', place)
    }
  }
}

/** A failure in the store's own words, which does not tell whether the statement has run. */
export class Unproven extends Error {
  readonly code = 'STORAGE'
}

/** An error of SQLite, as Cloudflare reports it. A response that is quoted contains a brace. */
const SQLITE_ERROR = /^[^{]*: (SQLITE_[A-Z]+)( \(extended: \w+\))?\.?$/

/**
 * Cloudflare reports the code of a failure in its message only. Other messages than those of SQLite
 * may quote a response, and so the rows in it.
 */
function withCode(error: unknown): unknown {
  if (error instanceof StoreError || error instanceof Unproven) return error
  const message = error instanceof Error ? error.message : String(error)
  if (/^(D1_ERROR: )?D1 DB is overloaded/.test(message))
    return new StoreError(
      'The order store in D1 is overloaded: its queue of requests is full. The request was not run. ' +
        'Send fewer requests, or use several databases.',
    )
  const [, code] = SQLITE_ERROR.exec(message) ?? []
  if (code !== undefined) return Object.assign(new Error(message.replace(/\.$/, '')), { code })
  return Object.assign(new Error('the connection or the storage failed. Try again when it can be reached'), {
    code: message.startsWith('D1_ERROR: ') ? 'D1_ERROR' : 'STORAGE',
  })
}
