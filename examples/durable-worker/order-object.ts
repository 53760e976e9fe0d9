import { DurableObject } from 'cloudflare:workers'
import type { PruneOptions, RowPage, StoredRow } from 'customer-ordering-sdk'

/**
 * Maximum characters of `data` in one row. A row of a Durable Object holds 2 MB, and a character
 * takes up to three bytes. An order takes a few hundred characters; longer data continues in the
 * table `more`.
 */
const MOST_CHARACTERS = 500_000

/** Characters of `data` after which a page ends early. Cloudflare rejects a response of 32 MiB. */
const MOST_OF_A_PAGE = 4_000_000

/**
 * Maximum rows that one call of {@link OrderObject.prune} removes. Other calls wait until it ends.
 */
export const PRUNE_BATCH = 500

type Row = Omit<StoredRow, 'scope'>

/**
 * A row of the table `orders`. `parts` counts the rows of `more` that hold the rest of its data.
 */
type Found = {
  readonly id: string
  readonly version: number
  readonly open: number
  readonly state: string
  readonly created_at: number
  readonly updated_at: number
  readonly data: string
  readonly parts: number
}

/**
 * The orders of one scope (an account at a service). Only one object exists for a scope, and it
 * handles one call after the other. Each method below is atomic because it awaits nothing. The
 * object sends no response before its writes are durable.
 */
export class OrderObject<Env = unknown> extends DurableObject<Env> {
  readonly #storage: DurableObjectStorage

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#storage = ctx.storage
    ctx.storage.sql.exec(`
      CREATE TABLE IF NOT EXISTS orders (
        id TEXT PRIMARY KEY,
        version INTEGER NOT NULL,
        open INTEGER NOT NULL,
        state TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        data TEXT NOT NULL,
        parts INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX IF NOT EXISTS open_orders ON orders (id) WHERE open = 1;
      CREATE INDEX IF NOT EXISTS closed_orders ON orders (state, updated_at) WHERE open = 0;
      CREATE TABLE IF NOT EXISTS more (
        id TEXT NOT NULL,
        part INTEGER NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (id, part)
      ) STRICT, WITHOUT ROWID`)
  }

  get(id: string): Row | undefined {
    const [found] = this.#storage.sql.exec<Found>('SELECT * FROM orders WHERE id = ?', id).toArray()
    return found && this.#toRow(found)
  }

  /** Inserts the row, or returns the row that already has its id. */
  insert(row: Row): Row | undefined {
    const current = this.get(row.id)
    if (current === undefined) this.#put(row)
    return current
  }

  /** Replaces the row if the stored row has this version. Returns true if it did. */
  update(row: Row, expectedVersion: number): boolean {
    const [found] = this.#storage.sql
      .exec<{ version: number }>('SELECT version FROM orders WHERE id = ?', row.id)
      .toArray()
    if (found?.version !== expectedVersion) return false
    this.#put(row)
    return true
  }

  /**
   * Pages through the rows by id. Ids never change, so a write between two pages makes the reader
   * miss no row.
   */
  page(which: 'open' | 'all', after: string, since: number, limit: number): RowPage {
    const open = which === 'open' ? 'open = 1 AND' : ''
    const cursor = this.#storage.sql.exec<Found>(
      `SELECT * FROM orders WHERE ${open} id > ? AND updated_at >= ? ORDER BY id LIMIT ?`,
      after,
      since,
      limit + 1,
    )
    const rows: StoredRow[] = []
    let characters = 0
    for (const found of cursor) {
      const last = rows.at(-1)
      if (last !== undefined && (rows.length === limit || characters > MOST_OF_A_PAGE))
        return { rows, next: last.id }
      const row = { scope: '', ...this.#toRow(found) }
      characters += row.data.length
      rows.push(row)
    }
    return { rows }
  }

  /**
   * Removes a batch of closed rows last written before the cutoff time for their state. Returns the
   * number of rows removed.
   */
  prune({ createdBefore, rejectedBefore }: PruneOptions): number {
    return this.#storage.transactionSync(() => {
      const ids = this.#storage.sql
        .exec<{ id: string }>(
          `SELECT id FROM orders WHERE open = 0
             AND (state = 'created' AND updated_at < ? OR state = 'rejected' AND updated_at < ?) LIMIT ?`,
          createdBefore,
          rejectedBefore,
          PRUNE_BATCH,
        )
        .toArray()
      for (const { id } of ids) {
        this.#storage.sql.exec('DELETE FROM orders WHERE id = ?', id)
        this.#storage.sql.exec('DELETE FROM more WHERE id = ?', id)
      }
      return ids.length
    })
  }

  #put({ id, version, open, state, createdAt, updatedAt, data }: Row): void {
    const [first = '', ...rest] = cut(data)
    this.#storage.transactionSync(() => {
      const { sql } = this.#storage
      sql.exec('DELETE FROM more WHERE id = ?', id)
      sql.exec(
        'INSERT OR REPLACE INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
        ...[id, version, open ? 1 : 0, state, createdAt, updatedAt, first, rest.length],
      )
      for (const [part, text] of rest.entries()) sql.exec('INSERT INTO more VALUES (?, ?, ?)', id, part, text)
    })
  }

  #toRow(found: Found): Row {
    const { id, version, open, state, created_at: createdAt, updated_at: updatedAt, parts } = found
    if (state !== 'open' && state !== 'created' && state !== 'rejected')
      throw new Error(`Another program wrote to the table orders: unknown state ${state}.`)
    let { data } = found
    if (parts > 0)
      for (const part of this.#storage.sql.exec<{ data: string }>(
        'SELECT data FROM more WHERE id = ? ORDER BY part',
        id,
      ))
        data += part.data
    return { id, version, open: open === 1, state, createdAt, updatedAt, data }
  }
}

/** Cuts a string into pieces that fit into a row. No piece ends within a surrogate pair. */
function cut(text: string): string[] {
  const pieces: string[] = []
  for (let start = 0; start < text.length; ) {
    let end = start + MOST_CHARACTERS
    if (!text.slice(start, end).isWellFormed()) end--
    pieces.push(text.slice(start, end))
    start = end
  }
  return pieces
}
