import { StoreError } from '../../errors/classes.ts'
import { KEYLESS } from './failure.ts'
import { inspection, migration, type Names, SCHEMA_VERSION, type Statements } from './schema.ts'
import type { Query, Row } from './session.ts'

const CANNOT_OPEN = 'Cannot open the order store in PostgreSQL'

/**
 * Creates the tables, or brings them up to date. Throws if the database cannot store orders safely.
 */
export async function migrate(query: Query, names: Names, statements: Statements): Promise<void> {
  let version = await inspect(query, names, statements)
  if (version < SCHEMA_VERSION) {
    await query(migration(names, version))
    version = await inspect(query, names, statements)
  }
  rejectNewer(version, CANNOT_OPEN)
}

/** Throws if a newer version of this package has upgraded the tables. */
export async function checkVersion(query: Query, statements: Statements): Promise<void> {
  rejectNewer(await versionOf(query, statements), 'Cannot use the order store in PostgreSQL')
}

function rejectNewer(version: number, failed: string): void {
  if (version <= SCHEMA_VERSION) return
  throw new StoreError(
    `${failed}: a newer version of customer-ordering-sdk wrote it ` +
      `(schema ${version}, this version supports ${SCHEMA_VERSION}). ` +
      'Update the package; nothing was changed.',
    { applied: false },
  )
}

async function inspect(query: Query, names: Names, statements: Statements): Promise<number> {
  const [database = {}] = await query(...inspection(names))
  const refusal = refusalOf(database, names)
  if (refusal !== undefined) throw new StoreError(`${CANNOT_OPEN}: ${refusal} Nothing was changed.`)
  return database['has_versions'] === 'true' ? await versionOf(query, statements) : 0
}

async function versionOf(query: Query, statements: Statements): Promise<number> {
  return Number((await query(statements.version))[0]?.['version'])
}

function refusalOf(database: Row, { schema }: Names): string | undefined {
  if (database['has_schema'] === undefined)
    return (
      'the client does not return rows as objects keyed by column name. ' +
      "Turn off the client's array rows or its conversion of column names."
    )
  if (database['standby'] === 'true')
    return 'this server is a standby, which lags behind. Connect to the primary.'
  if (database['server_encoding'] !== 'UTF8' || database['client_encoding'] !== 'UTF8')
    return 'the database and the connection must have the encoding UTF8, or strings could come back changed.'
  if (database['has_schema'] !== 'true')
    return `the schema ${schema} does not exist. Create it, or set the option \`schema\`.`
  if (database['persistence'] === 'u')
    return 'its table is UNLOGGED, so a crash of the server empties it. Run ALTER TABLE … SET LOGGED.'
  if (database['lacks_key'] === 'true') return KEYLESS
  return undefined
}
