import { StoreError } from '../../errors.ts'
import { isConflict, isInFailedTransaction, isRefusal } from './failure.ts'
import { CHECK, MARK } from './schema.ts'

/** A value of a statement's parameter. Numbers are handed over as text, which every client passes on exactly. */
export type PostgresParameter = string | boolean

/**
 * Anything that runs a statement with parameters `$1`, `$2` … and returns rows as objects: a `Pool` or `Client` of pg,
 * a `PGlite`, or an adapter around another client.
 */
export interface PostgresClient {
  query(text: string, parameters?: PostgresParameter[]): Promise<{ readonly rows: readonly unknown[] }>
  /**
   * `'I'` if the connection is outside of any transaction. A pg `Client` has this. Without it the store asks the
   * database, two statements more per call; an adapter around a client that never runs another's statement inside a
   * transaction returns `'I'` and saves them.
   */
  getTransactionStatus?(): string | null
}

/** What a query returned. */
export type Row = Readonly<Record<string, unknown>>

/** Runs one statement. */
export type Query = (text: string, parameters?: PostgresParameter[]) => Promise<readonly Row[]>

/** A way to run the statements of one call of the store. */
export interface Session {
  /** `writes` tells whether the result of the action says that it has written. */
  use<T>(action: (query: Query) => Promise<T>, writes?: (result: T) => boolean): Promise<T>
}

/** What pg's pools hand out. */
interface PooledClient extends PostgresClient {
  release(destroy?: boolean): void
  on(event: 'error', listener: () => void): unknown
  removeListener(event: 'error', listener: () => void): unknown
}

interface Pool {
  connect(callback: (error: unknown, client: PooledClient | undefined) => void): void
}

/** The statements of a client, each committed by itself. Never inside a transaction. */
export function sessionOf(client: PostgresClient): Session {
  if (isPool(client)) return new PoolSession(client)
  if (client.getTransactionStatus !== undefined) return new ClientSession(client)
  return new UnknownSession(client)
}

function isPool(client: object): client is Pool {
  // A pg Client has `connect` as well, for another purpose.
  return 'totalCount' in client && 'connect' in client && typeof client.connect === 'function'
}

/** Takes a connection of the pool for every call, so that it can be looked at, and thrown away when it is not in order. */
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

/** A connection of the pool; `connect` without a callback would return it too late to listen in time. */
function take(pool: Pool): Promise<PooledClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (client === undefined) {
        reject(error)
        return
      }
      // A connection that breaks says so by an event as well, which ends a process that does not listen. The event may
      // come with the same data that made the connection ready, and so before anybody who awaits it.
      client.on('error', ignore)
      resolve(client)
    })
  })
}

function ignore(): void {}

/** A single connection that knows whether it is in a transaction. */
class ClientSession implements Session {
  readonly #client: PostgresClient
  /** Resolves when the call before has ended: pg deprecates handing a connection a statement while it runs another. */
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
  // Somebody else's BEGIN may have been waiting in the connection's queue.
  if (writes?.(result) && isInTransaction()) throw insideTransaction(WRITTEN_INSIDE)
  return result
}

/** A client that has to be asked. A mark that outlives its statement means that a transaction keeps it. */
class UnknownSession implements Session {
  readonly #client: PostgresClient

  constructor(client: PostgresClient) {
    this.#client = client
  }

  async use<T>(action: (query: Query) => Promise<T>, writes?: (result: T) => boolean): Promise<T> {
    const query = queryOf(this.#client)
    if (await asksInTransaction(query)) throw insideTransaction(NOTHING)
    const result = await action(repeating(query))
    // The statement that wrote left a mark of its own.
    if (writes?.(result) && (await isMarked(query))) throw insideTransaction(WRITTEN_INSIDE)
    return result
  }
}

/** The statements of a transaction that is the caller's to commit. */
export function transactionOf(client: PostgresClient): Session {
  return {
    use: async (action) => {
      const query = queryOf(client)
      if (isPool(client) || !(await isInLiveTransaction(client, query))) {
        throw new StoreError(
          'The connection handed to `within` is not inside a transaction, or its transaction has failed. ' +
            'Nothing was written. Hand in the connection on which BEGIN was run.',
          { applied: false },
        )
      }
      return await action(query)
    },
  }
}

async function isInLiveTransaction(client: PostgresClient, query: Query): Promise<boolean> {
  const status = client.getTransactionStatus?.()
  if (status === 'T') return true
  if (status === 'I' || status === 'E') return false
  await query(MARK)
  return await isMarked(query)
}

async function asksInTransaction(query: Query): Promise<boolean> {
  try {
    await query(MARK)
    return await isMarked(query)
  } catch (error) {
    if (isInFailedTransaction(error)) return true
    throw error
  }
}

async function isMarked(query: Query): Promise<boolean> {
  return (await query(CHECK))[0]?.['mark'] === 'set'
}

const NOTHING = 'nothing was written'
const WRITTEN_INSIDE = 'the row was written in that transaction'

function insideTransaction(written: typeof NOTHING | typeof WRITTEN_INSIDE): StoreError {
  return new StoreError(
    `The order store cannot be used while its connection is inside a transaction (${written}): a rollback would take ` +
      'an order out of the store after it was sent. Give the store a pool, or a connection of its own; ' +
      'to write an order together with your own data, see `within`.',
    written === NOTHING ? { applied: false } : {},
  )
}

function queryOf(client: PostgresClient): Query {
  return async (text, parameters) => {
    const { rows } = await client.query(text, parameters)
    return rows.map((row) => (typeof row === 'object' && row !== null ? { ...row } : {}))
  }
}

/** How often a statement is run that PostgreSQL rolls back because of others. */
const ATTEMPTS = 5

/**
 * Runs a statement again that was rolled back because of a concurrent one. With `READ COMMITTED`, PostgreSQL's default,
 * that never happens to the store's statements; with the stricter levels it does.
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
