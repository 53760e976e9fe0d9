import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { explain } from '../stores/failure.ts'
import { type MysqlConnection, type MysqlPool, MysqlStore } from '../stores/mysql.ts'
import { fromStored } from '../stores/postgres/text.ts'
import { type PostgresClient, PostgresStore } from '../stores/postgres.ts'
import { scopeOfKey } from '../stores/redis/rows.ts'
import { type IoredisClient, type NodeRedisClient, RedisStore } from '../stores/redis.ts'
import { DEFAULT_BUSY_TIMEOUT, open } from '../stores/sqlite/database.ts'
import { sqliteFailures } from '../stores/sqlite/failure.ts'
import { nodeModule } from '../stores/sqlite/files.ts'
import { SqliteStore } from '../stores/sqlite.ts'
import type { OrderStore } from '../stores/store.ts'
import { Failure, type Terminal, UsageError } from './terminal.ts'

export interface OpenStore {
  readonly store: OrderStore
  scopes(): Promise<readonly string[]>
  close(): Promise<void>
}

/** A store on a database server. */
interface ServerStore extends OpenStore {
  /** A store creates missing tables, so a mistyped address would look like a store without orders. */
  hasTables(): Promise<boolean>
}

const TABLE = 'customer_ordering_rows'

export async function openStore(terminal: Terminal, address: string | undefined): Promise<OpenStore> {
  if (address === undefined)
    throw new UsageError(
      'Name the store of your program: --store PATH, or --store with an address that begins with ' +
        'postgres://, mysql:// or redis://, or set CUSTOMER_ORDERING_STORE.',
    )
  const openServer = Object.entries(SERVERS).find(([protocol]) => address.startsWith(`${protocol}://`))?.[1]
  if (openServer !== undefined)
    return await orFailure(
      withTables(openServer(terminal, checked(address)), address),
      `Cannot open the store ${storeName(address)}`,
    )
  if (/^[a-z][a-z\d+.-]+:\/\//i.test(address))
    throw new UsageError(
      '--store must be a path, or begin with postgres://, mysql://, redis:// or rediss://.',
    )
  const path = resolve(terminal.folder, address)
  // SqliteStore creates missing files, so a mistyped path would look like a store without open
  // orders.
  if (!existsSync(path)) {
    // An address without its scheme also looks like a path, and may have a password.
    const named = /[=@]/.test(address) ? 'of --store' : path
    throw new UsageError(`The file ${named} does not exist. Check the path.`)
  }
  if (!sqliteHasTables(path)) throw withoutTables(path)
  return { store: new SqliteStore({ path }), scopes: async () => sqliteScopes(path), close: async () => {} }
}

async function withTables(opening: Promise<ServerStore>, address: string): Promise<OpenStore> {
  const opened = await opening
  try {
    if (await opened.hasTables()) return opened
  } catch (error) {
    await opened.close()
    throw error
  }
  await opened.close()
  throw withoutTables(storeName(address))
}

function withoutTables(name: string): UsageError {
  return new UsageError(
    `${name} has no order store: it lacks the table ${TABLE}. Check --store. Nothing was changed.`,
  )
}

const SERVERS = {
  ...{ postgres: openPostgres, postgresql: openPostgres },
  ...{ mysql: openMysql, mariadb: openMysql },
  ...{ redis: openRedis, rediss: openRedis },
}

/** A driver's error names neither the option nor the store. */
export async function orFailure<Result>(step: Promise<Result>, failed: string): Promise<Result> {
  try {
    return await step
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code, message } = Object(error)
    throw new Failure(`${failed}: ${message || code}`)
  }
}

/** Drivers throw a `URIError` for a wrong percent sign, which names neither the option nor a cure. */
function checked(address: string): string {
  if (/%(?![\da-f]{2})/i.test(address))
    throw new UsageError(
      'The address in --store has a "%" that encodes nothing. Write a percent sign as %25.',
    )
  return address
}

/** All that could show a password of the address: drivers repeat parts of it in their errors. */
export function secretsIn(address: string): string[] {
  const [, scheme = '', rest = '', login = ''] = /^([^/]*):\/\/((.*)@.*)/s.exec(address) ?? []
  const query = (/\?(.*)/s.exec(address)?.[1] ?? '').split(/[&#]/)
  const values = query.map((part) => part.replace(/.*?=/s, ''))
  // A user `postgres` is no secret, and hiding it would hide the scheme.
  return [rest, login, login.slice(login.indexOf(':') + 1), URL.parse(address)?.password ?? '', ...values]
    .filter((value) => !scheme.startsWith(value))
    .flatMap((value) => [value, decoded(value), decoded(value.replaceAll('+', ' '))])
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The address without its credentials. Drivers also accept several hosts, which are no URL. */
export function storeName(address: string): string {
  const { protocol, host, pathname } = (/:\/\//.test(address) && URL.parse(address)) || {}
  if (host !== undefined) return `${protocol}//${host}${pathname}`
  return address.replace(/(:\/\/).*/s, '$1…')
}

const scopesIn = (table: string): string => `SELECT DISTINCT scope FROM ${table} ORDER BY scope`

/** Opens the file only for reading, because it may belong to another program. */
function sqliteHasTables(path: string): boolean {
  const sqlite = nodeModule('node:sqlite')
  // SqliteStore reports the missing module.
  if (sqlite === undefined) return true
  try {
    const database = new sqlite.DatabaseSync(path, { readOnly: true })
    try {
      return database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(TABLE) !== undefined
    } finally {
      database.close()
    }
  } catch (error) {
    throw explain(error, 'open', sqliteFailures(path))
  }
}

function sqliteScopes(path: string): string[] {
  return open(path, DEFAULT_BUSY_TIMEOUT, (database) => {
    const scopes = database.prepare(scopesIn(TABLE)).all().map(scopeOfRow)
    database.close()
    return scopes
  })
}

function scopeOfRow(row: unknown): string {
  return String(Object(row).scope)
}

interface Pg {
  readonly Pool: new (options: {
    readonly connectionString: string
    readonly max: number
  }) => PostgresClient & { on(event: 'error', listener: () => void): unknown; end(): Promise<void> }
}

async function openPostgres(terminal: Terminal, connectionString: string): Promise<ServerStore> {
  const pg = await loadFromProject<Pg>(terminal, 'pg')
  if (pg === undefined) throw missing('pg')
  const pool = new pg.Pool({ connectionString, max: 2 })
  // Without a listener, a broken idle connection would end the process. The next statement reports
  // the error.
  pool.on('error', () => {})
  const scopes = async (): Promise<string[]> => {
    const { rows } = await pool.query(scopesIn(`public.${TABLE}`), [])
    return rows.map((row) => fromStored(scopeOfRow(row)))
  }
  const hasTables = async (): Promise<boolean> => {
    const { rows } = await pool.query('SELECT 1 WHERE to_regclass($1) IS NOT NULL', [`public.${TABLE}`])
    return rows.length > 0
  }
  return { store: new PostgresStore({ client: pool }), scopes, hasTables, close: () => pool.end() }
}

interface Mysql2 {
  createPool(options: {
    readonly uri: string
    readonly connectionLimit: number
  }): MysqlPool & Pick<MysqlConnection, 'query'> & { end(): Promise<void> }
}

async function openMysql(terminal: Terminal, address: string): Promise<ServerStore> {
  const mysql = await loadFromProject<Mysql2>(terminal, 'mysql2/promise')
  if (mysql === undefined) throw missing('mysql2')
  const uri = address.replace(/^mariadb:/, 'mysql:')
  const pool = mysql.createPool({ uri, connectionLimit: 2 })
  const scopes = async (): Promise<string[]> => {
    const [rows] = await pool.query(scopesIn(TABLE))
    return Array.isArray(rows) ? rows.map(scopeOfRow) : []
  }
  const hasTables = async (): Promise<boolean> => {
    const [rows] = await pool.query(`SHOW TABLES LIKE '${TABLE}'`)
    return Array.isArray(rows) && rows.length > 0
  }
  return { store: new MysqlStore({ client: pool }), scopes, hasTables, close: () => pool.end() }
}

interface NodeRedis {
  createClient(options: {
    readonly url: string
    readonly socket: { readonly reconnectStrategy: false }
  }): NodeRedisClient & {
    on(event: 'error', listener: () => void): unknown
    connect(): Promise<unknown>
    scanIterator(options: { readonly MATCH: string; readonly COUNT: number }): AsyncIterable<string[]>
    destroy(): void
  }
}

interface Ioredis {
  /** Early versions of ioredis 5 export the class only as `default`. */
  readonly default: new (
    url: string,
    options: { readonly maxRetriesPerRequest: number },
  ) => IoredisClient & {
    on(event: 'error', listener: () => void): unknown
    scanStream(options: { readonly match: string; readonly count: number }): AsyncIterable<string[]>
    disconnect(): void
  }
}

async function openRedis(terminal: Terminal, url: string): Promise<ServerStore> {
  const nodeRedis = await loadFromProject<NodeRedis>(terminal, 'redis')
  if (nodeRedis !== undefined) {
    // By default, node-redis reconnects forever, and the command would never end.
    const client = nodeRedis.createClient({ url, socket: { reconnectStrategy: false } })
    client.on('error', () => {})
    await client.connect()
    const scopes = () => redisScopes(client.scanIterator({ MATCH: LISTS, COUNT: 1000 }))
    return { store: new RedisStore({ client }), scopes, hasTables, close: async () => client.destroy() }
  }
  const ioredis = await loadFromProject<Ioredis>(terminal, 'ioredis')
  if (ioredis === undefined) throw missing('redis')
  const client = new ioredis.default(url, { maxRetriesPerRequest: 1 })
  client.on('error', () => {})
  const scopes = () => redisScopes(client.scanStream({ match: LISTS, count: 1000 }))
  return { store: new RedisStore({ client }), scopes, hasTables, close: async () => client.disconnect() }
}

/** Redis has no tables. */
const hasTables = async (): Promise<boolean> => true

/** Each scope that has orders has exactly one key of this pattern. */
const LISTS = 'customer-ordering:{*}:list'

async function redisScopes(pages: AsyncIterable<string[]>): Promise<string[]> {
  // A Redis scan may return a key more than once.
  const scopes = new Set<string>()
  for await (const keys of pages) for (const key of keys) scopes.add(scopeOfKey(key))
  return [...scopes].sort()
}

function missing(name: string): UsageError {
  return new UsageError(
    `This --store requires a driver that is not installed. Install it in this folder: npm install ${name}`,
  )
}

async function loadFromProject<Package>(terminal: Terminal, name: string): Promise<Package | undefined> {
  let path: string
  try {
    path = createRequire(join(terminal.folder, 'package.json')).resolve(name)
  } catch {
    return undefined
  }
  const found: { readonly default?: Package } & Package = await import(pathToFileURL(path).href)
  return found.default ?? found
}
