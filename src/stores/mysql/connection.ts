import { StoreError } from '../../errors/classes.ts'
import { inTurn } from '../sql/server.ts'
import { isFromTable } from './failure.ts'

/** A statement with the options of mysql2 that a caller's pool may have set otherwise. */
export interface MysqlStatement {
  readonly sql: string
  readonly values: (string | Uint8Array)[]
  readonly rowsAsArray: false
  readonly nestTables: false
  readonly namedPlaceholders: false
  readonly typeCast: (field: unknown, next: () => unknown) => unknown
}

/** A promise connection of mysql2. */
export interface MysqlConnection {
  /** Runs one statement without parameters. */
  query(text: string): Promise<readonly unknown[]>
  /** Runs one prepared statement. */
  execute(statement: MysqlStatement): Promise<readonly unknown[]>
}

/** A connection of a promise pool of mysql2. */
export interface MysqlPoolConnection extends MysqlConnection {
  /** Returns the connection to the pool. */
  release(): void
  /** Closes the connection. */
  destroy(): void
}

/** A promise pool of mysql2. */
export interface MysqlPool {
  /** Takes a connection that nothing else uses until it is released. */
  getConnection(): Promise<MysqlPoolConnection>
}

/** A pool or connection of mysql2, of `mysql2/promise` or with a method `promise`. */
export type MysqlClient = MysqlPool | MysqlConnection | { promise(): MysqlPool | MysqlConnection }

/**
 * Returns the rows of a SELECT, or the header of a write.
 *
 * `rowless` says that the statement reads and writes no table of InnoDB.
 */
export type Query = (sql: string, values?: (string | Uint8Array)[], rowless?: boolean) => Promise<unknown>

export function connectionOf(client: MysqlClient): Query {
  const target = 'promise' in client ? client.promise() : client
  if ('getConnection' in target) return (...statement) => queryPool(target, ...statement)
  // Two calls must not share a fence.
  return inTurn((sql, values) => queryShared(target, sql, values))
}

async function queryPool(
  pool: MysqlPool,
  sql: string,
  values?: (string | Uint8Array)[],
  rowless = false,
): Promise<unknown> {
  const connection = await pool.getConnection()
  let sound = false
  try {
    checkStatus(await connection.query(FENCE), true)
    const result = await run(connection, sql, values)
    // Only a statement that uses a table of InnoDB uses up the fence. What is left of it would change
    // the next transaction of the application.
    if (rowless) checkStatus(await connection.query(COMMIT), true)
    sound = true
    return result
  } catch (error) {
    sound = isFromTable(error)
    throw error
  } finally {
    if (sound) connection.release()
    else connection.destroy()
  }
}

async function queryShared(
  connection: MysqlConnection,
  sql: string,
  values?: (string | Uint8Array)[],
): Promise<unknown> {
  checkStatus(await connection.query(FENCE), true)
  // Without waiting between the two: other code that uses the connection could begin a transaction.
  const fence = connection.query(FENCE)
  fence.catch(() => {})
  // First: if the fence fails here, a write has run inside the transaction, and is in doubt.
  const result = await run(connection, sql, values)
  await fence
  return result
}

/**
 * Fails with error 1568 inside a transaction, before anything was read or written.
 *
 * Otherwise, it sets the isolation of the next statement only: the session's own level could let it
 * read what another connection has not committed.
 */
const FENCE = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE'

/** Also in a session with another completion_type, in which a plain COMMIT opens a transaction. */
const COMMIT = 'COMMIT AND NO CHAIN NO RELEASE'

async function run(
  connection: MysqlConnection,
  sql: string,
  values: (string | Uint8Array)[] = [],
): Promise<unknown> {
  const response = await connection.execute({
    ...{ sql, values, rowsAsArray: false, nestTables: false, namedPlaceholders: false },
    typeCast: (_field, next) => next(),
  })
  const [result] = response
  if (!Array.isArray(result)) checkStatus(response, false)
  return result
}

const IN_TRANSACTION = 1
const AUTOCOMMIT = 2

/** The server's flags after a statement prove that the statement has committed by itself. */
function checkStatus([header]: readonly unknown[], before: boolean): void {
  const status: unknown = Reflect.get(Object(header), 'serverStatus')
  if (typeof status === 'number' && (status & (IN_TRANSACTION | AUTOCOMMIT)) === AUTOCOMMIT) return
  throw new StoreError(
    typeof status === 'number'
      ? 'Cannot use the order store in MySQL: autocommit is off on its connection, or a transaction is ' +
          'open, so a rollback could remove an order after it was sent. Set autocommit = 1, and commit ' +
          'before you release a connection.'
      : 'The client of MysqlStore does not show the status of the server. Pass a pool of mysql2/promise.',
    before ? { applied: false } : {},
  )
}
