import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import fs, {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { SqliteStore, type SqliteStoreOptions } from 'customer-ordering-sdk/stores/sqlite'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  EVERYTHING,
  makeRow,
  makeRows,
  nextVersion,
  SCOPE,
  WRITTEN_AT,
  walk,
} from '../../src/stores/contract/rows.ts'
import { throwing } from '../support/calls.ts'
import { effort } from '../support/effort.ts'
import { temporaryFolder } from '../support/folder.ts'
import { order } from '../support/lab.ts'
import {
  callsOf,
  codeOf,
  expectFailure,
  expectFailures,
  expectOrderNotSent,
  failureOf,
  readsOf,
  shopOver,
  writesOf,
} from './support/failures.ts'
import { NEWER } from './support/newer-version.ts'
import { behavesAsSqlStore } from './support/sql-store.ts'

let directory = ''
let path = ''
const ends: (() => unknown)[] = []

beforeEach(() => {
  directory = temporaryFolder('sqlite-store', (remove) => ends.push(remove))
  path = join(directory, 'orders.db')
})

afterEach(async () => {
  vi.restoreAllMocks()
  for (const close of ends.splice(0).reverse()) await close()
})

const open = (options: Partial<SqliteStoreOptions> = {}) => new SqliteStore({ path, ...options })

/** A store of the file, closed after the test. */
function openStore(options?: Partial<SqliteStoreOptions>): SqliteStore {
  const store = open(options)
  ends.push(() => store.close())
  return store
}

/** A connection of another program to the file, closed after the test. */
function openDatabase(): DatabaseSync {
  const database = new DatabaseSync(path)
  ends.push(() => database.isOpen && database.close())
  return database
}

/** Runs the statements on a new connection. Returns the rows of a SELECT. */
function execute(sql: string, file = path): Record<string, unknown>[] {
  const database = new DatabaseSync(file)
  try {
    if (sql.startsWith('SELECT')) return database.prepare(sql).all()
    database.exec(sql)
    return []
  } finally {
    database.close()
  }
}

const countRows = (file = path): unknown =>
  execute('SELECT count(*) AS count FROM customer_ordering_rows', file)[0]?.['count']

const pragmaOf = (database: DatabaseSync | undefined, name: string): unknown =>
  Object.values(database?.prepare(`PRAGMA ${name}`).get() ?? {})[0]

/** The next message of a child process. Rejects if the process ends first. */
function nextMessage(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown): void => {
      child.off('exit', onExit)
      resolve(message)
    }
    const onExit = (code: number | null, signal: string | null): void => {
      child.off('message', onMessage)
      reject(new Error(`the process ended with ${signal ?? code} before it answered`))
    }
    child.once('message', onMessage)
    child.once('exit', onExit)
  })
}

/** Starts a script of `processes/`, and resolves when it prints its first line. */
async function start(script: string, ...parameters: string[]): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL(`processes/${script}.ts`, import.meta.url)), parameters, {
    execArgv: [],
  })
  const exited = once(child, 'exit')
  ends.push(() => {
    child.kill('SIGKILL')
    return exited
  })
  await nextMessage(child)
  return child
}

/** Makes SqliteStore find what `find` returns as this module of Node. */
function replaceModule(replaced: string, find: () => object | undefined): void {
  const original = process.getBuiltinModule.bind(process)
  vi.spyOn(process, 'getBuiltinModule').mockImplementation(((name: string) =>
    name === replaced ? find() : original(name)) as typeof process.getBuiltinModule)
}

const replaceNodeSqlite = (find: () => object | undefined): void => replaceModule('node:sqlite', find)

/** Makes SqliteStore read this list of mounts, or none. */
function replaceMounts(mounts: string | undefined, changes: object = {}): void {
  const readFileSync = (file: string): string => {
    if (file !== '/proc/self/mountinfo') throw new Error(`unexpected: ${file}`)
    if (mounts === undefined) throw new Error('ENOENT')
    return mounts
  }
  replaceModule('node:fs', () => ({ ...fs, readFileSync, ...changes }))
}

/** A line of Linux's list of mounts: a file mounted at a path. */
const mountAt = (point: string): string =>
  `42 27 254:0 /srv/orders.db ${point.replaceAll('\\', '\\134').replaceAll(' ', '\\040')} rw,relatime - ext4 /dev/vda rw`

/** A store of the file, closed after the test, and its own connection. */
function openWithConnection(): { readonly store: SqliteStore; readonly connection: DatabaseSync } {
  const opened = watchOpening()
  const store = openStore()
  vi.restoreAllMocks()
  const [connection] = opened
  if (connection === undefined) throw new Error('the store opened no connection')
  return { store, connection }
}

type SQLRow = ReturnType<StatementSync['all']>[number]

/** A store whose every write runs through this function. */
function openWatched(write: (run: () => SQLRow[]) => SQLRow[]): SqliteStore {
  replaceNodeSqlite(() => ({
    DatabaseSync: class extends DatabaseSync {
      override prepare(sql: string): StatementSync {
        const statement = super.prepare(sql)
        const all = statement.all.bind(statement)
        return Object.assign(statement, {
          all: (...values: SQLInputValue[]) =>
            /^(INSERT|UPDATE|DELETE)/.test(sql) ? write(() => all(...values)) : all(...values),
        })
      }
    },
  }))
  return openStore()
}

/** Collects the connections that SqliteStore opens. */
function watchOpening(): readonly DatabaseSync[] {
  const opened: DatabaseSync[] = []
  class Watched extends DatabaseSync {
    constructor(file: string) {
      super(file)
      opened.push(this)
    }
  }
  replaceNodeSqlite(() => ({ DatabaseSync: Watched }))
  return opened
}

/** Inserts closed rows directly, in one transaction, which is much faster than with the store. */
function fill(database: DatabaseSync, count: number): void {
  database.exec(`
    WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${count})
    INSERT INTO customer_ordering_rows (scope, id, version, open, state, created_at, updated_at, data)
    SELECT '${SCOPE}', printf('filled-%08d', n), 2, 0, 'created', n, n, '{}' FROM number`)
}

describe('SqliteStore with a file', { timeout: 60_000 }, () => {
  const again = () => open()
  storeContract({ test: { describe, it }, createStore: again, openSecond: again, reopenStore: again })
})

describe('SqliteStore in memory', () => {
  storeContract({ test: { describe, it }, createStore: () => open({ path: ':memory:' }) })
})

behavesAsSqlStore({
  name: 'SqliteStore',
  open: openStore,
  query: async (sql) => execute(sql),
  versions: 'customer_ordering_schema',
  dropIndex: 'DROP INDEX customer_ordering_open',
  schema: 'SELECT count(*) AS count FROM sqlite_schema',
  dropped: 'no such table: customer_ordering_rows',
})

describe('opening a file', () => {
  it.each([
    ['a new database', 'orders.db', () => {}],
    ['a new file behind a dangling symbolic link', 'target.db', () => symlinkSync('target.db', path)],
  ])('%s is readable and writable only by the owner', async (_, name, prepare) => {
    prepare()
    await openStore().insert(makeRow(1))
    const files = readdirSync(directory).filter((file) => file.startsWith(name))
    const modes = files.map((file) => [file, statSync(join(directory, file)).mode & 0o777])
    expect(modes).toEqual(['', '-shm', '-wal'].map((suffix) => [`${name}${suffix}`, 0o600]))
  })

  it('a file with a second hard link is rejected and not changed', async () => {
    writeFileSync(path, '')
    linkSync(path, join(directory, 'other.db'))
    const error = await failureOf(open)
    expect(error.message).toMatch(
      /: the file has 2 hard links\. SQLite keeps a separate log for each name, so orders could be forgotten\. Nothing was written\. Keep the name that was used so far, and delete the other links\.$/,
    )
    expect(statSync(path).size).toBe(0)
    expect(readdirSync(directory)).toEqual(['orders.db', 'other.db'])
    rmSync(join(directory, 'other.db'))
    await open().close()
  })

  it('a file mounted without its directory is rejected and not changed', async () => {
    writeFileSync(path, '')
    replaceMounts(`${mountAt('/proc')}\n${mountAt(realpathSync(path))}\n`)
    const error = await failureOf(open)
    expect(error.message).toMatch(
      /: the file is mounted without its directory, so the latest orders could be lost with the container\. Nothing was written\. Mount the directory instead of the file\.$/,
    )
    expect(statSync(path).size).toBe(0)
    expect(readdirSync(directory)).toEqual(['orders.db'])
  })

  it('a mounted file is recognised behind a symbolic link, and if its path has spaces', async () => {
    mkdirSync(join(directory, 'a \\b'))
    const target = join(directory, 'a \\b', 'ö 1.db')
    writeFileSync(target, '')
    symlinkSync(target, path)
    replaceMounts(mountAt(realpathSync(target)))
    await expectFailure(open, 'Mount the directory instead of the file.')
  })

  it('a file opens in a mounted directory, and if no fact about mounts is available', async () => {
    const real = realpathSync(directory)
    for (const [mounts, changes] of [
      [`${mountAt(real)}\n${mountAt(`${real}/orders.db-wal`)}`, {}],
      [undefined, {}],
      [undefined, { realpathSync: throwing('EACCES') }],
    ] as const) {
      replaceMounts(mounts, changes)
      await open().close()
      vi.restoreAllMocks()
    }
  })

  it('a file opens through a symbolic link while a store has it open by its own name', async () => {
    const store = openStore()
    symlinkSync(path, join(directory, 'link.db'))
    await openStore({ path: join(directory, 'link.db') }).insert(makeRow(1))
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
  })

  it('the store does not change the permissions of an existing file', async () => {
    await open().close()
    chmodSync(path, 0o640)
    await openStore().insert(makeRow(1))
    expect(statSync(path).mode & 0o777).toBe(0o640)
  })

  it('the store sets a write-ahead log, full sync, a busy timeout and secure deletion', () => {
    const opened = watchOpening()
    openStore()
    openStore({ busyTimeout: 1 })
    const settings = { journal_mode: 'wal', synchronous: 2, fullfsync: 1, secure_delete: 1 }
    for (const [name, value] of Object.entries({ ...settings, busy_timeout: 5_000 }))
      expect(pragmaOf(opened[0], name), name).toBe(value)
    expect(pragmaOf(opened[1], 'busy_timeout')).toBe(1)
  })

  it('the store declares durability device for a file, and memory for a database in memory', () => {
    expect(openStore().durability).toBe('device')
    expect(openStore({ path: ':memory:' }).durability).toBe('memory')
    expect(existsSync(':memory:')).toBe(false)
  })

  it('the store uses the same file after a change of the working directory', async () => {
    const elsewhere = vi.spyOn(process, 'cwd').mockReturnValue(directory)
    const store = openStore({ path: 'relative.db' })
    elsewhere.mockRestore()
    await store.insert(makeRow(1))
    await store.close()
    expect(countRows(join(directory, 'relative.db'))).toBe(1)
  })

  const NO_DIRECTORY = /its directory does not exist\. Create the directory first\.$/
  const NO_PATH = '`path` of SqliteStore must be the path of a file'
  it.each<[what: string, at: () => unknown, message: string | RegExp, code?: string]>([
    ['a missing directory', () => join(directory, 'missing/orders.db'), NO_DIRECTORY, 'ENOENT'],
    [
      'a missing directory behind a dangling symbolic link',
      () => {
        symlinkSync(join(directory, 'missing/orders.db'), path)
        return path
      },
      NO_DIRECTORY,
    ],
    [
      'a directory',
      () => directory,
      'the file cannot be opened. Check that the path names a file',
      'SQLITE_CANTOPEN',
    ],
    [
      'a file as a directory',
      () => {
        writeFileSync(path, '')
        return join(path, 'orders.db')
      },
      'the file cannot be created (ENOTDIR)',
    ],
    ['no path', () => '', NO_PATH],
    ['a relative URL', () => 'file:orders.db', NO_PATH],
    ['a URL', () => 'file:///tmp/orders.db?mode=memory', NO_PATH],
    ['no option', () => undefined, NO_PATH],
    // Its transaction could roll the rows back.
    ['a connection of the application', openDatabase, NO_PATH],
  ])('SqliteStore rejects %s, and the error states it', async (_, at, message, code) => {
    const wrong = at() as string
    const { message: text } = await expectFailure(() => open({ path: wrong }), message, code)
    if (message !== NO_PATH) expect(text).toContain(wrong)
  })

  it.each([-1, 0.5, Number.NaN, 2 ** 31])('SqliteStore rejects the busy timeout %d', async (busyTimeout) => {
    const reason = '`busyTimeout` of SqliteStore must be a whole number of milliseconds'
    await expectFailure(() => open({ busyTimeout }), reason)
    expect(existsSync(path)).toBe(false)
  })

  it('the store rejects a file that is not a database, and does not change it', async () => {
    const content = 'This is a text, long enough to be read as the header of a database file. '.repeat(100)
    writeFileSync(path, content)
    const opened = watchOpening()
    const reason = `${path}: the file is not an SQLite database`
    const { cause } = await expectFailure(open, reason, 'SQLITE_NOTADB')
    expect(cause).toMatchObject({ name: 'Error' })
    expect(readFileSync(path, 'utf8')).toBe(content)
    expect(opened.map(({ isOpen }) => isOpen)).toEqual([false])
    expect(readdirSync(directory)).toEqual(['orders.db'])
  })

  it('the store rejects a database that a newer version wrote, and does not change it', async () => {
    await open().close()
    execute('INSERT INTO customer_ordering_schema (version) VALUES (2)')
    const before = readFileSync(path)
    await expectFailure(open, NEWER)
    expect(readFileSync(path).equals(before)).toBe(true)
    // Nor does it stay open.
    expect(readdirSync(directory)).toEqual(['orders.db'])
  })

  it('after the update, this version stores no order and sends none', async () => {
    const store = openStore()
    execute('INSERT INTO customer_ordering_schema (version) VALUES (2)')
    expect((await expectOrderNotSent(store)).message).toContain(NEWER)
  })

  it('the store rejects a database in UTF-16, whose rows it could never read, and does not change it', async () => {
    execute("PRAGMA encoding = 'UTF-16'; CREATE TABLE theirs (id TEXT)")
    const reason = 'the database has the encoding UTF-16le, but the store needs UTF-8'
    const { message } = await expectFailure(open, reason)
    expect(message).toContain('`sqlite3 old.db .dump | sqlite3 new.db`')
    expect(execute('SELECT name FROM sqlite_schema').map(({ name }) => name)).toEqual(['theirs'])
  })

  const COPY = 'CREATE TABLE customer_ordering_rows AS SELECT * FROM old'
  const KEY = 'INDEX key ON customer_ordering_rows (scope, id)'
  it.each([
    ['has no key, as CREATE TABLE AS leaves it', COPY],
    ['has the key as an index that is not unique', `${COPY}; CREATE ${KEY}`],
    ['has the key for some of its rows only', `${COPY}; CREATE UNIQUE ${KEY} WHERE open = 1`],
    [
      'has a key that takes upper and lower case for the same',
      `CREATE TABLE customer_ordering_rows (scope TEXT, id TEXT COLLATE NOCASE, version INTEGER,
        open INTEGER, state TEXT, created_at INTEGER, updated_at INTEGER, data TEXT,
        PRIMARY KEY (scope, id)) STRICT`,
    ],
  ])('the store rejects a table that %s, and does not change it', async (_, restore) => {
    const store = open()
    await store.insert(makeRow(1))
    await store.close()
    execute(`ALTER TABLE customer_ordering_rows RENAME TO old; ${restore}; DROP TABLE old`)
    const tables = 'SELECT sql FROM sqlite_schema'
    const before = execute(tables)
    await expectFailure(open, 'customer_ordering_rows has lost its primary key (scope, id)')
    expect(execute(tables)).toEqual(before)
  })

  it('the store does not change other tables', async () => {
    execute("CREATE TABLE orders (id TEXT); INSERT INTO orders VALUES ('theirs')")
    const store = openStore()
    await store.insert(makeRow(1))
    await store.prune(SCOPE, EVERYTHING)
    expect(execute('SELECT id FROM orders').map(({ id }) => id)).toEqual(['theirs'])
  })

  it.each<[how: string, find: () => object | undefined]>([
    ['if node:sqlite is missing', () => undefined],
    ['if the runtime throws for an unknown module', throwing('No such built-in module: node:sqlite')],
  ])('the error explains what to do %s, and the store creates nothing', async (_, find) => {
    replaceNodeSqlite(find)
    const reason = `SqliteStore needs the module node:sqlite, which this runtime (Node ${process.version}) does not have`
    const { message } = await expectFailure(open, reason)
    expect(message).toContain('Use Node 22.13 or newer.')
    expect(readdirSync(directory)).toEqual([])
  })

  it('the error is the same on a runtime other than Node', async () => {
    vi.stubGlobal('process', undefined)
    const failed = failureOf(open)
    vi.unstubAllGlobals()
    expect((await failed).message).toContain('this runtime (not Node)')
  })
})

it('a write rejects if another process holds the lock longer than the busy timeout', async () => {
  const store = openStore({ busyTimeout: 30 })
  await store.insert(makeRow(1))
  const child = await start('lock', path)
  const reason = `the order store in ${path}: another connection kept it locked`
  await expectFailure(() => store.insert(makeRow(2)), `Cannot write to ${reason}`, 'SQLITE_BUSY')
  expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
  await expectFailure(() => open({ busyTimeout: 30 }), `Cannot open ${reason}`)
  const released = nextMessage(child)
  child.send('release')
  await released
  expect(await store.insert(makeRow(2))).toEqual({ inserted: true })
})

it('a write waits for another process that releases its lock in time', async () => {
  const store = openStore({ busyTimeout: 30_000 })
  const child = await start('lock', path)
  child.send('release')
  expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
})

it('writes reject while the disk is full, and acknowledged rows survive', async () => {
  const { store, connection } = openWithConnection()
  connection.exec('PRAGMA max_page_count = 40')
  const data = 'x'.repeat(8_000)
  const acknowledged: string[] = []
  const insertMany = async () => {
    for (let number = 1; number < 100; number++) {
      await store.insert(makeRow(number, { data }))
      acknowledged.push(makeRow(number).id)
    }
  }
  const reason =
    'the disk is full, or the database has reached its size limit. Free up space. Nothing was written.'
  expect((await expectFailure(insertMany, reason, 'SQLITE_FULL')).applied).toBe(false)
  expect(acknowledged.length).toBeGreaterThan(5)
  const rows = await walk((options) => store.list(SCOPE, options), 10)
  expect(rows.map(({ id }) => id).sort()).toEqual(acknowledged.sort())
  const refused = makeRow(acknowledged.length + 1, { data })
  await failureOf(() => store.update(nextVersion(makeRow(1, { data: data.repeat(10) })), 1))
  expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1, { data }))
  connection.exec('PRAGMA max_page_count = 1000')
  expect(await store.insert(refused)).toEqual({ inserted: true })
})

it('a read rejects on a damaged page instead of returning wrong data', async () => {
  const store = openStore()
  for (const row of makeRows(50)) await store.insert({ ...row, data: 'x'.repeat(1_000) })
  await store.close()
  const [root] = execute("SELECT rootpage FROM sqlite_schema WHERE name = 'customer_ordering_rows'")
  const page = Buffer.alloc(4_096, 0xa5)
  writeSync(openSync(path, 'r+'), page, 0, page.length, (Number(root?.['rootpage']) - 1) * page.length)
  const damaged = openStore()
  const reason = 'the file is damaged. Stop writing to it, keep a copy'
  await expectFailure(() => damaged.get(SCOPE, makeRow(1).id), reason, 'SQLITE_CORRUPT')
  await failureOf(() => damaged.insert(makeRow(99)))
})

it('a read rejects text that is not UTF-8 instead of replacing characters', async () => {
  const store = openStore()
  await store.insert(makeRow(1))
  execute("UPDATE customer_ordering_rows SET data = CAST(x'61ff62' AS TEXT)")
  const error = await failureOf(() => store.get(SCOPE, makeRow(1).id))
  expect(codeOf(error)).toBe('ERR_ENCODING_INVALID_ENCODED_DATA')
})

it('a write rejects a number that is not an integer', async () => {
  const store = openStore()
  const wrong = makeRow(1, { updatedAt: 1.5 })
  await expectFailure(() => store.insert(wrong), 'cannot store REAL value in INTEGER column')
  expect(await store.get(SCOPE, wrong.id)).toBeUndefined()
})

describe('a file that is removed while the store is open', () => {
  const link = (): string => join(directory, 'link.db')
  it.each<readonly [how: string, take: () => void, named: () => string]>([
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
  ])('every call rejects after the file was %s', async (_, take, named) => {
    const store = open()
    // What is left of a removed file cannot be closed.
    ends.push(() => store.close().catch(() => {}))
    await store.insert(makeRow(1))
    take()
    const reason = `${named()} was deleted or replaced while the store was open`
    for (const { message, applied } of await expectFailures(writesOf(store), reason)) {
      expect(applied).toBe(false)
      expect(message).toContain('Nothing was written.')
    }
    // Rows that only the new file has would be missing from a read of the old one.
    for (const { applied } of await expectFailures(readsOf(store), reason)) expect(applied).toBeUndefined()
  })

  it('a write that finds its file replaced afterwards may have happened', async () => {
    let take = (): void => {}
    const store = openWatched((run) => {
      const result = run()
      take()
      return result
    })
    take = () => renameSync(path, `${path}.moved`)
    const error = await failureOf(() => store.insert(makeRow(1)))
    expect(error.message).toContain('Cannot confirm a write to the order store')
    expect(error.applied).toBeUndefined()
    renameSync(`${path}.moved`, path)
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
  })

  it('every call rejects after the symbolic link was moved to another file', async () => {
    symlinkSync('orders.db', link())
    const store = openStore({ path: link() })
    await store.insert(makeRow(1))
    await open({ path: join(directory, 'other.db') }).close()
    rmSync(link())
    symlinkSync('other.db', link())
    await expectFailures(callsOf(store), 'was deleted or replaced')
  })

  it('the store works again when the file is back', async () => {
    const store = openStore()
    renameSync(path, `${path}.moved`)
    await failureOf(() => store.insert(makeRow(1)))
    renameSync(`${path}.moved`, path)
    expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
    expect(countRows()).toBe(1)
  })

  it('create() sends no request after the database file was deleted, and does not say what it cannot know', async () => {
    const { sandbox, client } = shopOver(open())
    await client.orders.create(order('before'))
    rmSync(path)
    const after = client.orders.create(order('after'))
    await expect(after).rejects.toMatchObject({ code: 'store', charged: 'unknown' })
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
  const { store, connection } = openWithConnection()
  connection.exec(pragma)
  const filler = connection.prepare(
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

it('close merges the log into the file, even while another connection is open', async () => {
  const store = openStore()
  const other = openStore()
  await store.insert(makeRow(1))
  await store.close()
  const copy = join(directory, 'copy.db')
  copyFileSync(path, copy)
  expect(countRows(copy)).toBe(1)
  await other.close()
  expect(readdirSync(directory)).not.toContain('orders.db-wal')
})

it('the file contains nothing of replaced or pruned data', async () => {
  const store = openStore()
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

it('if the file becomes read-only, writes reject and reads succeed', async () => {
  const { store, connection } = openWithConnection()
  await store.insert(makeRow(1))
  connection.exec('PRAGMA query_only = ON')
  const error = await expectFailure(() => store.insert(makeRow(2)), 'it is read-only', 'SQLITE_READONLY')
  expect(error.applied).toBe(false)
  expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
})

it('a failed creation of the tables closes the connection and leaves no transaction', async () => {
  execute('CREATE TABLE customer_ordering_rows (something TEXT)')
  await expectFailure(open, `in ${path}: no such column`)
  expect(readdirSync(directory)).toEqual(['orders.db'])
  execute('DROP TABLE customer_ordering_rows')
  await openStore().insert(makeRow(1))
})

it('a write whose sync failed may have happened, and so may every later write of the row', async () => {
  let failure: Error | undefined
  const store = openWatched((run) => {
    if (failure !== undefined) throw failure
    return run()
  })
  const insert = (number: number) => () => store.insert(makeRow(number))
  failure = Object.assign(new Error('disk I/O error'), { errcode: 1034 })
  const unknown = 'the disk or file system failed. Check both. The write may or may not have happened.'
  expect((await expectFailure(insert(2), unknown, 'SQLITE_IOERR')).applied).toBeUndefined()
  // The log may contain the write whose sync failed, and a crash would restore it.
  failure = Object.assign(new Error('database or disk is full'), { errcode: 13 })
  expect((await failureOf(insert(2))).applied).toBeUndefined()
  expect((await failureOf(insert(3))).applied).toBe(false)
})

it('prune removes many rows in batches, and other work runs in between', async () => {
  const store = openStore()
  fill(openDatabase(), 1_200)
  await store.insert(makeRow(1))
  const finished: string[] = []
  const limits = { createdBefore: 1_101, rejectedBefore: 0 }
  const pruned = store.prune(SCOPE, limits).finally(() => finished.push('prune'))
  await new Promise((resolve) => setImmediate(resolve))
  await store.insert(makeRow(2)).finally(() => finished.push('insert'))
  expect(await pruned).toBe(1_100)
  expect(finished).toEqual(['insert', 'prune'])
  expect(countRows()).toBe(102)
})

it('every statement uses an index, whatever the number of rows', async () => {
  const prepared = new Set<string>()
  replaceNodeSqlite(() => ({
    DatabaseSync: class extends DatabaseSync {
      override prepare(sql: string): StatementSync {
        if (sql.includes('customer_ordering_rows') && !sql.includes('pragma_')) prepared.add(sql)
        return super.prepare(sql)
      }
    },
  }))
  openStore()
  vi.restoreAllMocks()
  const database = openDatabase()
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
    'USING INDEX customer_ordering_list (scope=? AND updated_at>?)',
    // listOpen
    'USING INDEX customer_ordering_open (scope=? AND id>?)',
    // get and update
    byKey,
    byKey,
    'USING INTEGER PRIMARY KEY (rowid=?)',
  ])
})

describe('several processes', { timeout: 120_000 }, () => {
  it('several processes can create the same file at the same time', async () => {
    const racers = await Promise.all([1, 2, 3, 4].map(() => start('open')))
    for (let file = 0; file < effort(4, 60); file++) {
      const answers = racers.map(nextMessage)
      for (const racer of racers) racer.send(join(directory, `${file}.db`))
      expect(await Promise.all(answers)).toEqual(['opened', 'opened', 'opened', 'opened'])
    }
  })
})
