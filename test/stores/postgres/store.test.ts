import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { type PostgresClient, PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StoreError } from '../../../src/errors/classes.ts'
import { makeRow, makeRows, nextVersion, SCOPE } from '../../../src/stores/contract/rows.ts'
import { AnswerProxy, type AnswerProxyOptions } from '../support/answer-proxy.ts'
import { sqlServer } from '../support/during.ts'
import {
  callsOf,
  codeOf,
  expectFailure,
  expectFailures,
  expectLaggingCopyIsNotBelieved,
  expectOrderNotSent,
  failureOf,
  readsOf,
} from '../support/failures.ts'
import { NEWER } from '../support/newer-version.ts'
import { execute, makePool, type PgClient, type PgPool, pg } from '../support/postgres-clients.ts'
import { behavesAsServerStore } from '../support/server-store.ts'
import { describeWith } from '../support/services.ts'
import { HOOK_TIMEOUT } from '../support/sql-server.ts'
import { behavesAsSqlStore } from '../support/sql-store.ts'

const CLOSED = { open: false, state: 'created' } as const
const INSIDE = 'its connection is inside a transaction, and a rollback could remove an order'

describeWith('postgres', 'PostgresStore and its server', () => {
  const server = sqlServer('postgres', '-c max_connections=40 -c wal_writer_delay=10s')
  /** A new database for each test. */
  let database = ''
  let url = ''
  let databases = 0
  const ends: (() => unknown)[] = []

  beforeEach(async () => {
    database = `database_${++databases}`
    url = server().urlFor({ database })
    await execute(server().url, `CREATE DATABASE ${database}`)
  }, HOOK_TIMEOUT)
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  }, HOOK_TIMEOUT)

  function openPool(options: object = {}, address = url): PgPool {
    const pool = makePool(address, options)
    ends.push(() => pool.end())
    return pool
  }

  /** A proxy in front of the server, and the URL of the database through it. */
  async function openProxy(options?: AnswerProxyOptions) {
    const through = new URL(url)
    const proxy = await AnswerProxy.start(Number(through.port), options)
    ends.push(() => proxy.stop())
    through.port = String(proxy.port)
    return { proxy, through: through.href }
  }

  const open = (options?: object): PostgresStore => new PostgresStore({ client: openPool(options) })

  /** A store after its first call. */
  async function openReady(client: PostgresClient = openPool()): Promise<PostgresStore> {
    const store = new PostgresStore({ client })
    await store.migrate()
    return store
  }

  async function openWithRow(client: PostgresClient = openPool()): Promise<PostgresStore> {
    const store = new PostgresStore({ client })
    await store.insert(makeRow(1))
    return store
  }

  async function begin(options?: object): Promise<PgClient> {
    const client = await openClient(options)
    await client.query('BEGIN')
    return client
  }

  async function openClient(options: object = {}): Promise<PgClient> {
    const client = new (pg().Client)({ connectionString: url, ...options })
    client.on('error', () => {})
    await client.connect()
    ends.push(() => client.end().catch(() => {}))
    return client
  }

  function unknownClient(client: PostgresClient): PostgresClient {
    return { query: (text, parameters) => client.query(text, parameters) }
  }

  /** A client that reports each statement before it sends it. */
  const watched = (client: PostgresClient, tell: (text: string) => void): PostgresClient => ({
    query: (text, parameters) => {
      tell(text)
      return client.query(text, parameters)
    },
  })

  /** A transaction on a separate connection that holds the lock of a row. */
  async function lockRow(id: string): Promise<PgClient> {
    const client = await begin()
    await client.query('SELECT 1 FROM customer_ordering_rows WHERE id = $1 FOR UPDATE', [id])
    return client
  }

  async function untilFound(query: string): Promise<void> {
    while ((await execute(url, query)).length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
  }

  const BLOCKED = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
  const untilBlocked = () => untilFound(`SELECT 1 ${BLOCKED}`)

  const WAITING = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()"
  /** Makes commits of the server wait for this standby, or for none. */
  async function setStandby(name: string): Promise<void> {
    await execute(url, `ALTER SYSTEM SET synchronous_standby_names = '${name}'`)
    await execute(url, 'SELECT pg_reload_conf()')
    await untilFound(`SELECT 1 WHERE current_setting('synchronous_standby_names') = '${name}'`)
  }

  async function openRole(rights = ''): Promise<{ readonly role: string; readonly client: PgPool }> {
    const role = `role_${database}`
    await execute(url, `CREATE ROLE ${role} LOGIN PASSWORD 'p' ${rights}`)
    return { role, client: openPool({}, server().urlFor({ database, user: role, password: 'p' })) }
  }

  const countRows = async (): Promise<number> =>
    Number((await execute(url, 'SELECT count(*)::int AS count FROM customer_ordering_rows'))[0]?.['count'])

  behavesAsSqlStore({
    name: 'PostgresStore',
    open,
    query: (sql) => execute(url, sql),
    versions: 'customer_ordering_rows_versions',
    dropIndex: 'DROP INDEX customer_ordering_rows_open',
    schema: "SELECT count(*) AS count FROM pg_class WHERE relnamespace = 'public'::regnamespace",
    dropped: 'its tables are missing. If they were dropped, their orders are forgotten',
  })

  const LOCKED = 'longer than lock_timeout (in MySQL, innodb_lock_wait_timeout) allows. End that transaction.'
  const TIMED_OUT = 'longer than its time limit allows. Check whether a lock delays it.'
  behavesAsServerStore<PostgresClient>({
    server,
    openPool,
    over: (client, options) => new PostgresStore({ client, ...options }),
    openClosable: async () => [makePool(url), await openClient()],
    wrong: [{ query: 'SELECT 1' }, 'needs a client with a method `query(text, parameters)`'],
    disasters: ['restart', 'crash'],
    one: { max: 1 },
    lock: () => lockRow(makeRow(1).id),
    kill: () => untilFound(`SELECT pg_terminate_backend(pid) ${BLOCKED}`),
    codes: ['28P01', '3D000', '57P01'],
    limits: [
      ['statement_timeout', { options: '-c statement_timeout=700' }, '57014', TIMED_OUT],
      ['lock_timeout', { options: '-c lock_timeout=700' }, '55P03', LOCKED],
    ],
    session: 'SELECT pg_backend_pid() AS pid',
  })

  describe('the tables', () => {
    it('the store creates its tables with the first call, not earlier', async () => {
      const store = open()
      const tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
      expect(await execute(url, tables)).toEqual([])
      await store.get(SCOPE, 'id')
      const made = [{ tablename: 'customer_ordering_rows' }, { tablename: 'customer_ordering_rows_versions' }]
      expect(await execute(url, tables)).toEqual(made)
      await store.migrate()
      await store.migrate()
      expect(await execute(url, tables)).toEqual(made)
    })

    it.each([
      ['Orders of "Ada"', 'A schema'],
      ["it's; DROP TABLE x; --", 'public'],
      ['$migrate$', '$migrate_$'],
      ['ünïcödé', 'public'],
      ['select', 'table'],
      ["it's :open `:id`", ':data'],
      ['x'.repeat(54), 'y'.repeat(63)],
    ])('the tables have exactly the configured names: %j in %j', async (table, schema) => {
      const quoted = `"${schema.replaceAll('"', '""')}"`
      await execute(url, `CREATE SCHEMA IF NOT EXISTS ${quoted}`)
      const store = new PostgresStore({ client: openPool(), table, schema })
      await store.insert(makeRow(1))
      await store.update(nextVersion(makeRow(1), CLOSED), 1)
      expect((await store.list(SCOPE, { limit: 5 })).rows).toHaveLength(1)
      const tables = await execute(
        url,
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^pg_|^info' ORDER BY 2",
      )
      expect(tables).toEqual([
        { schemaname: schema, tablename: table },
        { schemaname: schema, tablename: `${table}_versions` },
      ])
    })

    it.each<[table: string, schema: string]>([
      ['x'.repeat(55), 'x'.repeat(64)],
      ['ü'.repeat(28), 'ü'.repeat(32)],
      ...['', 'a\u0000b', 'a\nb', '\ud800', 7 as never].map((name): [string, string] => [name, name]),
    ])('the store rejects the table name %j and the schema name %j', async (table, schema) => {
      const wrong = (names: object) => () => new PostgresStore({ client: openPool(), ...names })
      await expectFailure(wrong({ table }), '`table` of PostgresStore must be a name of 1 to 54 bytes')
      await expectFailure(wrong({ schema }), '`schema` of PostgresStore must be a name of 1 to 63 bytes')
    })

    it('the tables are the same for every search_path of a connection', async () => {
      await execute(url, 'CREATE SCHEMA other')
      await openWithRow(openPool({ options: '-c search_path=other' }))
      expect(await open().insert(makeRow(1))).toMatchObject({ inserted: false })
    })

    it('a write that waited for the update of its tables by a newer version inserts no row', async () => {
      const store = await openReady()
      const newer = await begin()
      await newer.query('ALTER TABLE customer_ordering_rows ADD COLUMN lease bigint')
      await newer.query('INSERT INTO customer_ordering_rows_versions VALUES (2)')
      const late = failureOf(() => store.insert(makeRow(1)))
      await untilBlocked()
      await newer.query('COMMIT')
      expect((await late).message).toContain(NEWER)
      expect(await countRows()).toBe(0)
    })

    const COPY = 'CREATE TABLE customer_ordering_rows AS SELECT * FROM old'
    const INDEX = 'INDEX ON customer_ordering_rows (scope, id)'
    const ALTER = `${COPY}; ALTER TABLE customer_ordering_rows`
    it.each([
      ['no key, as CREATE TABLE AS leaves them', COPY],
      ['a key that is not unique', `${COPY}; CREATE ${INDEX}`],
      ['a key for some rows only', `${COPY}; CREATE UNIQUE ${INDEX} WHERE open`],
      ['a key with one more column', `${ALTER} ADD PRIMARY KEY (scope, id, version)`],
      ['a key that is checked at the end of a transaction', `${ALTER} ADD UNIQUE (scope, id) DEFERRABLE`],
    ])('the store rejects tables with %s, and does not change them', async (_, restore) => {
      await openWithRow()
      await execute(url, `ALTER TABLE customer_ordering_rows RENAME TO old; ${restore}`)
      const reason =
        /its table has no primary key \(scope, id\).* ADD PRIMARY KEY \(scope, id\)\. Nothing was changed\./
      await expectFailure(() => open().insert(makeRow(1)), reason)
      expect(await countRows()).toBe(1)
    })

    it('the store creates no indexes on a restored table without version and key', async () => {
      await openReady()
      await execute(
        url,
        `ALTER TABLE customer_ordering_rows RENAME TO old; ${COPY}; DROP TABLE old, customer_ordering_rows_versions`,
      )
      await expectFailure(() => open().migrate(), 'its table has no primary key (scope, id)')
      const indexes = "SELECT 1 FROM pg_indexes WHERE tablename = 'customer_ordering_rows'"
      expect(await execute(url, indexes)).toEqual([])
    })

    it('the store writes no order after its table lost its primary key', async () => {
      const store = await openWithRow()
      await execute(url, 'ALTER TABLE customer_ordering_rows DROP CONSTRAINT customer_ordering_rows_pkey')
      await expectFailure(() => store.insert(makeRow(1)), 'its table has no primary key (scope, id)', '42P10')
      expect(await countRows()).toBe(1)
    })

    it("the store rejects another program's table, and does not change it", async () => {
      const theirs = 'CREATE TABLE customer_ordering_rows (mine text)'
      await execute(url, `${theirs}; INSERT INTO customer_ordering_rows VALUES ('x')`)
      await expectFailure(() => open().migrate(), 'another table already has the name that the store uses')
      expect(await execute(url, 'SELECT * FROM customer_ordering_rows')).toEqual([{ mine: 'x' }])
    })

    it('the store rejects a table that a crash would empty', async () => {
      await openReady()
      await execute(url, 'ALTER TABLE customer_ordering_rows SET UNLOGGED')
      await expectFailure(() => open().get(SCOPE, 'id'), 'its table is UNLOGGED')
    })

    it('the store requires that the schema exists', async () => {
      const call = () => new PostgresStore({ client: openPool(), schema: 'missing' }).migrate()
      await expectFailure(call, 'the schema "missing" does not exist. Create it')
    })

    it('the store requires a database with the encoding UTF8', async () => {
      const latin = `latin_${database}`
      const encoding = "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
      await execute(server().url, `CREATE DATABASE ${latin} ${encoding}`)
      const client = openPool({}, server().urlFor({ database: latin }))
      await expectFailure(() => new PostgresStore({ client }).migrate(), 'must have the encoding UTF8')
    })

    it('a role without the right to create tables can use existing tables', async () => {
      const { role, client } = await openRole()
      const store = new PostgresStore({ client })
      await expectFailure(() => store.migrate(), 'this user may not use the store', '42501')
      await openReady()
      expect(codeOf(await failureOf(() => store.get(SCOPE, 'id')))).toBe('42501')
      await execute(
        url,
        `GRANT SELECT ON customer_ordering_rows_versions TO ${role};
         GRANT SELECT, INSERT, UPDATE, DELETE ON customer_ordering_rows TO ${role}`,
      )
      expect(await store.insert(makeRow(1, CLOSED))).toEqual({ inserted: true })
      expect(await store.prune(SCOPE, { createdBefore: 1e15, rejectedBefore: 0 })).toBe(1)
    })
  })

  describe('a transaction of the caller', () => {
    it.each([
      ['a client of pg', (client: PgClient): PostgresClient => client],
      ['a client of which nothing is known', unknownClient],
    ])("calls of %s do not join the caller's transaction", async (_, wrap) => {
      const client = await openClient()
      const store = await openWithRow(wrap(client))
      for (const call of callsOf(store)) {
        await client.query('BEGIN')
        await client.query('CREATE TABLE theirs (id int)')
        await expectFailure(call, INSIDE, '2D000')
        // The rejected call makes the transaction fail, so nothing in it can be committed.
        await expectFailure(call, INSIDE, '25P02')
        await client.query('COMMIT')
      }
      expect(await execute(url, "SELECT FROM pg_tables WHERE tablename = 'theirs'")).toEqual([])
      expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
      expect(await store.get(SCOPE, makeRow(2).id)).toBeUndefined()
      expect(await store.update(nextVersion(makeRow(1)), 1)).toBe(true)
    })

    const VERSIONS = ['pg', 'pg-8.0'] as const
    const SHARED = [
      ['a pool', (pool: PgPool): PostgresClient => pool],
      ['an adapter that spreads its statements over connections', unknownClient],
    ] as const
    it.each(SHARED.flatMap(([what, share]) => VERSIONS.map((version) => ({ what, share, version }))))(
      'a connection of $what that was released after BEGIN takes no acknowledged row with it ($version)',
      async ({ share, version }) => {
        const pool = new (pg(version).Pool)({ connectionString: url, max: 3 })
        pool.on('error', () => {})
        ends.push(() => pool.end())
        const store = await openReady(share(pool))
        const held = await Promise.all([1, 2, 3].map(() => pool.connect()))
        for (const client of held.slice(1)) await client.query('BEGIN')
        for (const client of held) client.release()
        const rows = makeRows(12)
        const results = await Promise.allSettled(rows.map((row) => store.insert(row)))
        const acknowledged = rows.filter((_, at) => results[at]?.status === 'fulfilled').map(({ id }) => id)
        const stored = await execute(url, 'SELECT id FROM customer_ordering_rows')
        expect(stored.map(({ id }) => id).sort()).toEqual(acknowledged.sort())
        for (const result of results)
          if (result.status === 'rejected') expect(result.reason).toMatchObject({ applied: false })
      },
    )

    it("the store does not create its tables in a caller's transaction", async () => {
      const client = await begin()
      await expectFailure(() => new PostgresStore({ client }).migrate(), INSIDE)
      await client.query('COMMIT')
      expect(await execute(url, "SELECT 1 FROM pg_tables WHERE schemaname = 'public'")).toEqual([])
    })

    it('if a transaction begins while a write waits, nothing is written', async () => {
      const client = await openClient()
      let begins = false
      const store = new PostgresStore({ client: watched(client, () => begins && void client.query('BEGIN')) })
      await store.migrate()
      begins = true
      expect((await expectFailure(() => store.insert(makeRow(1)), INSIDE)).applied).toBe(false)
      await client.query('COMMIT')
      expect(await countRows()).toBe(0)
    })

    it('a transaction left open on a pooled connection ends with that connection', async () => {
      const pool = openPool({ max: 1 })
      const store = await openReady(pool)
      const forgetful = await pool.connect()
      await forgetful.query('BEGIN')
      forgetful.release()
      await expectFailure(() => store.insert(makeRow(1)), INSIDE)
      expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
      expect(await countRows()).toBe(1)
    })
  })

  describe('failures', () => {
    it('a write rejects if its response is lost after it was applied', async () => {
      const { proxy, through } = await openProxy({
        ask: (data) => {
          if (data.includes('_write') && data.includes(makeRow(1).id)) proxy.loseNextAnswer()
        },
      })
      const store = await openReady(openPool({}, through))
      await expectFailure(() => store.insert(makeRow(1)), 'The write may or may not have happened')
      expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
    })

    it('the process survives if the server ends a new connection', async () => {
      const ready = Buffer.from('Z\u0000\u0000\u0000\u0005I')
      const fields = 'SFATAL\u0000VFATAL\u0000C57P01\u0000Mterminating\u0000\u0000'
      const length = Buffer.alloc(4)
      length.writeInt32BE(4 + fields.length)
      let injected = false
      const { through } = await openProxy({
        answer: (data) => {
          if (injected || !data.includes(ready)) return data
          injected = true
          return Buffer.concat([data, Buffer.from('E'), length, Buffer.from(fields)])
        },
      })
      const store = new PostgresStore({ client: openPool({}, through) })
      await expectFailure(() => store.get(SCOPE, 'id'), 'the connection failed, or the server ended it')
      expect(injected).toBe(true)
      expect(await store.get(SCOPE, 'id')).toBeUndefined()
    })

    it('every later call rejects after a single client loses its connection', async () => {
      const client = await openClient()
      const store = await openWithRow(client)
      const lost = new Promise((resolve) => client.on('error', resolve))
      await execute(
        server().url,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`,
      )
      await lost
      for (let call = 0; call < 2; call++)
        expect(codeOf(await failureOf(() => store.get(SCOPE, 'id')))).toBe('CONNECTION_LOST')
    })

    it('a crash loses no acknowledged row, even if connections use synchronous_commit = off', async () => {
      const pool = openPool({ options: '-c synchronous_commit=off' })
      const store = await openReady(pool)
      await pool.query('CREATE TABLE theirs (id int)')
      // The server's own writer must not run first, as it did on a busy machine.
      await execute(url, "ALTER SYSTEM SET wal_writer_delay = '10s'")
      await execute(url, 'SELECT pg_reload_conf()')
      await execute(url, 'CHECKPOINT')
      await store.insert(makeRow(1))
      await store.update(nextVersion(makeRow(1)), 1)
      await pool.query('INSERT INTO theirs VALUES (1)')
      const unwritten = 'SELECT pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() AS some'
      const [log] = await execute(url, unwritten)
      await server().crash()
      const found = await vi.waitFor(() => store.get(SCOPE, makeRow(1).id), { timeout: 30_000 })
      expect(found).toEqual(nextVersion(makeRow(1)))
      // Control: rows whose commit did not wait are lost, unless the server has already written
      // them.
      if (log?.['some'] === true) expect(await execute(url, 'SELECT * FROM theirs')).toEqual([])
    })

    it.each(['off', 'local'])(
      'a failover loses no acknowledged row, even if the role sets synchronous_commit = %s',
      async (setting) => {
        // The role's own writes are acknowledged without a standby.
        const pool = openPool({ options: `-c synchronous_commit=${setting}` })
        const store = await openReady(pool)
        await pool.query('CREATE TABLE theirs (id int)')
        await setStandby('a_standby_that_is_away')
        try {
          await pool.query('INSERT INTO theirs VALUES (1)')
          const written = store.insert(makeRow(1))
          const waiting = untilFound(`SELECT 1 ${WAITING}`).then(() => 'waiting')
          expect(await Promise.race([written, waiting])).toBe('waiting')
          await setStandby('')
          expect(await written).toEqual({ inserted: true })
        } finally {
          await setStandby('')
        }
      },
    )

    it('a call rejects if the pool has no free connection in time', async () => {
      const pool = openPool({ max: 1, connectionTimeoutMillis: 1_500 })
      const store = await openWithRow(pool)
      const taken = await pool.connect()
      const reason =
        /no connection became free in time, or none could be opened\. .* This attempt wrote nothing\.$/
      await expectFailure(() => store.insert(makeRow(2)), reason)
      taken.release()
      expect(await store.insert(makeRow(2))).toEqual({ inserted: true })
    })

    it('a call rejects if the server has no free connection', async () => {
      const { role, client } = await openRole('SUPERUSER CONNECTION LIMIT 0')
      await execute(url, `ALTER ROLE ${role} NOSUPERUSER`)
      const call = () => new PostgresStore({ client }).migrate()
      await expectFailure(call, 'the server has no free connections', '53300')
    })

    it('a call rejects if the client stops waiting for the response', async () => {
      const store = await openWithRow(openPool({ query_timeout: 1_500 }))
      const locker = await lockRow(makeRow(1).id)
      const call = () => store.update(nextVersion(makeRow(1)), 1)
      const error = await expectFailure(call, 'The write may or may not have happened', 'QUERY_TIMEOUT')
      expect(error.applied).toBeUndefined()
      // The abandoned write still waits for the row, so a later failure must not report that
      // nothing was written.
      const wrong = nextVersion(makeRow(1), { updatedAt: 0.5 })
      expect((await failureOf(() => store.update(wrong, 1))).applied).toBeUndefined()
      expect((await failureOf(() => store.insert(makeRow(2, { updatedAt: 0.5 })))).applied).toBe(false)
      await locker.query('ROLLBACK')
    })

    it('the store runs at READ COMMITTED, so a concurrent write is no serialization failure', async () => {
      const store = await openWithRow(
        openPool({ options: '-c default_transaction_isolation=repeatable\\ read' }),
      )
      const locker = await begin()
      await locker.query("UPDATE customer_ordering_rows SET version = 2, data = 'theirs'")
      const ours = store.update(nextVersion(makeRow(1)), 1)
      await untilBlocked()
      await locker.query('COMMIT')
      expect(await ours).toBe(false)
    })

    it('a write rejects if the database is read-only', async () => {
      await openWithRow()
      const store = open({ options: '-c default_transaction_read_only=on' })
      expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
      const error = await expectFailure(() => store.insert(makeRow(2)), 'the database is read-only', '25006')
      // Another server than the primary proves nothing about the row.
      expect(error.applied).toBeUndefined()
    })

    it('a new order is reported as not charged, with certainty, if the database is at its limit of time', async () => {
      await openReady()
      const store = await openReady(openPool({ options: '-c statement_timeout=300' }))
      const locker = await begin()
      await locker.query('LOCK TABLE customer_ordering_rows IN EXCLUSIVE MODE')
      const error = await expectOrderNotSent(store)
      expect(error.message).toContain('longer than its time limit allows')
      await locker.query('ROLLBACK')
    })

    it.each([
      ['a pool', (pool: PgPool): PostgresClient => pool],
      ['a client of which nothing is known', unknownClient],
    ])('what row-level security hides from %s is not taken for absent', async (_, share) => {
      await openReady()
      const { role, client } = await openRole()
      await execute(url, `GRANT ALL ON customer_ordering_rows, customer_ordering_rows_versions TO ${role}`)
      const store = await openWithRow(share(client))
      const secure = 'ALTER TABLE customer_ordering_rows ENABLE ROW LEVEL SECURITY'
      await expectLaggingCopyIsNotBelieved(store, async () => void (await execute(url, secure)))
      const refused = await expectFailure(() => store.insert(makeRow(2)), 'this user may not use', '42501')
      expect(refused.applied).toBeUndefined()
      const others = callsOf(store).filter((_, at) => at !== 3)
      for (const { applied } of await expectFailures(others, 'row-level security hides rows'))
        expect(applied).toBeUndefined()
    })

    describe('synchronous replication', () => {
      /** Cancels the wait of the one statement that waits for a standby. */
      const cancelWait = () => untilFound(`SELECT pg_cancel_backend(pid) ${WAITING}`)
      afterEach(() => setStandby(''), HOOK_TIMEOUT)

      it.each([
        ['a pool', () => openPool()],
        ['a client', () => openClient()],
      ])('a write of %s whose wait for the standby was cancelled is in doubt', async (_, connect) => {
        const store = await openReady(await connect())
        await setStandby('missing')
        for (const write of [
          () => store.insert(makeRow(1)),
          () => store.update(nextVersion(makeRow(1)), 1),
        ]) {
          const failed = expectFailure(write, 'the wait for a synchronous standby was probably cancelled')
          await cancelWait()
          expect((await failed).applied).toBeUndefined()
        }
        expect(await countRows()).toBe(1)
      })

      it('a client that does not show warnings may not write while the server waits for standbys', async () => {
        const store = await openWithRow(unknownClient(openPool()))
        await setStandby('missing')
        const reason = 'this client does not show when that wait is cancelled'
        expect((await expectFailure(() => store.insert(makeRow(2)), reason)).applied).toBe(false)
        expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
        expect(await countRows()).toBe(1)
      })
    })

    const NO_INTEGER = 'a number, such as a time, is too large or not an integer'
    it.each([
      [{ updatedAt: 1.5 }, '22P02', NO_INTEGER],
      [{ createdAt: Number.NaN }, '22P02', NO_INTEGER],
      [{ version: 1e21 }, '22P02', NO_INTEGER],
      [{ updatedAt: 1e20 }, '22003', NO_INTEGER],
      [
        { scope: randomBytes(9_000).toString('base64') },
        '54000',
        'a string, such as the account label, is too long for the database',
      ],
    ])('the store rejects a row that it cannot store: %#', async (fields, code, text) => {
      const store = open()
      const { cause } = await expectFailure(() => store.insert(makeRow(1, fields)), text, code)
      expect(cause).toMatchObject({ name: 'error' })
      expect(await countRows()).toBe(0)
    })

    it('the store rejects a cursor whose time is too large', async () => {
      const call = () => open().list(SCOPE, { limit: 1, after: '12345678901234567890 id' })
      await expectFailure(call, '`after` must be the `next` of a page that this store returned')
    })

    it('the store rejects a client that does not return rows as objects', async () => {
      const store = new PostgresStore({ client: { query: async () => ({ rows: [['{}']] }) } })
      await expectFailure(() => store.migrate(), 'does not return rows as objects')
      for (const result of [undefined, {}, { rows: 1 }]) {
        const client = { query: () => Promise.resolve(result) } as unknown as PostgresClient
        const wrong = new PostgresStore({ client })
        await expectFailure(() => wrong.migrate(), "The client's `query` must return `{ rows }`")
      }
      const thrower = new PostgresStore({ client: { query: () => Promise.reject('no error at all') } })
      await expectFailure(() => thrower.migrate(), 'the database client reported UNKNOWN')
    })
  })

  describe('rows', () => {
    it('rows are returned exactly, whatever type parsers the client has', async () => {
      const { types } = pg()
      const [bigint, bool, text] = [20, 16, 25]
      const original = (value: string): string => value
      types.setTypeParser(bigint, BigInt)
      types.setTypeParser(bool, (value) => (value === 't' ? 'yes' : 'no'))
      ends.push(() => {
        types.setTypeParser(bigint, original)
        types.setTypeParser(bool, (value) => value === 't')
        types.setTypeParser(text, original)
      })
      const store = open()
      const row = makeRow(1, { version: Number.MAX_SAFE_INTEGER - 1, updatedAt: Number.MAX_SAFE_INTEGER })
      await store.insert(row)
      expect(await store.get(SCOPE, row.id)).toEqual(row)
      expect(await store.update({ ...row, version: row.version + 1 }, row.version - 1)).toBe(false)
      expect(await store.update({ ...row, version: row.version + 1 }, row.version)).toBe(true)
    })

    it('an application without a codec can read its rows as JSON', async () => {
      const store = open()
      const data = JSON.stringify({ name: 'a\u0000b \u001b \ufeff ✓' })
      await store.insert(makeRow(1, { data }))
      expect(await execute(url, 'SELECT data FROM customer_ordering_rows')).toEqual([{ data }])
    })

    it('strings that escape to similar text stay different rows', async () => {
      const store = open()
      const texts = '\u0000 \u001b0 \u001b1 \u001b10 \u001b \u001b\u0000 \ufeff \u001b2 \u001b12'.split(' ')
      for (const text of texts) {
        const row = makeRow(1, { scope: text, id: text, data: text })
        expect(await store.insert(row)).toEqual({ inserted: true })
      }
      for (const text of texts) {
        expect(await store.get(text, text)).toMatchObject({ scope: text, id: text, data: text })
        expect((await store.list(text, { limit: 5 })).rows).toHaveLength(1)
      }
    })

    it("a row's time can be compared with fractions and infinities", async () => {
      const store = open()
      await store.insert(makeRow(1, { ...CLOSED, updatedAt: 10 }))
      const list = async (since: number) => (await store.list(SCOPE, { limit: 5, since })).rows.length
      expect([await list(9.5), await list(10), await list(10.5)]).toEqual([1, 1, 0])
      expect([await list(Number.NEGATIVE_INFINITY), await list(1e300)]).toEqual([1, 0])
      await expectFailure(() => list(Number.NaN), 'order store is NaN')
      const prune = (createdBefore: number) => store.prune(SCOPE, { createdBefore, rejectedBefore: 0 })
      expect([await prune(10), await prune(10.5)]).toEqual([0, 1])
    })

    /** Inserts closed rows directly, which is much faster than with the store. */
    const fill = (count: number) =>
      execute(
        url,
        `INSERT INTO customer_ordering_rows SELECT '${SCOPE}', lpad(n::text, 8, '0'), 2, false, 'created', n, n, '{}'
         FROM generate_series(1, ${count}) AS n`,
      )

    it('prune removes rows in batches, without waiting for rows that other transactions are writing', async () => {
      let statements = 0
      const client = watched(openPool(), (text) => {
        if (text.startsWith('CALL') && text.includes('_prune')) statements++
      })
      const store = await openReady(client)
      await fill(1_200)
      const locker = await lockRow('00000007')
      expect(await store.prune(SCOPE, { createdBefore: 1_101, rejectedBefore: 0 })).toBe(1_099)
      expect(statements).toBe(4)
      await locker.query('ROLLBACK')
      expect(await store.prune(SCOPE, { createdBefore: 1_101, rejectedBefore: 0 })).toBe(1)
      expect(await countRows()).toBe(100)
    })

    it('every query uses an index, whatever the number of rows', async () => {
      await openReady()
      await fill(20_000)
      await execute(url, 'ANALYZE')
      // A connection reports its scans when it ends, at the latest.
      for (const end of ends.splice(0)) await end()
      const store = open()
      const statistics = "FROM pg_stat_user_tables WHERE relname = 'customer_ordering_rows'"
      const scans = () => execute(url, `SELECT seq_scan::int AS seq ${statistics}`)
      const before = await scans()
      // After five calls, PostgreSQL plans without the parameters.
      for (let call = 0; call < 8; call++) {
        await store.get(SCOPE, '00000005')
        await store.insert(makeRow(call))
        await store.update(makeRow(1, { id: '00000005', ...CLOSED, version: call + 3 }), call + 2)
        await store.listOpen(SCOPE, { limit: 10 })
        await store.list(SCOPE, { limit: 10, since: 500 })
        await store.prune(SCOPE, { createdBefore: call, rejectedBefore: call })
      }
      for (const end of ends.splice(0)) await end()
      expect(await scans()).toEqual(before)
    })

    it('the store sends one query at a time through a single client, as pg requires', async () => {
      const client = await openClient()
      let [running, most] = [0, 0]
      const query = client.query.bind(client)
      client.query = async (text, parameters) => {
        most = Math.max(most, ++running)
        return await query(text, parameters).finally(() => running--)
      }
      const store = new PostgresStore({ client })
      const calls = makeRows(8).map((row) => store.insert(row))
      await expect(store.update(makeRow(1, { version: 0.5 }), 1)).rejects.toThrow(StoreError)
      await Promise.all(calls)
      expect(await countRows()).toBe(8)
      expect(most).toBe(1)
    })

    it('each call is one statement', async () => {
      let statements = 0
      const store = await openReady(watched(openPool(), () => statements++))
      for (const call of [
        () => store.insert(makeRow(1)),
        () => store.insert(makeRow(1)),
        () => store.update(nextVersion(makeRow(1)), 1),
        () => store.get(SCOPE, makeRow(1).id),
      ]) {
        statements = 0
        await call()
        expect(statements).toBe(1)
      }
    })
  })

  // Keep this test last: the server does not become a primary again.
  it('the store rejects a standby, and a primary that becomes one, whatever rows it lacks', async () => {
    const store = await openWithRow()
    await expectLaggingCopyIsNotBelieved(store, async () => {
      await execute(url, 'DELETE FROM customer_ordering_rows')
      await writeFile(server().pathOf('data/standby.signal'), '')
      await server().restart()
      await vi.waitFor(() => expectFailure(() => store.get(SCOPE, 'id'), 'standby'), { timeout: 30_000 })
    })
    const insert = () => store.insert(makeRow(2))
    const write = await expectFailure(insert, 'perhaps because it is a replica', '25006')
    expect(write.applied).toBeUndefined()
    await expectFailures([...readsOf(store), ...readsOf(open())], 'this server is a standby')
  })
})
