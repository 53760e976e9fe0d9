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
import { explain } from '../sqlite/failure.ts'
import type { StoreDurability } from '../store.ts'

export type Parameter = string | number

/** Runs one statement, and returns its rows. A write resolves when it is durable. */
export type Query = (text: string, parameters: readonly Parameter[]) => Promise<readonly Columns[]>

/** How Cloudflare's SQLite is reached. */
export interface Binding {
  /** Where messages say that the store is. */
  readonly place: string
  /** The platform's object. All stores over it check the tables once. */
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

/** The SQLite of D1 and of Durable Objects, where no call has a connection of its own. */
export class CloudflareEngine implements SqlEngine {
  readonly durability: StoreDurability = 'server'
  readonly #binding: Binding
  #migrated: Promise<void> | undefined

  constructor(binding: Binding) {
    this.#binding = binding
  }

  async run(name: StatementName, values: Values): Promise<Result> {
    this.#migrated ??= this.#migrate().catch((error) => {
      this.#migrated = undefined
      throw error
    })
    await this.#migrated
    const { text, parameters } = STATEMENTS[name]
    const bound = parameters.map((parameter) => {
      const value = values[parameter]
      return typeof value === 'string' ? value : Number(value)
    })
    if (name === 'get' || name === 'open' || name === 'list') {
      const rows = await this.#explained('read from', async () =>
        (await this.#binding.read(text, bound)).map((found) => toRow(String(values.scope), found)),
      )
      return { rows, written: 0 }
    }
    const written = await this.#explained('write to', async () => {
      const { length } = await this.#binding.write(text, bound)
      // The statement writes nothing after a newer version of this package has changed the tables.
      if (length === 0) await this.#checkVersion()
      return length
    })
    return { rows: [], written }
  }

  close(): void {}

  async #explained<T>(task: 'read from' | 'write to', action: () => Promise<T>): Promise<T> {
    try {
      return await action()
    } catch (error) {
      throw this.#explain(await this.#newerOr(error), task)
    }
  }

  #explain(error: unknown, task: 'open' | 'read from' | 'write to'): StoreError {
    return explain(withCode(error), task, this.#binding.place)
  }

  /** Reports the upgrade if a newer version of this package made the tables look damaged. */
  async #newerOr(error: unknown): Promise<unknown> {
    if (!(error instanceof StoreError) && !String(error).includes('SQLITE_')) return error
    return await this.#checkVersion().then(
      () => error,
      (newer: unknown) => (newer instanceof StoreError ? newer : error),
    )
  }

  async #checkVersion(): Promise<void> {
    const [found] = await this.#binding.read(FIND_VERSION, [])
    checkVersion(Number(Reflect.get(Object(found), 'version')), `Cannot use ${this.#store}`)
  }

  get #store(): string {
    return `the order store in ${this.#binding.place}`
  }

  async #migrate(): Promise<void> {
    const { object, read, write } = this.#binding
    if (complete.has(object)) return
    const state = async (): Promise<{ readonly version: number; readonly keyed: boolean }> => {
      const [found] = await read(FIND_STATE, [])
      return {
        version: Number(Reflect.get(Object(found), 'version')),
        keyed: Reflect.get(Object(found), 'keyed') === 1,
      }
    }
    try {
      let { version, keyed } = await state().catch((error: unknown) => {
        if (!/no such table/.test(String(error))) throw error
        return { version: 0, keyed: false }
      })
      checkVersion(version, `Cannot open ${this.#store}`)
      if (version < SQLITE_VERSION) {
        // Each step does nothing if another worker has done it in the meantime.
        await write(CREATE_VERSIONS, [])
        for (; version < SQLITE_VERSION; version++) {
          for (const step of SQLITE_MIGRATIONS[version] ?? []) await write(step, [])
          await write(ADD_VERSION, [version + 1])
        }
        ;({ keyed } = await state())
      }
      if (!keyed) throw new StoreError(`Cannot open ${this.#store}: ${LOST_KEY}`)
      complete.add(object)
    } catch (error) {
      throw this.#explain(error, 'open')
    }
  }
}

function checkVersion(found: number, failed: string): void {
  if (found > SQLITE_VERSION) throw newerTables(found, SQLITE_VERSION, failed)
}

/** Cloudflare reports the code of a failure in its message only. */
function withCode(error: unknown): unknown {
  if (error instanceof StoreError) return error
  const message = error instanceof Error ? error.message : String(error)
  if (message.includes('D1 DB is overloaded'))
    return new StoreError(
      'The order store in D1 is overloaded: its queue of requests is full. The request was not run. ' +
        'Send fewer requests, or use several databases.',
    )
  const code = message.match(/\b(SQLITE|D1)_[A-Z]+\b/g)?.at(-1) ?? 'STORAGE'
  return Object.assign(new Error(message.replace(/\.$/, '')), { code })
}
