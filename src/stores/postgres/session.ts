import { StoreError } from '../../errors/classes.ts'
import { isConflict, isInFailedTransaction, isRefusal } from './failure.ts'
import { READ_MARK, SET_MARK } from './schema.ts'

/**
 * Parameter of a statement. The store passes numbers as strings, which every client transmits
 * exactly.
 */
export type PostgresParameter = string | boolean

/**
 * Anything that runs a statement with parameters `$1`, `$2` … and returns rows as objects: a `Pool`
 * or `Client` of pg, a `PGlite`, or an adapter around another client.
 */
export interface PostgresClient {
  /** Runs one statement with its parameters. */
  query(text: string, parameters?: PostgresParameter[]): Promise<{ readonly rows: readonly unknown[] }>
  /**
   * Returns `'I'` if the connection is not inside a transaction. The `Client` of a recent pg has
   * this method. Without it, the store needs two more statements per call, or three if the call
   * writes a row. An adapter may always return `'I'` if no other code begins transactions on its
   * client.
   */
  getTransactionStatus?(): string | null
}

export type Row = Readonly<Record<string, unknown>>

export type Query = (text: string, parameters?: PostgresParameter[]) => Promise<readonly Row[]>

export interface Session {
  /** `writes` returns true for a result that means that the action wrote a row. */
  use<T>(action: (query: Query) => Promise<T>, writes?: (result: T) => boolean): Promise<T>
}

interface PooledClient extends PostgresClient {
  release(destroy?: boolean): void
  on(event: 'error', listener: () => void): unknown
  removeListener(event: 'error', listener: () => void): unknown
}

interface Pool {
  connect(callback: (error: unknown, client: PooledClient | undefined) => void): void
}

export function sessionOf(client: PostgresClient): Session {
  if (isPool(client)) return new PoolSession(client)
  if (client.getTransactionStatus !== undefined) return new ClientSession(client)
  return new UnknownSession(client)
}

function isPool(client: object): client is Pool {
  // A pg `Client` also has a method `connect`, but no `totalCount`.
  return 'totalCount' in client && 'connect' in client && typeof client.connect === 'function'
}

class PoolSession implements Session {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async use<T>(action: (query: Query) => Promise<T>, writes?: (result: T) => boolean): Promise<T> {
    const client = await take(this.#pool)
    let sound = false
    try {
      const result = await useKnown(client, action, writes)
      sound = true
      return result
    } catch (error) {
      sound = isRefusal(error)
      throw error
    } finally {
      client.removeListener('error', ignore)
      client.release(!sound)
    }
  }
}

function take(pool: Pool): Promise<PooledClient> {
  return new Promise((resolve, reject) => {
    // A broken connection emits an `error` event, which ends the process if nobody listens. The
    // event may arrive with the data that made the connection ready. Only a callback runs early
    // enough to attach the listener: code that awaits a promise runs later.
    pool.connect((error, client) => {
      if (client === undefined) {
        reject(error)
        return
      }
      client.on('error', ignore)
      resolve(client)
    })
  })
}

function ignore(): void {}

class ClientSession implements Session {
  readonly #client: PostgresClient
  /**
   * Resolves when the previous call has ended: pg deprecates sending a statement while another one
   * runs on the connection.
   */
  #last: Promise<unknown> = Promise.resolve()

  constructor(client: PostgresClient) {
    this.#client = client
  }

  use<T>(action: (query: Query) => Promise<T>, writes?: (result: T) => boolean): Promise<T> {
    const result = this.#last.then(() => useKnown(this.#client, action, writes))
    this.#last = result.catch(ignore)
    return result
  }
}

async function useKnown<T>(
  client: PostgresClient,
  action: (query: Query) => Promise<T>,
  writes: ((result: T) => boolean) | undefined,
): Promise<T> {
  const isInTransaction = (): boolean => ['T', 'E'].includes(client.getTransactionStatus?.() ?? '')
  if (isInTransaction()) throw insideTransaction(NOTHING)
  const result = await action(repeating(queryOf(client)))
  // Other code may have queued a BEGIN, which then ran before the action's statements.
  if (writes?.(result) && isInTransaction()) throw insideTransaction(WRITTEN_INSIDE)
  return result
}

/**
 * Detects an open transaction by a mark that ends with its transaction. If a later statement still
 * sees the mark, a transaction is open.
 */
class UnknownSession implements Session {
  readonly #client: PostgresClient

  constructor(client: PostgresClient) {
    this.#client = client
  }

  async use<T>(action: (query: Query) => Promise<T>, writes?: (result: T) => boolean): Promise<T> {
    const query = queryOf(this.#client)
    if (await asksInTransaction(query)) throw insideTransaction(NOTHING)
    const result = await action(repeating(query))
    // The statement that wrote the row also set the mark.
    if (writes?.(result) && (await isMarked(query))) throw insideTransaction(WRITTEN_INSIDE)
    return result
  }
}

async function asksInTransaction(query: Query): Promise<boolean> {
  try {
    await query(SET_MARK)
    return await isMarked(query)
  } catch (error) {
    if (isInFailedTransaction(error)) return true
    throw error
  }
}

async function isMarked(query: Query): Promise<boolean> {
  return (await query(READ_MARK))[0]?.['mark'] === 'set'
}

const NOTHING = 'nothing was written'
const WRITTEN_INSIDE = 'the row was written in that transaction'

function insideTransaction(written: typeof NOTHING | typeof WRITTEN_INSIDE): StoreError {
  return new StoreError(
    `The order store cannot be used while its connection is inside a transaction (${written}): ` +
      'a rollback could remove an order from the store after it was sent. Give the store a pool, or ' +
      'its own connection.',
    written === NOTHING ? { applied: false } : {},
  )
}

function queryOf(client: PostgresClient): Query {
  return async (text, parameters) => {
    const rows = rowsOf(await client.query(text, parameters))
    return rows.map((row) => (typeof row === 'object' && row !== null ? { ...row } : {}))
  }
}

const NO_ROWS =
  "The result of the order store's database client has no `rows`. The client's `query` must return " +
  '`{ rows }`, each row an object keyed by column name.'

/** TypeORM returns no `{ rows }`, but the rows themselves, or `[rows, count]` after an UPDATE. */
function rowsOf(result: unknown): readonly unknown[] {
  const rows: unknown = Array.isArray(result) ? result : Reflect.get(Object(result), 'rows')
  if (!Array.isArray(rows)) throw new StoreError(NO_ROWS)
  const [first]: unknown[] = rows
  return rows === result && Array.isArray(first) ? first : rows
}

const ATTEMPTS = 5

/**
 * Reruns a statement that PostgreSQL rolled back because of a concurrent one, as it may do at
 * isolation levels stricter than the default, `READ COMMITTED`.
 */
function repeating(query: Query): Query {
  return async (text, parameters) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await query(text, parameters)
      } catch (error) {
        if (!isConflict(error) || attempt === ATTEMPTS) throw error
        await new Promise<void>((resolve) => setTimeout(resolve, Math.random() * 10 * 2 ** attempt))
      }
    }
  }
}
