import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { type SqliteDatabase, SqliteStore } from 'customer-ordering-sdk/stores/sqlite'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StoreError } from '../../src/errors.ts'
import { makeRow, makeRows, nextVersion, SCOPE, WRITTEN_AT, walk } from '../../src/stores/contract/rows.ts'
import { effort, FULL } from '../support/effort.ts'
import {
  callsOf,
  callsWithHalfACharacter,
  codeOf,
  expectFailure,
  expectFailures,
  expectOrderNotSent,
  failureOf,
  writesOf,
} from './support/failures.ts'
import { nextMessage } from './support/messages.ts'
import { keepsFromNewerTables, NEWER } from './support/newer-version.ts'

let directory = ''
let path = ''
const children: ChildProcess[] = []
const ends: (() => unknown)[] = []

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sqlite-store-'))
  path = join(directory, 'orders.db')
})

afterEach(async () => {
  vi.restoreAllMocks()
  for (const close of ends.splice(0).reverse()) await close()
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  rmSync(directory, { recursive: true, force: true })
})

/** A store of the file, closed after the test. */
function openStore(): SqliteStore {
  const store = new SqliteStore({ path })
  ends.push(() => store.close())
  return store
}

/** Another program's connection to the file, closed after the test. */
function openDatabase(): DatabaseSync {
  const database = new DatabaseSync(path)
  ends.push(() => database.close())
  return database
}

/** Starts a script of `processes/`, and resolves when it prints its first line. */
async function start(script: string, ...parameters: string[]): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL(`processes/${script}.ts`, import.meta.url)), parameters, {
    execArgv: [],
  })
  children.push(child)
  await nextMessage(child)
  return child
}

/** Counts the rows of the file with a separate connection. */
function countRows(file: string): unknown {
  const database = new DatabaseSync(file)
  const { count } = database.prepare('SELECT count(*) AS count FROM customer_ordering_rows').get() ?? {}
  database.close()
  return count
}

/** Makes SqliteStore find another `node:sqlite`, or none. */
function replaceNodeSqlite(replacement: object | undefined): void {
  const original = process.getBuiltinModule.bind(process)
  vi.spyOn(process, 'getBuiltinModule').mockImplementation(((name: string) =>
    name === 'node:sqlite' ? replacement : original(name)) as typeof process.getBuiltinModule)
}

/** Collects the connections that SqliteStore opens. */
function watchOpening(): readonly DatabaseSync[] {
  const opened: DatabaseSync[] = []
  replaceNodeSqlite({
    DatabaseSync: class extends DatabaseSync {
      constructor(file: string) {
        super(file)
        opened.push(this)
      }
    },
  })
  return opened
}

describe('SqliteStore with a file', { timeout: 60_000 }, () => {
  const open = () => new SqliteStore({ path })
  storeContract({ test: { describe, it }, createStore: open, openSecond: open, reopenStore: open })
})

describe('SqliteStore in memory', () => {
  storeContract({ test: { describe, it }, createStore: () => new SqliteStore({ path: ':memory:' }) })
})

if (FULL)
  describe("SqliteStore with the caller's connection", { timeout: 60_000 }, () => {
    // Integers as BigInt, as an application with large numbers may configure it.
    const open = () => new SqliteStore({ database: new DatabaseSync(path, { readBigInts: true }) })
    storeContract({ test: { describe, it }, createStore: open, openSecond: open, reopenStore: open })
  })

describe('opening a file', () => {
  it('a new database and its companion files are readable and writable only by the owner', async () => {
    const store = openStore()
    await store.insert(makeRow(1))
    const modes = readdirSync(directory).map((name) => [name, statSync(join(directory, name)).mode & 0o777])
    expect(modes).toEqual([
      ['orders.db', 0o600],
      ['orders.db-shm', 0o600],
      ['orders.db-wal', 0o600],
    ])
  })

  it('a new file behind a dangling symbolic link is readable and writable only by the owner', async () => {
    symlinkSync('target.db', path)
    const store = openStore()
    await store.insert(makeRow(1))
    const modes = readdirSync(directory)
      .filter((name) => name.startsWith('target.db'))
      .map((name) => [name, statSync(join(directory, name)).mode & 0o777])
    expect(modes).toEqual([
      ['target.db', 0o600],
      ['target.db-shm', 0o600],
      ['target.db-wal', 0o600],
    ])
  })

  it('the error states that the directory behind a dangling symbolic link is missing', async () => {
    symlinkSync(join(directory, 'missing', 'orders.db'), path)
    const error = await failureOf(() => new SqliteStore({ path }))
    expect(error.message).toMatch(/its directory does not exist\. Create the directory first\.$/)
  })

  it('the store does not change the permissions of an existing file', async () => {
    await new SqliteStore({ path }).close()
    chmodSync(path, 0o640)
    const store = openStore()
    await store.insert(makeRow(1))
    expect(statSync(path).mode & 0o777).toBe(0o640)
  })

  it('the store sets a write-ahead log, full sync, a busy timeout and secure deletion', async () => {
    const opened = watchOpening()
    openStore()
    const hasty = new SqliteStore({ path, busyTimeout: 1 })
    const pragma = (name: string, database = opened[0]) =>
      Object.values(database?.prepare(`PRAGMA ${name}`).get() ?? {})[0]
    const SYNC_FULL = 2
    expect(pragma('journal_mode')).toBe('wal')
    expect(pragma('synchronous')).toBe(SYNC_FULL)
    expect(pragma('fullfsync')).toBe(1)
    expect(pragma('secure_delete')).toBe(1)
    expect(pragma('busy_timeout')).toBe(5_000)
    expect(pragma('busy_timeout', opened[1])).toBe(1)
    await hasty.close()
  })

  it('the store declares durability device for a file, and memory for a database in memory', async () => {
    const inFile = new SqliteStore({ path })
    const inMemory = new SqliteStore({ path: ':memory:' })
    expect(inFile.durability).toBe('device')
    expect(inMemory.durability).toBe('memory')
    expect(existsSync(':memory:')).toBe(false)
    await inFile.close()
    await inMemory.close()
  })

  it('the store uses the same file after a change of the working directory', async () => {
    const elsewhere = vi.spyOn(process, 'cwd').mockReturnValue(directory)
    const store = new SqliteStore({ path: 'relative.db' })
    elsewhere.mockRestore()
    await store.insert(makeRow(1))
    await store.close()
    expect(countRows(join(directory, 'relative.db'))).toBe(1)
  })

  it('the error states that the directory is missing', async () => {
    const error = await failureOf(() => new SqliteStore({ path: join(directory, 'missing', 'orders.db') }))
    expect(error.message).toMatch(
      /missing\/orders\.db: its directory does not exist\. Create the directory first\.$/,
    )
    expect(codeOf(error)).toBe('ENOENT')
  })

  it('the error states that the path is a directory', async () => {
    const error = await failureOf(() => new SqliteStore({ path: directory }))
    expect(error.message).toMatch(/the file cannot be opened\. Check that the path names a file/)
    expect(codeOf(error)).toBe('SQLITE_CANTOPEN')
  })

  it('the error states that a file cannot be created at the path', async () => {
    writeFileSync(path, '')
    const error = await failureOf(() => new SqliteStore({ path: join(path, 'orders.db') }))
    expect(error.message).toMatch(/the file cannot be created \(ENOTDIR\)/)
  })

  it.each(['', 'file:orders.db', 'file:///tmp/orders.db?mode=memory'])(
    'SqliteStore rejects the path %j',
    async (wrong) => {
      const error = await failureOf(() => new SqliteStore({ path: wrong }))
      expect(error.message).toMatch(/`path` of SqliteStore must be the path of a file/)
    },
  )

  it.each([-1, 0.5, Number.NaN, 2 ** 31])('SqliteStore rejects the busy timeout %d', async (busyTimeout) => {
    const error = await failureOf(() => new SqliteStore({ path, busyTimeout }))
    expect(error.message).toMatch(/`busyTimeout` of SqliteStore must be a whole number of milliseconds/)
    expect(existsSync(path)).toBe(false)
  })

  it('the store rejects a file that is not a database, and does not change it', async () => {
    const content = 'This is a text, long enough to be read as the header of a database file. '.repeat(100)
    writeFileSync(path, content)
    const opened = watchOpening()
    const error = await failureOf(() => new SqliteStore({ path }))
    expect(error.message).toContain(`${path}: the file is not an SQLite database`)
    expect(codeOf(error)).toBe('SQLITE_NOTADB')
    expect(readFileSync(path, 'utf8')).toBe(content)
    expect(opened.map(({ isOpen }) => isOpen)).toEqual([false])
    expect(readdirSync(directory)).toEqual(['orders.db'])
  })

  it('the store rejects a database that a newer version wrote, and does not change it', async () => {
    await new SqliteStore({ path }).close()
    const database = new DatabaseSync(path)
    database.exec('INSERT INTO customer_ordering_schema (version) VALUES (2)')
    database.close()
    const before = readFileSync(path)
    const error = await failureOf(() => new SqliteStore({ path }))
    expect(error.message).toContain(
      'a newer version of customer-ordering-sdk wrote it (schema 2, this version supports 1)',
    )
    expect(readFileSync(path).equals(before)).toBe(true)
    // Nor does it stay open.
    expect(readdirSync(directory)).toEqual(['orders.db'])
  })

  it('the store rejects a database in UTF-16, whose rows it could never read, and does not change it', async () => {
    const database = new DatabaseSync(path)
    database.exec("PRAGMA encoding = 'UTF-16'; CREATE TABLE theirs (id TEXT)")
    database.close()
    for (const open of [
      () => new SqliteStore({ path }),
      () => new SqliteStore({ database: new DatabaseSync(path) }),
    ]) {
      const error = await failureOf(open)
      expect(error.message).toMatch(/the database has the encoding UTF-16le, but the store needs UTF-8/)
      expect(error.message).toContain('`sqlite3 old.db .dump | sqlite3 new.db`')
    }
    const tables = new DatabaseSync(path).prepare('SELECT name FROM sqlite_schema').all()
    expect(tables.map(({ name }) => name)).toEqual(['theirs'])
  })

  it.each([
    ['has no key, as CREATE TABLE AS leaves it', 'CREATE TABLE customer_ordering_rows AS SELECT * FROM old'],
    [
      'has the key as an index that is not unique',
      'CREATE TABLE customer_ordering_rows AS SELECT * FROM old; CREATE INDEX key ON customer_ordering_rows (scope, id)',
    ],
    [
      'has the key for some of its rows only',
      'CREATE TABLE customer_ordering_rows AS SELECT * FROM old; CREATE UNIQUE INDEX key ON customer_ordering_rows (scope, id) WHERE open = 1',
    ],
    [
      'has a key that takes upper and lower case for the same',
      'CREATE TABLE customer_ordering_rows (scope TEXT, id TEXT COLLATE NOCASE, version INTEGER, open INTEGER, state TEXT, created_at INTEGER, updated_at INTEGER, data TEXT, PRIMARY KEY (scope, id)) STRICT',
    ],
  ])('the store rejects a table that %s, and does not change it', async (_, restore) => {
    const store = new SqliteStore({ path })
    await store.insert(makeRow(1))
    await store.close()
    const database = openDatabase()
    database.exec(`ALTER TABLE customer_ordering_rows RENAME TO old; ${restore}; DROP TABLE old`)
    const before = database.prepare('SELECT sql FROM sqlite_schema').all()
    const error = await failureOf(() => new SqliteStore({ path }))
    expect(error.message).toContain('customer_ordering_rows has lost its primary key (scope, id)')
    expect(database.prepare('SELECT sql FROM sqlite_schema').all()).toEqual(before)
  })

  describe('a database that a newer version updates while this version has it open', () => {
    keepsFromNewerTables({
      open: openStore,
      query: async (sql) => {
        const database = new DatabaseSync(path)
        if (!sql.startsWith('SELECT')) database.exec(sql)
        const rows = sql.startsWith('SELECT') ? database.prepare(sql).all() : []
        database.close()
        return rows
      },
      versions: 'customer_ordering_schema',
      schema: 'SELECT count(*) AS count FROM sqlite_schema',
    })

    it('after the update, this version stores no order and sends none', async () => {
      const store = new SqliteStore({ path })
      const database = new DatabaseSync(path)
      database.exec('INSERT INTO customer_ordering_schema (version) VALUES (2)')
      database.close()
      expect((await expectOrderNotSent(store)).message).toContain(NEWER)
    })
  })

  it('the store completes an interrupted creation of its tables', async () => {
    const store = new SqliteStore({ path })
    await store.insert(makeRow(1))
    await store.close()
    const database = new DatabaseSync(path)
    database.exec('DELETE FROM customer_ordering_schema; DROP INDEX customer_ordering_open')
    database.close()
    const again = new SqliteStore({ path })
    expect(await again.listOpen(SCOPE, { limit: 5 })).toEqual({ rows: [makeRow(1)] })
    await again.close()
    const indexes = new DatabaseSync(path).prepare(
      "SELECT 1 FROM sqlite_schema WHERE name = 'customer_ordering_open'",
    )
    expect(indexes.all()).toHaveLength(1)
  })

  it('the store does not change other tables', async () => {
    const database = new DatabaseSync(path)
    database.exec("CREATE TABLE orders (id TEXT); INSERT INTO orders VALUES ('theirs')")
    database.close()
    const store = new SqliteStore({ path })
    await store.insert(makeRow(1))
    await store.prune(SCOPE, {
      createdBefore: Number.MAX_SAFE_INTEGER,
      rejectedBefore: Number.MAX_SAFE_INTEGER,
    })
    await store.close()
    expect({ ...new DatabaseSync(path).prepare('SELECT id FROM orders').get() }).toEqual({ id: 'theirs' })
  })

  it('the error explains what to do if node:sqlite is missing, and creates nothing', async () => {
    replaceNodeSqlite(undefined)
    const error = await failureOf(() => new SqliteStore({ path }))
    expect(error.message).toContain(
      `needs the module node:sqlite, which this runtime (Node ${process.version}) does not have`,
    )
    expect(error.message).toContain('Use Node 22.13 or newer, or pass an open better-sqlite3 database')
    expect(readdirSync(directory)).toEqual([])
  })

  it('the error is the same if the runtime throws for an unknown module', async () => {
    const original = process.getBuiltinModule.bind(process)
    vi.spyOn(process, 'getBuiltinModule').mockImplementation(((name: string) => {
      if (name === 'node:sqlite') throw new Error(`No such built-in module: ${name}`)
      return original(name)
    }) as typeof process.getBuiltinModule)
    await expectFailure(() => new SqliteStore({ path }), 'SqliteStore needs the module node:sqlite')
    expect(readdirSync(directory)).toEqual([])
  })

  it('the error is the same on a runtime other than Node', async () => {
    vi.stubGlobal('process', undefined)
    let message = ''
    try {
      new SqliteStore({ path })
    } catch (error) {
      message = error instanceof StoreError ? error.message : ''
    } finally {
      vi.unstubAllGlobals()
    }
    expect(message).toContain('this runtime (not Node)')
  })
})

describe('failures', () => {
  it('a write rejects if another process holds the lock longer than the busy timeout', async () => {
    const store = new SqliteStore({ path, busyTimeout: 30 })
    await store.insert(makeRow(1))
    const child = await start('lock', path)
    const error = await failureOf(() => store.insert(makeRow(2)))
    expect(error.message).toContain(
      `Cannot write to the order store in ${path}: another connection kept it locked`,
    )
    expect(codeOf(error)).toBe('SQLITE_BUSY')
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
    const openingError = await failureOf(() => new SqliteStore({ path, busyTimeout: 30 }))
    expect(openingError.message).toContain(
      `Cannot open the order store in ${path}: another connection kept it locked`,
    )
    const released = nextMessage(child)
    child.send('release')
    await released
    expect(await store.insert(makeRow(2))).toEqual({ inserted: true })
    await store.close()
  })

  it('a write waits for another process that releases its lock in time', async () => {
    const store = new SqliteStore({ path, busyTimeout: 30_000 })
    const child = await start('lock', path)
    child.send('release')
    expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
    await store.close()
  })

  it('writes reject while the disk is full, and acknowledged rows survive', async () => {
    const database = openDatabase()
    const store = new SqliteStore({ database })
    database.exec('PRAGMA max_page_count = 40')
    const data = 'x'.repeat(8_000)
    const acknowledged: string[] = []
    const error = await failureOf(async () => {
      for (let number = 1; number < 100; number++) {
        await store.insert(makeRow(number, { data }))
        acknowledged.push(makeRow(number).id)
      }
    })
    expect(error.message).toContain(
      'the disk is full, or the database has reached its size limit. Free up space. Nothing was written.',
    )
    expect(codeOf(error)).toBe('SQLITE_FULL')
    expect(error.applied).toBe(false)
    expect(acknowledged.length).toBeGreaterThan(5)
    const rows = await walk((options) => store.list(SCOPE, options), 10)
    expect(rows.map(({ id }) => id).sort()).toEqual(acknowledged.sort())
    const refused = makeRow(acknowledged.length + 1, { data })
    await failureOf(() => store.update(nextVersion(makeRow(1, { data: data.repeat(10) })), 1))
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1, { data }))
    database.exec('PRAGMA max_page_count = 1000')
    expect(await store.insert(refused)).toEqual({ inserted: true })
  })

  it('a read rejects on a damaged page instead of returning wrong data', async () => {
    const store = new SqliteStore({ path })
    for (const row of makeRows(50)) await store.insert({ ...row, data: 'x'.repeat(1_000) })
    await store.close()
    const database = new DatabaseSync(path)
    const root = database
      .prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'customer_ordering_rows'")
      .get()
    database.close()
    const pageSize = 4_096
    const file = openSync(path, 'r+')
    writeSync(file, Buffer.alloc(pageSize, 0xa5), 0, pageSize, (Number(root?.['rootpage']) - 1) * pageSize)
    const damaged = new SqliteStore({ path })
    const error = await failureOf(() => damaged.get(SCOPE, makeRow(1).id))
    expect(error.message).toContain('the file is damaged. Stop writing to it, keep a copy')
    expect(codeOf(error)).toBe('SQLITE_CORRUPT')
    await failureOf(() => damaged.insert(makeRow(99)))
    await damaged.close()
  })

  it('a read rejects text that is not UTF-8 instead of replacing characters', async () => {
    const store = openStore()
    await store.insert(makeRow(1))
    const database = openDatabase()
    database.exec("UPDATE customer_ordering_rows SET data = CAST(x'61ff62' AS TEXT)")
    const error = await failureOf(() => store.get(SCOPE, makeRow(1).id))
    expect(codeOf(error)).toBe('ERR_ENCODING_INVALID_ENCODED_DATA')
  })

  it('calls reject if the tables were changed by hand', async () => {
    const store = openStore()
    await store.insert(makeRow(1))
    const database = openDatabase()
    database.exec("UPDATE customer_ordering_rows SET state = 'paid'")
    const error = await failureOf(() => store.get(SCOPE, makeRow(1).id))
    expect(error.message).toContain('returned a row that the order store did not write')
    database.exec('DROP TABLE customer_ordering_rows')
    await expectFailure(() => store.insert(makeRow(2)), 'no such table: customer_ordering_rows')
  })

  it('a read rejects a number that is not an integer', async () => {
    const store = openStore()
    const error = await failureOf(() => store.insert(makeRow(1, { updatedAt: 1.5 })))
    expect(error.message).toContain('cannot store REAL value in INTEGER column')
    expect(await store.get(SCOPE, makeRow(1).id)).toBeUndefined()
  })

  it('the store rejects half of a surrogate pair in every argument', async () => {
    const store = openStore()
    await expectFailures(callsWithHalfACharacter(store), 'half of a surrogate pair')
  })

  it('the store rejects a cursor that it did not create', async () => {
    const store = openStore()
    const error = await failureOf(() => store.list(SCOPE, { limit: 1, after: 'nonsense' }))
    expect(error.message).toContain('`after` must be the `next` of a page that this store returned')
  })

  it('the cause of an error has only a name and a code', async () => {
    writeFileSync(path, 'x'.repeat(4_096))
    const { cause } = await failureOf(() => new SqliteStore({ path }))
    expect(cause).toBeInstanceOf(Error)
    expect(Object.getOwnPropertyNames(cause).sort()).toEqual(['code', 'message', 'name', 'stack'])
    expect(cause).toMatchObject({ name: 'Error', message: 'SQLITE_NOTADB', code: 'SQLITE_NOTADB' })
  })

  it('every call after close rejects', async () => {
    const store = new SqliteStore({ path })
    await store.close()
    await expectFailures(callsOf(store), 'was closed. Create a new SqliteStore')
  })
})

describe('a file that is removed while the store is open', () => {
  const link = (): string => join(directory, 'link.db')
  /** How the files under a connection go, and what the store names then. */
  const TAKEN: readonly (readonly [how: string, take: () => void, named: () => string])[] = [
    ['deleted', () => rmSync(path), () => path],
    [
      'replaced by a backup',
      () => {
        copyFileSync(path, `${path}.backup`)
        renameSync(`${path}.backup`, path)
      },
      () => path,
    ],
    ['deleted with its directory', () => rmSync(directory, { recursive: true }), () => path],
    ['stripped of its write-ahead log', () => rmSync(`${path}-wal`), () => `${path}-wal`],
    ['stripped of its shared memory', () => rmSync(`${path}-shm`), () => `${path}-shm`],
  ]

  it.each(TAKEN)('the store acknowledges no write after its file was %s', async (_, take, named) => {
    const handedIn = new DatabaseSync(path)
    handedIn.exec('PRAGMA journal_mode = WAL')
    const stores = [new SqliteStore({ path }), new SqliteStore({ database: handedIn })]
    await stores[0]?.insert(makeRow(1))
    take()
    for (const store of stores) {
      const reason = `${named()} was deleted or replaced while the store was open`
      for (const { message, applied } of await expectFailures(writesOf(store), reason)) {
        expect(applied).toBe(false)
        expect(message).toContain('Nothing was written.')
      }
      expect(await store.get(SCOPE, makeRow(2).id)).toBeUndefined()
    }
    handedIn.close()
    // What is left to close is nobody's any more.
    await stores[0]?.close().catch(() => {})
  })

  it('the store acknowledges no write after its symbolic link was moved to another file', async () => {
    symlinkSync('orders.db', link())
    const store = new SqliteStore({ path: link() })
    await store.insert(makeRow(1))
    await new SqliteStore({ path: join(directory, 'other.db') }).close()
    rmSync(link())
    symlinkSync('other.db', link())
    await expectFailure(() => store.insert(makeRow(2)), 'was deleted or replaced')
    await store.close()
  })

  it('the store works again when the file is back', async () => {
    const store = new SqliteStore({ path })
    renameSync(path, `${path}.moved`)
    await failureOf(() => store.insert(makeRow(1)))
    renameSync(`${path}.moved`, path)
    expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
    await store.close()
    expect(countRows(path)).toBe(1)
  })

  it('create() sends no request after the database file was deleted', async () => {
    const sandbox = createSandbox()
    const store = new SqliteStore({ path })
    const client = new CustomerOrderingClient({
      baseUrl: sandbox.baseUrl,
      apiKey: sandbox.apiKey,
      fetch: sandbox.fetch,
      account: 'shop-eu',
      store,
    })
    const request = { serviceId: 'svc_standard', target: '@ada', quantity: 1 }
    await client.orders.create({ ...request, metadata: { externalOrderId: 'before' } })
    rmSync(path)
    await expect(
      client.orders.create({ ...request, metadata: { externalOrderId: 'after' } }),
    ).rejects.toMatchObject({ code: 'store', charged: 'no' })
    expect(sandbox.ledger.map(({ externalOrderId }) => externalOrderId)).toEqual(['before'])
    await client.close()
  })

  it('on Windows, the store does not check whether its file exists, because SQLite prevents deletion', async () => {
    const platform = vi.spyOn(process, 'platform', 'get').mockReturnValue('win32')
    const store = openStore()
    platform.mockRestore()
    rmSync(path)
    expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
  })
})

it.each([
  ['is full', 'PRAGMA max_page_count = 1', 'the disk is full'],
  ['may only be read', 'PRAGMA query_only = ON', 'it is read-only'],
])('a new order is reported as not charged, with certainty, if the file %s', async (_, pragma, reason) => {
  const database = openDatabase()
  const store = new SqliteStore({ database })
  database.exec(pragma)
  const filler = database.prepare(
    "INSERT INTO customer_ordering_rows VALUES ('filler', ?, 1, 0, 'created', 0, 0, ?)",
  )
  // Fill the database until not even a closed row fits, which would otherwise prove that nothing
  // was sent.
  for (const size of [2_000, 200, 20]) {
    for (let number = 0; number < 100; number++) {
      try {
        filler.run(`${size} ${number}`, 'x'.repeat(size))
      } catch {
        break
      }
    }
  }
  expect((await expectOrderNotSent(store)).message).toContain(reason)
})

describe('closing the store', () => {
  it('close merges the log into the file, even while another connection is open', async () => {
    const store = new SqliteStore({ path })
    const other = new SqliteStore({ path })
    await store.insert(makeRow(1))
    await store.close()
    const copy = join(directory, 'copy.db')
    copyFileSync(path, copy)
    expect(countRows(copy)).toBe(1)
    await other.close()
    expect(readdirSync(directory)).not.toContain('orders.db-wal')
  })

  it('the file contains nothing of replaced or pruned data', async () => {
    const store = new SqliteStore({ path })
    const secret = '@private-handle'
    // The second string is so long that SQLite stores it on separate pages, which it frees.
    const rows = [makeRow(1, { data: secret }), makeRow(2, { data: secret.repeat(1_000) })]
    for (const row of rows) {
      await store.insert(row)
      await store.update(nextVersion(row, { data: 'closed', open: false, state: 'created' }), 1)
    }
    await store.insert(makeRow(3, { data: secret, open: false, state: 'rejected' }))
    expect(await store.prune(SCOPE, { createdBefore: 0, rejectedBefore: WRITTEN_AT + 1 })).toBe(1)
    await store.close()
    expect(readdirSync(directory)).toEqual(['orders.db'])
    expect(readFileSync(path).includes(secret)).toBe(false)
  })

  it("close does not close the caller's connection", async () => {
    const database = openDatabase()
    const store = new SqliteStore({ database })
    await store.close()
    expect(database.isOpen).toBe(true)
    await failureOf(() => store.get(SCOPE, 'id'))
  })
})

describe('a connection of the caller', () => {
  it("the caller's connection keeps its settings, except for the strongest sync", async () => {
    const database = openDatabase()
    database.exec('PRAGMA busy_timeout = 77; PRAGMA synchronous = OFF')
    const store = new SqliteStore({ database })
    const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]
    const EXTRA = 3
    expect([pragma('busy_timeout'), pragma('journal_mode'), pragma('synchronous')]).toEqual([
      77,
      'delete',
      EXTRA,
    ])
    database.exec('PRAGMA synchronous = OFF')
    await store.insert(makeRow(1))
    expect(pragma('synchronous')).toBe(EXTRA)
  })

  it("a call rejects while the caller's connection is inside a transaction", async () => {
    const database = openDatabase()
    const store = new SqliteStore({ database })
    await store.insert(makeRow(1))
    database.exec('BEGIN')
    const opening = async () => new SqliteStore({ database })
    await expectFailures([...callsOf(store), opening], 'while its database is inside a transaction')
    database.exec('ROLLBACK')
    expect(await store.update(nextVersion(makeRow(1)), 1)).toBe(true)
    expect(await store.insert(makeRow(2))).toEqual({ inserted: true })
  })

  it('the constructor rejects a read-only connection', async () => {
    await new SqliteStore({ path }).close()
    const database = new DatabaseSync(path, { readOnly: true })
    const error = await failureOf(() => new SqliteStore({ database }))
    expect(error.message).toContain(
      'it is read-only. Open it for writing, and give this user write access to the file and its directory. Nothing was written.',
    )
    expect(codeOf(error)).toBe('SQLITE_READONLY')
    database.close()
  })

  it('if the connection becomes read-only, writes reject and reads succeed', async () => {
    const database = openDatabase()
    const store = new SqliteStore({ database })
    await store.insert(makeRow(1))
    database.exec('PRAGMA query_only = ON')
    const error = await failureOf(() => store.insert(makeRow(2)))
    expect(codeOf(error)).toBe('SQLITE_READONLY')
    expect(error.applied).toBe(false)
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
  })

  it.each(['OFF', 'MEMORY'])(
    'the constructor rejects journal mode %s, with which a crash can corrupt the file',
    async (mode) => {
      // Newer versions of Node ignore OFF by default.
      const database = new DatabaseSync(path, { defensive: false })
      database.exec(`PRAGMA journal_mode = ${mode}`)
      await expectFailure(
        () => new SqliteStore({ database }),
        `with its journal mode "${mode.toLowerCase()}"`,
      )
      expect(database.prepare('SELECT * FROM sqlite_schema').all()).toEqual([])
      database.close()
    },
  )

  it.each(['OFF', 'MEMORY'])(
    'writes reject while the journal mode is %s, and succeed when it is changed back',
    async (mode) => {
      const database = new DatabaseSync(path, { defensive: false })
      const store = new SqliteStore({ database })
      await store.insert(makeRow(1))
      database.exec(`PRAGMA journal_mode = ${mode}`)
      const reason = `with its journal mode "${mode.toLowerCase()}"`
      for (const { message } of await expectFailures(writesOf(store), reason))
        expect(message).toContain('Nothing was written.')
      expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
      database.exec('PRAGMA journal_mode = WAL')
      expect(await store.insert(makeRow(2))).toEqual({ inserted: true })
      database.close()
    },
  )

  it('a failed creation of the tables leaves no open transaction', async () => {
    const database = openDatabase()
    database.exec('CREATE TABLE customer_ordering_rows (something TEXT)')
    const error = await failureOf(() => new SqliteStore({ database }))
    expect(error.message).toContain(
      'Cannot open the order store in the database that you passed: no such column',
    )
    expect(database.isTransaction).toBe(false)
  })

  it('the store accepts a connection of better-sqlite3, whose error codes are names', async () => {
    const database = openDatabase()
    let failure: Error | undefined
    const likeBetterSqlite: SqliteDatabase = {
      exec: (sql) => database.exec(sql),
      prepare: (sql) => {
        const statement = database.prepare(sql)
        return {
          run: (...parameters) => {
            if (failure !== undefined) throw failure
            return statement.run(...parameters)
          },
          get: (...parameters) => statement.get(...parameters),
          all: (...parameters) => statement.all(...parameters),
        }
      },
    }
    const store = new SqliteStore({ database: likeBetterSqlite })
    await store.insert(makeRow(1))
    failure = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
    const ioError = await failureOf(() => store.insert(makeRow(2)))
    expect(ioError.message).toContain(
      'the disk or file system failed. Check both. The write may or may not have happened.',
    )
    expect(codeOf(ioError)).toBe('SQLITE_IOERR_FSYNC')
    expect(ioError.applied).toBeUndefined()
    // The log may contain the write whose sync failed, and a crash would restore it.
    failure = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
    expect((await failureOf(() => store.insert(makeRow(2)))).applied).toBeUndefined()
    expect((await failureOf(() => store.insert(makeRow(3)))).applied).toBe(false)
    failure = new TypeError('The database connection is not open')
    const closed = await failureOf(() => store.insert(makeRow(2)))
    expect(closed.message).toContain('the connection was closed. Keep it open while the store is in use')
  })

  it('the error states that the owner has closed the connection', async () => {
    const database = new DatabaseSync(path)
    const store = new SqliteStore({ database })
    database.close()
    const error = await failureOf(() => store.get(SCOPE, makeRow(1).id))
    expect(error.message).toContain('the connection was closed')
    expect(codeOf(error)).toBe('ERR_INVALID_STATE')
  })
})

describe('many rows', () => {
  /** Inserts closed rows directly, in one transaction, which is much faster than with the store. */
  function fill(database: DatabaseSync, count: number): void {
    database.exec(`
      WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${count})
      INSERT INTO customer_ordering_rows (scope, id, version, open, state, created_at, updated_at, data)
      SELECT '${SCOPE}', printf('filled-%08d', n), 2, 0, 'created', n, n, '{}' FROM number`)
  }

  it('prune removes many rows in batches, and other work runs in between', async () => {
    const database = openDatabase()
    const store = new SqliteStore({ database })
    fill(database, 1_200)
    await store.insert(makeRow(1))
    const finished: string[] = []
    const pruned = store.prune(SCOPE, { createdBefore: 1_101, rejectedBefore: 0 }).then((removed) => {
      finished.push('prune')
      return removed
    })
    await new Promise((resolve) => setImmediate(resolve))
    await store.insert(makeRow(2))
    finished.push('insert')
    expect(await pruned).toBe(1_100)
    expect(finished).toEqual(['insert', 'prune'])
    expect(countRows(path)).toBe(102)
  })

  it('every statement uses an index, whatever the number of rows', async () => {
    const database = openDatabase()
    const prepared = new Set<string>()
    const watched: SqliteDatabase = {
      exec: (sql) => database.exec(sql),
      prepare: (sql) => {
        if (sql.includes('customer_ordering_rows') && !sql.includes('pragma_')) prepared.add(sql)
        return database.prepare(sql)
      },
    }
    const store = new SqliteStore({ database: watched })
    fill(database, 5_000)
    database.exec('ANALYZE')
    const plans = [...prepared]
      .filter((sql) => !sql.startsWith('INSERT'))
      .flatMap((sql) => database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all())
      .map(({ detail }) => String(detail))
      .filter((detail) => !/^(LIST|SCALAR) SUBQUERY|customer_ordering_schema/.test(detail))
    const byKey = 'USING INDEX sqlite_autoindex_customer_ordering_rows_1 (scope=? AND id=?)'
    expect(plans.map((plan) => plan.replace('SEARCH customer_ordering_rows ', '')).sort()).toEqual([
      // prune finds the batch first, then deletes its rows.
      'USING COVERING INDEX customer_ordering_closed (scope=? AND state=? AND updated_at<?)',
      // list
      'USING INDEX customer_ordering_list (scope=? AND (updated_at,id)>(?,?))',
      // listOpen
      'USING INDEX customer_ordering_open (scope=? AND id>?)',
      // get and update
      byKey,
      byKey,
      'USING INTEGER PRIMARY KEY (rowid=?)',
    ])
    await store.close()
  })
})

describe('several processes', { timeout: 120_000 }, () => {
  it('several processes can create the same file at the same time', async () => {
    const racers = await Promise.all([1, 2, 3, 4].map(() => start('open')))
    for (let file = 0; file < effort(10, 60); file++) {
      const answers = racers.map(nextMessage)
      for (const racer of racers) racer.send(join(directory, `${file}.db`))
      expect(await Promise.all(answers)).toEqual(['opened', 'opened', 'opened', 'opened'])
    }
  })
})
