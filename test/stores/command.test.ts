/** The command over the stores of a project, with the project's own driver. */
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { CustomerOrderingClient } from '../../src/client.ts'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { MysqlStore } from '../../src/stores/mysql.ts'
import { PostgresStore } from '../../src/stores/postgres.ts'
import { RedisStore } from '../../src/stores/redis.ts'
import type { OrderStore } from '../../src/stores/store.ts'
import { type Ran, runHere } from '../command/terminal.ts'
import { temporaryFolder } from '../support/folder.ts'
import { failure, order } from '../support/lab.ts'
import { during, redisServers, sqlServer } from './support/during.ts'
import { enginesFolder } from './support/engines.ts'
import { makeMysqlPool } from './support/mysql.ts'
import { makePool } from './support/postgres-clients.ts'
import { nodeRedis } from './support/redis-clients.ts'
import { describeWith } from './support/services.ts'

const engines = fileURLToPath(enginesFolder)

const command = (line: string, folder: string, env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
  runHere(line.split(' '), {
    folder,
    env: {
      CUSTOMER_ORDERING_BASE_URL: 'http://127.0.0.1:1',
      CUSTOMER_ORDERING_API_KEY: 'key-of-nobody',
      ...env,
    },
  })

/**
 * Checks that the command finds an order in doubt in a program's store, recovers it, and leaves no
 * order open.
 */
async function settles(store: OrderStore, flags: string, folder: string): Promise<void> {
  const sandbox = createSandbox()
  const service = await serveSandbox(sandbox)
  onTestFinished(() => service.close())
  const account = `shop-${Math.random()}`
  const { apiKey } = sandbox
  const baseUrl = service.url
  const client = new CustomerOrderingClient({ baseUrl, apiKey, account, store, maxRetries: 0 })
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
  await failure(client.orders.create(order('in-doubt')))

  const env = { CUSTOMER_ORDERING_BASE_URL: baseUrl, CUSTOMER_ORDERING_API_KEY: apiKey }
  const on = (name: string) => command(`${name} ${flags} --account ${account}`, folder, env)
  const listed = await on('unresolved --json')
  expect([listed.code, listed.err]).toEqual([3, ''])
  expect(JSON.parse(listed.out)).toMatchObject({ externalOrderId: 'in-doubt', ambiguous: true })
  const mistyped = await command(`unresolved ${flags} --account nobody`, folder, env)
  expect(mistyped).toMatchObject({ code: 2, out: '' })
  expect(mistyped.err).toContain(JSON.stringify([baseUrl, account]))
  const recovered = await on('recover --yes --json --safe-retry-window 1200000')
  expect(recovered.code).toBe(0)
  expect(recovered.err).toContain(`service ${baseUrl}, account ${account}, store `)
  expect(JSON.parse(recovered.out)).toMatchObject({ outcome: 'created' })
  expect(await on('unresolved')).toMatchObject({ code: 0, out: 'none\n', err: '' })
  sandbox.expectChargedOnce('in-doubt')
}

it.each([
  ['PostgreSQL', 'postgres://ada:secret-word@127.0.0.1:1/x', () => engines],
  ['MySQL', 'mysql://ada:secret-word@127.0.0.1:1/x', () => engines],
  ['Redis, with node-redis', 'redis://:secret-word@127.0.0.1:1', () => engines],
  ['Redis, with ioredis', 'redis://:secret-word@127.0.0.1:1', () => projectWith('ioredis')],
])('the command exits with 1, and prints no password, if no server listens: %s', async (_, store, folder) => {
  const { code, out, err } = await command(`unresolved --store ${store} --account shop`, folder())
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toMatch(/^customer-ordering-sdk: /)
  expect(err).not.toContain('secret-word')
})

/** A program of the project: its store, and what it sees of its database server. */
interface Project {
  readonly store: OrderStore
  query(sql: string): Promise<readonly unknown[]>
  /** The connections of others. */
  others?(): Promise<number>
  end(): Promise<void>
}

function overSql(
  connect: (url: string) => Project,
  server: ReturnType<typeof sqlServer>,
  tables: string,
): void {
  const project = during(
    async () => connect(server().url),
    ({ end }) => end(),
  )

  it('the command settles an order in doubt, and closes its connections', async () => {
    await settles(project().store, `--store ${server().url}`, engines)
    await expect.poll(async () => await project().others?.()).toBeOneOf([0, undefined])
  })

  it('the command exits with 2 for a database without an order store, and creates nothing', async () => {
    await project().query('CREATE DATABASE empty')
    const address = server().urlFor({ database: 'empty' })
    for (const line of ['unresolved', 'recover --yes --safe-retry-window 1200000']) {
      const { code, out, err } = await command(`${line} --store ${address} --account shop`, engines)
      expect({ code, out }).toEqual({ code: 2, out: '' })
      expect(err).toContain('has no order store: it lacks the table customer_ordering_rows. Check --store.')
    }
    const inside = connect(address)
    expect(await inside.query(tables)).toEqual([])
    await inside.end()
  })
}

describeWith('postgres', 'the command over PostgreSQL', () => {
  const connect = (url: string): Project => {
    const client = makePool(url)
    const query = async (sql: string) => (await client.query(sql, [])).rows
    const connections = "SELECT 1 FROM pg_stat_activity WHERE backend_type = 'client backend'"
    const others = async () => (await query(connections)).length - client.totalCount
    return { store: new PostgresStore({ client }), query, others, end: () => client.end() }
  }
  overSql(connect, sqlServer('postgres'), "SELECT 1 FROM pg_tables WHERE schemaname = 'public'")
})

describeWith('mariadb', 'the command over MariaDB', () => {
  const connect = (url: string): Project => {
    const client = makeMysqlPool(url)
    const query = async (sql: string) => {
      const [rows] = await client.query(sql)
      return Array.isArray(rows) ? rows : []
    }
    return { store: new MysqlStore({ client }), query, end: () => client.end() }
  }
  overSql(connect, sqlServer('mariadb'), 'SHOW TABLES')
})

/** A project with this ioredis and without node-redis. */
function projectWith(name: 'ioredis' | 'ioredis-5'): string {
  const folder = temporaryFolder('only-ioredis', onTestFinished)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(join(engines, 'node_modules', name), join(folder, 'node_modules/ioredis'))
  return folder
}

describeWith('redis', 'the command over Redis', () => {
  const servers = redisServers('single')
  const address = () => `redis://127.0.0.1:${servers().port}`
  const client = during(
    () =>
      nodeRedis()
        .createClient({ url: address() })
        .on('error', () => {})
        .connect(),
    (connected) => connected.destroy(),
  )
  const connections = async (): Promise<number> => {
    const lines = await servers().ask('client', 'list')
    return lines.filter((line) => !line.includes('cmd=client')).length
  }

  it.each([
    ['node-redis', () => engines],
    ['ioredis', () => projectWith('ioredis')],
    ['ioredis 5.0', () => projectWith('ioredis-5')],
  ])("the command settles an order with the project's %s, and closes its connection", async (_, folder) => {
    const before = await connections()
    await settles(new RedisStore({ client: client() }), `--store ${address()}`, folder())
    await expect.poll(connections).toBe(before)
  })

  it('the command names the store, the account and the server if a Redis store has no orders', async () => {
    const { code, out, err } = await command(`unresolved --store ${address()}/7 --account shop`, engines)
    expect({ code, out }).toEqual({ code: 0, out: 'none\n' })
    expect(err).toContain(`The store ${address()}/7 has no orders of any account.`)
    expect(err).toContain('["http://127.0.0.1:1","shop"]')
  })
})
