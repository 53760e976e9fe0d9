import { StoreError } from '../../errors/classes.ts'
import { KEYLESS } from '../sql/server.ts'
import { newerTables } from '../sql/text.ts'
import type { Query } from './connection.ts'
import { inspection, migration, type Names, SCHEMA_VERSION, type Statements } from './schema.ts'

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
  if (version > SCHEMA_VERSION) throw newerTables(version, SCHEMA_VERSION, CANNOT_OPEN)
}

async function inspect(query: Query, names: Names, { version }: Statements): Promise<number> {
  const database: Facts = Object(JSON.parse((await query(...inspection(names))) ?? '{}'))
  const refusal = refusalOf(database, names)
  if (refusal !== undefined) throw new StoreError(`${CANNOT_OPEN}: ${refusal} Nothing was changed.`)
  const found = database.hasVersions ? Number(await query(version)) : 0
  // A backup of the tables does not contain the procedures.
  return database.hasProcedures || found > SCHEMA_VERSION ? found : 0
}

type Facts = Readonly<
  Record<'standby' | 'hasSchema' | 'hasVersions' | 'hasProcedures' | 'lacksKey', boolean>
> &
  Readonly<Record<'serverEncoding' | 'clientEncoding' | 'persistence', string>>

function refusalOf(database: Facts, { schema }: Names): string | undefined {
  if (database.standby) return 'this server is a standby, which lags behind. Connect to the primary.'
  if (database.serverEncoding !== 'UTF8' || database.clientEncoding !== 'UTF8')
    return 'the database and the connection must have the encoding UTF8, or strings could come back changed.'
  if (!database.hasSchema)
    return `the schema ${schema} does not exist. Create it, or set the option \`schema\`.`
  if (database.persistence === 'u')
    return 'its table is UNLOGGED, so a crash of the server empties it. Run ALTER TABLE … SET LOGGED.'
  if (database.lacksKey) return KEYLESS
  return undefined
}
