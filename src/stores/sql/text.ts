import { StoreError } from '../../errors/classes.ts'
import type { Operation, Values } from '../engine.ts'

type Parameter = keyof Values

const PARAMETERS: readonly Parameter[] = [
  ...(['scope', 'id', 'version', 'open', 'state', 'createdAt', 'updatedAt', 'data'] as const),
  ...(['expected', 'since', 'before', 'limit'] as const),
]

/** Where the SQL of one engine differs from that of the others. */
export interface Dialect {
  /** The quoted name of the table of rows. */
  readonly rows: string
  /** The quoted name of the table that contains the versions of the tables. */
  readonly versions: string
  /** Column types. `key` and `data` must compare and return strings byte by byte. */
  readonly types: Readonly<Record<'key' | 'data' | 'number' | 'flag' | 'state', string>>
  /** Indexes, for an engine that can only declare them with the table. */
  readonly keys?: string
  /** What follows the closing parenthesis of a table. */
  readonly tableOptions?: string
  /**
   * A condition of every write. The server refuses the write where it is false, for example after a
   * newer version of this package has changed the tables.
   */
  readonly guard: string
  /** `FROM DUAL`, for an engine that needs it in a SELECT without a table. */
  readonly dual?: string
  /** Ends an INSERT that does nothing if the key exists. */
  readonly ifAbsent?: string
  /** Ends a write, for an engine that counts written rows by returning them. */
  readonly returning?: string
  /** Returns rows that satisfy a condition. `order` is empty for a single row. */
  select(condition: string, order: '' | 'id' | 'updated_at, id'): string
  /** Deletes at most `BATCH` of the rows that satisfy a condition. */
  deleteSome(condition: string): string
}

const COLUMNS = 'scope, id, version, open, state, created_at, updated_at, data'

/** `scope` is omitted: the caller knows it. */
export function columnsOf(data = 'data'): string {
  return `id, version, open, state, created_at AS createdAt, updated_at AS updatedAt, ${data} AS data`
}

export function table({ rows, types, keys = '', tableOptions = '' }: Dialect): string {
  return `CREATE TABLE IF NOT EXISTS ${rows} (
      scope ${types.key} NOT NULL,
      id ${types.key} NOT NULL,
      version ${types.number} NOT NULL,
      open ${types.flag} NOT NULL,
      state ${types.state} NOT NULL,
      created_at ${types.number} NOT NULL,
      updated_at ${types.number} NOT NULL,
      data ${types.data} NOT NULL,
      PRIMARY KEY (scope, id)${keys}
    ) ${tableOptions}`
}

/**
 * The last index contains the state: without it, `prune` would have to read every old created row
 * to find the rejected ones.
 */
export function indexes(rows: string, names: Readonly<Record<'open' | 'list' | 'closed', string>>): string[] {
  return [
    `CREATE INDEX IF NOT EXISTS ${names.open} ON ${rows} (scope, id) WHERE open = TRUE`,
    `CREATE INDEX IF NOT EXISTS ${names.list} ON ${rows} (scope, updated_at, id)`,
    `CREATE INDEX IF NOT EXISTS ${names.closed} ON ${rows} (scope, state, updated_at) WHERE open = FALSE`,
  ]
}

/** False after a newer version of this package has changed the tables. */
export function notNewer(versions: string, version: number): string {
  return `NOT EXISTS (SELECT 1 FROM ${versions} WHERE version > ${version})`
}

/** Every statement reads or writes rows of one scope, and is the only one of its transaction. */
export function statementsOf(dialect: Dialect): Readonly<Record<Operation, string>> {
  const { rows, guard, dual = '', ifAbsent = '', returning = '' } = dialect
  return {
    get: dialect.select('scope = :scope AND id = :id', ''),
    open: dialect.select('scope = :scope AND open = TRUE AND id > :id', 'id'),
    // MySQL would read the whole scope for `(updated_at, id) > (:since, :id)`.
    list: dialect.select(
      'scope = :scope AND updated_at >= :since AND (updated_at > :since OR id > :id)',
      'updated_at, id',
    ),
    insert: `INSERT INTO ${rows} (${COLUMNS})
      SELECT :scope, :id, :version, :open, :state, :createdAt, :updatedAt, :data ${dual} WHERE ${guard} ${ifAbsent}${returning}`,
    update: `UPDATE ${rows}
      SET version = :version, open = :open, state = :state,
        created_at = :createdAt, updated_at = :updatedAt, data = :data
      WHERE scope = :scope AND id = :id AND version = :expected AND ${guard}${returning}`,
    prune:
      dialect.deleteSome(
        `scope = :scope AND open = FALSE AND state = :state AND updated_at < :before AND ${guard}`,
      ) + returning,
  }
}

/** Quoted names, too: the caller's name of a table may contain `:open`. */
const PLACEHOLDER = new RegExp(`"[^"]*"|\`[^\`]*\`|:(${PARAMETERS.join('|')})\\b`, 'g')

/** Replaces each `:name` outside of quoted names by the placeholder of an engine. */
export function withPlaceholders(text: string, placeholder: (name: Parameter) => string): string {
  return text.replace(PLACEHOLDER, (found) => {
    const name = PARAMETERS.find((known) => `:${known}` === found)
    return name === undefined ? found : placeholder(name)
  })
}

/** A statement with `?` for each value, and the names of the values in their order. */
export interface Statement {
  readonly text: string
  readonly parameters: readonly Parameter[]
}

/** Makes something for each operation. */
export function forEach<T>(make: (operation: Operation) => T): Readonly<Record<Operation, T>> {
  return {
    get: make('get'),
    open: make('open'),
    list: make('list'),
    insert: make('insert'),
    update: make('update'),
    prune: make('prune'),
  }
}

export function positionalStatements(dialect: Dialect): Readonly<Record<Operation, Statement>> {
  const statements = statementsOf(dialect)
  return forEach((operation) => positional(statements[operation]))
}

/** The values of a statement in their order, as the client accepts them. */
export function bind<T>(
  { parameters }: Statement,
  values: Values,
  encode: (value: string | number | boolean) => T,
): T[] {
  return parameters.map((parameter) => encode(values[parameter] ?? ''))
}

function positional(text: string): Statement {
  const parameters: Parameter[] = []
  const numberless = withPlaceholders(text, (name) => {
    parameters.push(name)
    return '?'
  })
  return { text: numberless, parameters }
}

export function newerTables(found: number | string, supported: number, failed: string): StoreError {
  return new StoreError(
    `${failed}: a newer version of customer-ordering-sdk wrote it ` +
      `(schema ${found}, this version supports ${supported}). ` +
      'Update the package; nothing was changed.',
    { applied: false },
  )
}
