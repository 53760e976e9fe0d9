import type { CustomerOrderingClient } from 'customer-ordering-sdk'
import { type MysqlClient, MysqlStore } from 'customer-ordering-sdk/stores/mysql'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { makeRow, makeRows, nextVersion, SCOPE } from '../../../src/stores/contract/rows.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { blocksOf, exportsOf, programsOf, readPages } from '../../docs/support/pages.ts'
import { sqlServer } from '../support/during.ts'
import {
  callsOf,
  expectFailure,
  expectFailures,
  expectLaggingCopyIsNotBelieved,
  failureOf,
} from '../support/failures.ts'
import {
  leaveBehind,
  type Mysql2Connection,
  type Mysql2Pool,
  makeMysqlPool,
  mysql2,
  mysql2Callbacks,
  poolWith,
} from '../support/mysql.ts'
import { behavesAsServerStore } from '../support/server-store.ts'
import { describeWith } from '../support/services.ts'
import { behavesAsSqlStore } from '../support/sql-store.ts'

/** The functions of docs/guide/stores/mysql.md. */
interface Page {
  openClient(pool: MysqlClient): CustomerOrderingClient
  openStore(pool: MysqlClient): Promise<MysqlStore>
  takeRows(pool: Mysql2Pool): Promise<{ id: string }[]>
  writeOutcome(pool: Mysql2Pool, outcome: string[]): Promise<void>
}

const PAGE = 'docs/guide/stores/mysql.md'
const page = () => exportsOf<Page>('mysql-docs', programsOf(PAGE))

const IN_TRANSACTION = /its connection is inside a transaction|autocommit is off on its connection/

describeWith('mariadb', 'MysqlStore and its server', () => {
  const server = sqlServer('mariadb', '--log-bin --sync-binlog=1')
  const pools: Mysql2Pool[] = []
  let xids = 0

  function openPool(options: object = {}, url = server().url): Mysql2Pool {
    const pool = makeMysqlPool(url, options)
    pools.push(pool)
    return pool
  }

  const open = (options?: object) => new MysqlStore({ client: openPool(options) })

  /** A store, and its pool of one connection. */
  function openAlone(options: object = {}) {
    const pool = openPool({ connectionLimit: 1, ...options })
    return { pool, store: new MysqlStore({ client: pool }) }
  }

  async function openWithRow() {
    const opened = openAlone()
    await opened.store.insert(makeRow(1))
    return opened
  }

  /** A connection that ends after the test: an open transaction would block the next one. */
  async function connect(): Promise<Mysql2Connection> {
    const connection = await mysql2().createConnection({ uri: server().url })
    onTestFinished(() => connection.end())
    return connection
  }

  async function execute(sql: string): Promise<readonly Record<string, unknown>[]> {
    const connection = await mysql2().createConnection({ uri: server().url, multipleStatements: true })
    try {
      const [rows] = await connection.query(sql)
      return Array.isArray(rows) ? rows.map((row) => ({ ...Object(row) })) : []
    } finally {
      await connection.end()
    }
  }

  beforeEach(() => execute('DROP DATABASE orders; CREATE DATABASE orders'))
  afterEach(async () => {
    for (const pool of pools.splice(0)) await pool.end()
  })

  behavesAsSqlStore({
    name: 'MysqlStore',
    open: () => open(),
    query: execute,
    versions: 'customer_ordering_rows_versions',
    dropIndex: 'DROP TABLE customer_ordering_rows_versions',
    schema: `SELECT TABLE_NAME, COLUMN_NAME, INDEX_NAME FROM information_schema.STATISTICS
      WHERE TABLE_SCHEMA = 'orders' ORDER BY 1, 3, 2`,
    dropped: 'If they were dropped, their orders are forgotten',
  })

  const WAITING = "SELECT id FROM information_schema.PROCESSLIST WHERE info LIKE 'UPDATE%'"
  const LOCKED = 'innodb_lock_wait_timeout) allows. End that transaction.'
  behavesAsServerStore({
    server,
    openPool,
    over: (client, options) => new MysqlStore({ client, ...options }),
    openClosable: async () => [makeMysqlPool(server().url)],
    // A database of Drizzle.
    wrong: [{ query: {}, execute: () => {} }, 'needs a pool or connection of mysql2'],
    disasters: ['crash'],
    one: { connectionLimit: 1 },
    lock: async () => {
      const connection = await connect()
      await connection.query('START TRANSACTION')
      await connection.query('SELECT * FROM customer_ordering_rows FOR UPDATE')
      return connection
    },
    kill: () => vi.waitFor(async () => execute(`KILL ${(await execute(WAITING))[0]?.['id']}`), 30_000),
    codes: ['1045', '1049', 'PROTOCOL_CONNECTION_LOST'],
    limits: [['innodb_lock_wait_timeout', 'SET innodb_lock_wait_timeout = 1', '1205', LOCKED]],
    session: 'SELECT CONNECTION_ID()',
  })

  it.each([
    ['after START TRANSACTION', ['START TRANSACTION']],
    ['after a read of a transaction', ['START TRANSACTION', 'SELECT * FROM customer_ordering_rows']],
    ['with autocommit = 0', ['SET autocommit = 0']],
    ['inside an XA transaction', ["XA START 'xid'"]],
  ])('every call rejects on a connection that was released %s', async (_, statements) => {
    const { pool, store } = await openWithRow()
    for (const call of callsOf(store)) {
      // The server may still end the transaction of the last call.
      const xid = `xid-${++xids}`
      await leaveBehind(pool, ...statements.map((statement) => statement.replace('xid', xid)))
      const error = await expectFailure(call, IN_TRANSACTION)
      expect(error.applied ?? false).toBe(false)
    }
    // The store has closed the connection, so the pool is of use again.
    expect(await store.get(SCOPE, makeRow(2).id)).toBeUndefined()
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
  })

  it('a connection of the caller rejects calls until its transaction ends', async () => {
    const connection = await connect()
    const store = new MysqlStore({ client: connection })
    await store.insert(makeRow(1))
    await connection.query('START TRANSACTION')
    for (const call of callsOf(store)) await expectFailure(call, IN_TRANSACTION, '1568')
    await connection.query('ROLLBACK')
    expect(await store.update(nextVersion(makeRow(1)), 1)).toBe(true)
  })

  it.each(['before the fence', 'before the statement'])(
    'a transaction that begins %s on a shared connection puts the write in doubt',
    async (moment) => {
      const connection = await connect()
      let armed = false
      let fences = 0
      const begin = (): void => void connection.query('START TRANSACTION')
      const store = new MysqlStore({
        client: {
          query: (text) => {
            // The store sends the second fence together with the statement.
            if (armed && ++fences === 2 && moment === 'before the fence') begin()
            return connection.query(text)
          },
          execute: (statement) => {
            if (armed && moment === 'before the statement') begin()
            return connection.execute(statement)
          },
        },
      })
      await store.insert(makeRow(1))
      armed = true
      const error = await failureOf(() => store.insert(makeRow(2)))
      expect(error.applied).toBeUndefined()
      await expectFailure(() => store.get(SCOPE, makeRow(2).id), IN_TRANSACTION)
      // The owner of the transaction decides.
      armed = false
      await connection.query('COMMIT')
      expect(await store.get(SCOPE, makeRow(2).id)).toEqual(makeRow(2))
    },
  )

  it('a call rejects on a connection that was released with locked tables', async () => {
    const { pool, store } = await openWithRow()
    await execute('CREATE TABLE theirs (id INT)')
    await leaveBehind(pool, 'LOCK TABLES theirs READ')
    const error = await expectFailure(() => store.insert(makeRow(2)), 'UNLOCK TABLES', '1100')
    expect(error.applied).toBe(false)
  })

  it.each(['READ UNCOMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'])(
    'a session at %s reads the last commit, and nothing that is not committed',
    async (level) => {
      const { pool, store } = await openWithRow()
      const other = await openPool().getConnection()
      await other.query('START TRANSACTION')
      await other.query("UPDATE customer_ordering_rows SET version = 9, data = 'not committed'")
      await leaveBehind(pool, `SET SESSION TRANSACTION ISOLATION LEVEL ${level}`)
      expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
      await other.query('COMMIT')
      expect(await store.get(SCOPE, makeRow(1).id)).toMatchObject({ version: 9 })
    },
  )

  it('the next transaction of a pool keeps the isolation level of its session', async () => {
    const { pool, store } = openAlone()
    await execute('CREATE TABLE theirs (id INT)')
    const calls: (() => Promise<unknown>)[] = [
      () => store.migrate(),
      () => store.insert(makeRow(1)),
      () => store.insert(makeRow(1)),
      () => store.update(nextVersion(makeRow(9)), 1),
      () => store.get(SCOPE, 'id'),
      () => execute('DROP TABLE customer_ordering_rows'),
      () => failureOf(() => store.get(SCOPE, 'id')),
      () => failureOf(() => new MysqlStore({ client: pool, table: 'theirs' }).migrate()),
    ]
    for (const call of calls) {
      await call()
      const connection = await pool.getConnection()
      await connection.query('START TRANSACTION')
      const count = async () => (await connection.query('SELECT COUNT(*) AS count FROM theirs'))[0]
      const first = await count()
      await execute('INSERT INTO theirs VALUES (1)')
      expect(await count()).toEqual(first)
      await connection.query('COMMIT')
      connection.release()
    }
  })

  it('the COMMIT of the store opens no transaction in a session with completion_type = CHAIN', async () => {
    const { pool, store } = openAlone()
    await execute('CREATE TABLE theirs (id INT)')
    await leaveBehind(pool, 'SET completion_type = CHAIN')
    await store.migrate()
    await pool.query('INSERT INTO theirs VALUES (1)')
    expect(await execute('SELECT * FROM theirs')).toEqual([{ id: 1 }])
  })

  it('a session that only reads by default writes', async () => {
    const { pool, store } = openAlone()
    await store.migrate()
    await leaveBehind(pool, 'SET SESSION TRANSACTION READ ONLY')
    await store.insert(makeRow(1))
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
  })

  it.each([{ waitForConnections: false }, { queueLimit: 1 }])(
    'a pool with %j whose connections are in use is named',
    async (options) => {
      const { pool, store } = openAlone(options)
      await store.migrate()
      const held = await pool.getConnection()
      const next = pool.getConnection().then((connection) => connection.release(), String)
      const reason = /no connection became free in time.*This attempt wrote nothing/
      await expectFailure(() => store.insert(makeRow(1)), reason, 'POOL_TIMEOUT')
      held.release()
      await next
      expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
    },
  )

  describe('settings of a session', () => {
    const withSession = async (statement: string): Promise<OrderStore> => {
      const { pool, store } = openAlone()
      await leaveBehind(pool, statement)
      return store
    }

    it('a session without strict mode truncates nothing', async () => {
      const store = await withSession("SET sql_mode = ''")
      const scope = 'a'.repeat(1_025)
      const reason = 'more than 1024 bytes. Shorten the account label. Nothing was written.'
      const error = await expectFailure(() => store.insert(makeRow(1, { scope })), reason)
      expect(error.applied).toBe(false)
      const longest = makeRow(1, { scope: 'é'.repeat(512), id: 'i'.repeat(1_024) })
      await store.insert(longest)
      expect(await store.get(longest.scope, longest.id)).toEqual(longest)
    })

    it('a session that limits its results does not shorten pages', async () => {
      const store = await withSession('SET sql_select_limit = 1')
      const rows = makeRows(3)
      for (const row of rows) await store.insert(row)
      expect((await store.listOpen(SCOPE, { limit: 5 })).rows).toHaveLength(3)
    })

    it.each([
      "SET sql_mode = 'EMPTY_STRING_IS_NULL'",
      'SET character_set_client = latin1, character_set_connection = utf8mb4',
    ])('calls reject after %s', async (statement) => {
      const store = await withSession(statement)
      await expectFailure(() => store.insert(makeRow(1)), 'its session changes strings')
    })

    it.each([
      "SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'",
      "SET sql_mode = 'ORACLE'",
      'SET sql_safe_updates = 1',
    ])('calls succeed after %s', async (statement) => {
      const store = await withSession(statement)
      const row = makeRow(1, { data: `\\' " ${'\u0000'} \\` })
      await store.insert(row)
      expect(await store.get(SCOPE, row.id)).toEqual(row)
      await store.update(nextVersion(row, { open: false, state: 'created' }), 1)
      expect(await store.prune(SCOPE, { createdBefore: Infinity, rejectedBefore: 0 })).toBe(1)
    })

    it('the store uses the same database after a connection was released in another', async () => {
      const { pool, store } = await openWithRow()
      await execute('CREATE DATABASE IF NOT EXISTS theirs')
      await leaveBehind(pool, 'USE theirs')
      expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
      const nowhere = new MysqlStore({ client: openPool({}, server().url.replace(/orders$/, '')) })
      const reason = 'its connection uses no database. Set the option `database`.'
      await expectFailure(() => nowhere.migrate(), reason)
      const named = new MysqlStore({ client: pool, database: 'orders' })
      expect(await named.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
    })
  })

  describe('settings of the server', () => {
    const restore = () =>
      execute(`SET GLOBAL innodb_flush_log_at_trx_commit = 1, sync_binlog = 1, read_only = 0,
        default_storage_engine = InnoDB`)
    afterEach(restore)

    it.each([
      ['SET GLOBAL innodb_flush_log_at_trx_commit = 2', 'innodb_flush_log_at_trx_commit is not 1'],
      ['SET GLOBAL innodb_flush_log_at_trx_commit = 0', 'innodb_flush_log_at_trx_commit is not 1'],
      ['SET GLOBAL sync_binlog = 0', 'the binary log may lack a commit'],
      ['SET GLOBAL read_only = 1', 'this server is read-only, so it may be a replica'],
    ])('%s is rejected, at first and while the store is open', async (statement, message) => {
      const store = open()
      await store.insert(makeRow(1))
      await execute(statement)
      // The user may write even if the server is read-only.
      await expectFailures(callsOf(store), message)
      await expectFailure(() => open().migrate(), message)
      await restore()
      expect((await store.listOpen(SCOPE, { limit: 5 })).rows).toEqual([makeRow(1)])
    })

    it('the tables use InnoDB, whatever the default', async () => {
      await execute('SET GLOBAL default_storage_engine = MyISAM')
      await open().migrate()
      const engines = "SELECT DISTINCT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'orders'"
      expect(await execute(engines)).toEqual([{ ENGINE: 'InnoDB' }])
    })

    it.each([
      ['ENGINE = Aria', 'its table uses the engine Aria, which may lose rows'],
      ['MODIFY id VARCHAR(255)', 'its table was not created by this package'],
      ['MODIFY data VARCHAR(255)', 'its table was not created by this package'],
      ['DROP PRIMARY KEY', 'its table has no primary key (scope, id)'],
      ['DROP PRIMARY KEY, ADD PRIMARY KEY (scope(10), id(10))', 'its table has no primary key'],
      ['DROP PRIMARY KEY, ADD PRIMARY KEY (scope, id, version)', 'its table has no primary key'],
    ])('a table after ALTER TABLE … %s is rejected', async (change, message) => {
      await open().insert(makeRow(1))
      await execute(`ALTER TABLE customer_ordering_rows ${change}`)
      await expectFailure(() => open().get(SCOPE, 'id'), message)
    })

    it.each<[string, Record<string, string>, string]>([
      ['a node of Galera', { wsrep_on: 'ON', wsrep_sync_wait: '0' }, 'a node of Galera may lag behind'],
      [
        'a group with eventual consistency',
        { group_replication_group_name: 'a', group_replication_consistency: 'EVENTUAL' },
        'a member of the group may lag behind',
      ],
      [
        'a group with many primaries',
        {
          group_replication_group_name: 'a',
          group_replication_consistency: 'BEFORE_ON_PRIMARY_FAILOVER',
          group_replication_single_primary_mode: 'OFF',
        },
        'a member of the group may lag behind',
      ],
    ])('%s is rejected unless its reads wait for the other nodes', async (_, settings, message) => {
      const withSettings = (changed: Record<string, string>): MysqlStore => {
        const rows = Object.entries(changed).map(([Variable_name, Value]) => ({ Variable_name, Value }))
        const client = poolWith(openPool(), async (statement, connection) =>
          statement.sql.startsWith('SHOW') ? [rows] : await connection.execute(statement),
        )
        return new MysqlStore({ client })
      }
      await expectFailure(() => withSettings(settings).migrate(), message)
      const waits = { wsrep_sync_wait: '7', group_replication_consistency: 'BEFORE_AND_AFTER' }
      await withSettings({ ...settings, ...waits }).migrate()
    })

    it('a failover to a replica that lags behind is not believed', async () => {
      const fail = () => execute('DELETE FROM customer_ordering_rows; SET GLOBAL read_only = 1')
      await expectLaggingCopyIsNotBelieved(open(), fail)
    })
  })

  it.each([
    [1213, 'a deadlock with another transaction. Try again. Nothing was written.', false],
    [1114, "the server's disk or its table is full. Free up space. Nothing was written.", false],
    [1180, 'the database client reported 1180', undefined],
    [1317, 'The write may or may not have happened.', undefined],
  ])('a write that fails with error %d says what that means', async (errno, message, applied) => {
    const pool = openPool()
    await new MysqlStore({ client: pool }).migrate()
    const client = poolWith(pool, async (statement, connection) => {
      if (!statement.sql.startsWith('INSERT')) return await connection.execute(statement)
      throw Object.assign(new Error('secret'), { errno })
    })
    const insert = () => new MysqlStore({ client }).insert(makeRow(1))
    expect((await expectFailure(insert, message, String(errno))).applied).toBe(applied)
  })

  it('a user with access to the rows only needs no right to create tables', async () => {
    await execute(`CREATE OR REPLACE USER limited@'127.0.0.1' IDENTIFIED BY 'x';
        GRANT SELECT, INSERT, UPDATE, DELETE ON orders.* TO limited@'127.0.0.1'`)
    const url = server().urlFor({ user: 'limited', password: 'x' })
    const store = new MysqlStore({ client: openPool({}, url) })
    await expectFailure(() => store.migrate(), 'as a user that may create them', '1142')
    await open().migrate()
    await store.insert(makeRow(1))
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
  })

  it('the store rejects a client that does not show the status of the server', async () => {
    const store = new MysqlStore({ client: { query: async () => [[]], execute: async () => [[]] } })
    await expectFailure(() => store.migrate(), 'does not show the status of the server')
  })

  it.each(['', ' ', 'a\u0000', 'x'.repeat(56), '😀'])('the table name %j is rejected', async (table) => {
    const wrong = () => new MysqlStore({ client: openPool(), table })
    await expectFailure(wrong, 'The option `table` of MysqlStore')
  })

  it('the documented MySQL code works', async () => {
    const pool = openPool({ connectionLimit: 1 })
    const { openClient, openStore } = await page()
    expect(await openClient(pool).orders.unresolved()).toEqual([])
    const store = await openStore(pool)
    expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
    expect((await store.listOpen(SCOPE, { limit: 5 })).rows).toEqual([makeRow(1)])
  })

  it('the documented outbox gives each row to one worker, and keeps an order', async () => {
    const blocks = readPages()
      .filter(({ path }) => path === PAGE)
      .flatMap(blocksOf)
    await execute(blocks.find(({ info }) => info === 'sql')?.code ?? '')
    const row = (id: string) => `('${id}', 'svc_standard', '@ada', 1)`
    const rows = ['a', 'A', 'b'].map(row).join()
    await execute(`INSERT INTO purchases (id, service_id, target, quantity) VALUES ${rows}`)
    const { takeRows, writeOutcome } = await page()
    const pool = openPool()
    const taken = await Promise.all([takeRows(pool), takeRows(pool)])
    const ids = taken.flat().map(({ id }) => id)
    expect(ids.toSorted()).toEqual(['A', 'a', 'b'])
    await writeOutcome(pool, ['a', 'ordered', 'ord_1', ''])
    await writeOutcome(pool, ['a', 'doubt', '', 'timeout'])
    expect(await execute("SELECT id, order_id FROM purchases WHERE state = 'ordered'")).toEqual([
      { id: 'a', order_id: 'ord_1' },
    ])
    await execute('UPDATE purchases SET tried_at = tried_at - INTERVAL 2 MINUTE')
    expect(await takeRows(pool)).toHaveLength(2)
  })

  it('a pool of the callback interface works', async () => {
    const pool = mysql2Callbacks().createPool({ uri: server().url })
    const store = new MysqlStore({ client: pool })
    await store.insert(makeRow(1))
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
    await new Promise<void>((resolve) => pool.end(resolve))
  })

  it.each(['of `this` "shop"', 'orders:open', ':id:data', 'of `:scope`:open'])(
    'the table has exactly the configured name: %s',
    async (table) => {
      const store = new MysqlStore({ client: openPool(), table })
      await store.insert(makeRow(1))
      expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
      const count = `SELECT COUNT(*) AS count FROM \`${table.replaceAll('`', '``')}\``
      expect(await execute(count)).toEqual([{ count: 1 }])
    },
  )

  it('every read uses an index, whatever the number of rows', async () => {
    const pool = openPool()
    const seen: { sql: string; values: readonly unknown[] }[] = []
    const store = new MysqlStore({
      client: poolWith(pool, (statement, connection) => {
        if (/^(SELECT server|DELETE)/.test(statement.sql)) seen.push(statement)
        return connection.execute(statement)
      }),
    })
    for (const row of makeRows(300)) await store.insert({ ...row, open: false, state: 'created' })
    await execute('ANALYZE TABLE customer_ordering_rows')
    await store.get(SCOPE, makeRow(1).id)
    await store.listOpen(SCOPE, { limit: 10 })
    await store.list(SCOPE, { limit: 10, since: 1_700_000_000_000 })
    await store.prune(SCOPE, { createdBefore: 5, rejectedBefore: 5 })
    const plans: string[] = []
    const connection = await pool.getConnection()
    for (const { sql, values } of seen) {
      const [rows] = await connection.execute({
        ...{ sql: `EXPLAIN ${sql}`, values: [...values] as string[] },
        ...{ rowsAsArray: false, nestTables: false, namedPlaceholders: false },
        typeCast: (_field, next) => next(),
      })
      for (const row of Array.isArray(rows) ? rows : []) {
        if (Object(row).table === 'customer_ordering_rows') plans.push(Object(row).key)
      }
    }
    connection.release()
    expect(plans).toEqual(['PRIMARY', 'open_rows', 'listed_rows', 'closed_rows', 'closed_rows'])
  })
})
