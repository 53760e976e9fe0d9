import { StoreError } from '../../errors/classes.ts'
import { inTurn } from '../sql/server.ts'
import { isRefusal } from './failure.ts'

/**
 * Parameter of a statement. The store passes numbers as strings, which every client transmits
 * exactly.
 */
export type PostgresParameter = string | boolean

/**
 * Anything that runs a statement with parameters `$1`, `$2` … and returns rows as objects: a `Pool`
 * or `Client` of pg, a `PGlite`, or an adapter around another client.
 *
 * Each call of the store is one statement, so an adapter may use another connection for each.
 */
export interface PostgresClient {
  /** Runs one statement with its parameters. */
  query(text: string, parameters?: PostgresParameter[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** Runs a statement that returns one row, and returns its column `result`. */
export type Query = (text: string, parameters?: PostgresParameter[]) => Promise<string | undefined>

export interface Connection {
  readonly query: Query
  /**
   * True if the client does not show PostgreSQL's warnings.
   *
   * Otherwise, `query` throws after a statement with a warning.
   */
  readonly deaf: boolean
}

interface Emitter {
  on(event: 'error' | 'notice', listener: (subject: unknown) => void): unknown
  removeListener(event: 'error' | 'notice', listener: (subject: unknown) => void): unknown
}

interface PooledClient extends PostgresClient, Emitter {
  release(destroy?: boolean): void
}

interface Pool {
  connect(callback: (error: unknown, client: PooledClient | undefined) => void): void
}

export function connectionOf(client: PostgresClient): Connection {
  if (isPool(client)) return { query: (...statement) => queryPool(client, statement), deaf: false }
  if (!isEmitter(client)) return { query: (...statement) => run(client, statement), deaf: true }
  // pg deprecates sending a statement while another one runs on the connection.
  return { query: inTurn((...statement) => listening(client, statement)), deaf: false }
}

function isPool(client: object): client is Pool {
  // A pg `Client` also has a method `connect`, but no `totalCount`.
  return 'totalCount' in client && 'connect' in client && typeof client.connect === 'function'
}

function isEmitter(client: PostgresClient): client is PostgresClient & Emitter {
  return 'removeListener' in client && 'on' in client && typeof client.on === 'function'
}

type Statement = Parameters<Query>

async function queryPool(pool: Pool, statement: Statement): Promise<string | undefined> {
  const client = await take(pool)
  let sound = false
  try {
    const result = await listening(client, statement)
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

/**
 * If somebody cancels a COMMIT that waits for a synchronous standby, PostgreSQL reports success
 * with a warning (class 01).
 *
 * A failover could then lose the row.
 */
async function listening(
  client: PostgresClient & Emitter,
  statement: Statement,
): Promise<string | undefined> {
  let warned = false
  const onNotice = (notice: unknown): void => {
    warned ||= String(Reflect.get(Object(notice), 'code')).startsWith('01')
  }
  client.on('notice', onNotice)
  try {
    const result = await run(client, statement)
    if (!warned) return result
  } finally {
    client.removeListener('notice', onNotice)
  }
  throw new StoreError(
    'PostgreSQL reported a warning instead of a plain success: the wait for a synchronous standby was ' +
      'probably cancelled, so a failover could lose the row. Check the standbys.',
  )
}

/** postgres.js returns the rows themselves instead of `{ rows }`. */
async function run(client: PostgresClient, statement: Statement): Promise<string | undefined> {
  const answer: unknown = await client.query(...statement)
  const rows: unknown = Array.isArray(answer) ? answer : Reflect.get(Object(answer), 'rows')
  if (!Array.isArray(rows)) {
    throw new StoreError(
      "The result of the order store's database client has no `rows`. The client's `query` must return " +
        '`{ rows }`, each row an object keyed by column name.',
    )
  }
  const [row]: unknown[] = rows
  const result: unknown = Reflect.get(Object(row), 'result')
  if (row !== undefined && result === undefined) {
    throw new StoreError(
      "The order store's database client does not return rows as objects keyed by column name. " +
        "Turn off the client's array rows.",
    )
  }
  return typeof result === 'string' ? result : undefined
}
