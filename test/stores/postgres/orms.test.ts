/** Tests the adapters of docs/guide/orms.md with each ORM and a real server. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { CustomerOrderingClient, type OrderOutbox } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { root } from '../../../scripts/ensure-built.ts'
import { readPages } from '../../docs/support/pages.ts'
import { engine, enginePath, enginesFolder } from '../support/engines.ts'
import { HOOK_TIMEOUT, PostgresServer } from '../support/postgres.ts'
import { execute, makePool, type PgPool } from '../support/postgres-clients.ts'
import { describeWith } from '../support/services.ts'

/** The page's exports for an ORM with this type of transaction. */
type Within<Transaction> = (store: PostgresStore, transaction: Transaction) => OrderOutbox

/** An ORM with a server. */
interface Orm {
  /** Runs the work in a transaction that has inserted one of the caller's rows. */
  transaction(id: string, work: (outbox: OrderOutbox) => Promise<void>): Promise<unknown>
  /** The outbox for something outside a transaction. */
  outside(): OrderOutbox
  end(): Promise<unknown>
}

const { text = '' } = readPages().find(({ path }) => path === 'docs/guide/orms.md') ?? {}
const blocks = new Map(
  [...text.matchAll(/^## (\w+)\n(?:(?!^## )[\s\S])*?```ts\n([\s\S]*?)```/gm)].map(
    ([, name = '', code = '']) => [name, code],
  ),
)

interface DrizzleDatabase {
  execute(query: unknown): PromiseLike<unknown>
  transaction(work: (transaction: DrizzleDatabase) => Promise<void>): Promise<void>
}
type Drizzle = { drizzle(client: unknown): DrizzleDatabase }

function drizzle(
  within: Within<DrizzleDatabase>,
  store: PostgresStore,
  driver: 'node-postgres' | 'postgres-js',
  client: { end(): Promise<unknown> },
): Orm {
  const db = engine<Drizzle>(`drizzle-orm/${driver}`).drizzle(client)
  const { sql } = engine<{ sql: (parts: TemplateStringsArray, ...values: unknown[]) => unknown }>(
    'drizzle-orm',
  )
  return {
    transaction: (id, work) =>
      db.transaction(async (transaction) => {
        await transaction.execute(sql`INSERT INTO checkouts VALUES (${id})`)
        await work(within(store, transaction))
      }),
    outside: () => within(store, db),
    end: () => client.end(),
  }
}

interface KnexDatabase {
  (table: string): { insert(row: object): Promise<unknown> }
  transaction(work: (transaction: KnexDatabase) => Promise<void>): Promise<void>
  destroy(): Promise<void>
}

function knex(within: Within<KnexDatabase>, store: PostgresStore, url: string): Orm {
  const db = engine<{ knex(options: object): KnexDatabase }>('knex').knex({ client: 'pg', connection: url })
  return {
    transaction: (id, work) =>
      db.transaction(async (transaction) => {
        await transaction('checkouts').insert({ id })
        await work(within(store, transaction))
      }),
    outside: () => within(store, db),
    end: () => db.destroy(),
  }
}

interface KyselyDatabase {
  insertInto(table: string): { values(row: object): { execute(): Promise<unknown> } }
  transaction(): { execute(work: (transaction: KyselyDatabase) => Promise<void>): Promise<void> }
  destroy(): Promise<void>
}

async function kysely(within: Within<KyselyDatabase>, store: PostgresStore, pool: PgPool): Promise<Orm> {
  // This package has only an ES module.
  const { Kysely, PostgresDialect }: KyselyModule = await import(enginePath('kysely'))
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
  return {
    transaction: (id, work) =>
      db.transaction().execute(async (transaction) => {
        await transaction.insertInto('checkouts').values({ id }).execute()
        await work(within(store, transaction))
      }),
    outside: () => within(store, db),
    end: () => db.destroy(),
  }
}
interface KyselyModule {
  readonly Kysely: new (options: object) => KyselyDatabase
  readonly PostgresDialect: new (options: object) => unknown
}

interface PrismaDatabase {
  $executeRawUnsafe(text: string, ...values: unknown[]): Promise<unknown>
  $transaction(work: (transaction: PrismaDatabase) => Promise<void>, options: object): Promise<void>
  $disconnect(): Promise<void>
}

/**
 * A client without models. The output of `prisma generate` passes such a description to the same
 * function.
 */
function prisma(within: Within<PrismaDatabase>, store: PostgresStore, url: string): Orm {
  const { getPrismaClient } = engine<{
    getPrismaClient(config: object): new (options: object) => PrismaDatabase
  }>('@prisma/client/runtime/client')
  const { PrismaPg } = engine<{ PrismaPg: new (options: object) => unknown }>('@prisma/adapter-pg')
  const compiler = '@prisma/client/runtime/query_compiler_fast_bg.postgresql'
  const PrismaClient = getPrismaClient({
    previewFeatures: [],
    clientVersion: engine<{ version: string }>('@prisma/client/package.json').version,
    activeProvider: 'postgresql',
    inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
    runtimeDataModel: { models: {}, enums: {}, types: {} },
    parameterizationSchema: { strings: [], graph: 'AAAA' },
    compilerWasm: {
      getRuntime: async () => engine(`${compiler}.js`),
      getQueryCompilerWasmModule: async () =>
        new WebAssembly.Module(
          Buffer.from(engine<{ wasm: string }>(`${compiler}.wasm-base64.js`).wasm, 'base64'),
        ),
      importName: './query_compiler_fast_bg.js',
    },
  })
  const db = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
  return {
    transaction: (id, work) =>
      db.$transaction(
        async (transaction) => {
          await transaction.$executeRawUnsafe('INSERT INTO checkouts VALUES ($1)', id)
          await work(within(store, transaction))
        },
        { timeout: 60_000 },
      ),
    outside: () => within(store, db),
    end: () => db.$disconnect(),
  }
}

interface TypeOrmDatabase {
  readonly manager: TypeOrmDatabase
  initialize(): Promise<unknown>
  query(text: string, parameters?: unknown[]): Promise<never>
  transaction(work: (manager: TypeOrmDatabase) => Promise<void>): Promise<void>
  destroy(): Promise<void>
}

async function typeorm(within: Within<TypeOrmDatabase>, store: PostgresStore, url: string): Promise<Orm> {
  const { DataSource } = engine<{ DataSource: new (options: object) => TypeOrmDatabase }>('typeorm')
  const db = new DataSource({ type: 'postgres', url })
  await db.initialize()
  return {
    transaction: (id, work) =>
      db.transaction(async (manager) => {
        await manager.query('INSERT INTO checkouts VALUES ($1)', [id])
        await work(within(store, manager))
      }),
    outside: () => within(store, db.manager),
    end: () => db.destroy(),
  }
}

describeWith('postgres', 'docs/guide/orms.md', () => {
  let server: PostgresServer
  let pool: PgPool
  let folder: string
  let store: PostgresStore

  beforeAll(async () => {
    server = await PostgresServer.start()
    // No ORM sets a level of its own, so this level shows how each ORM reports a conflict.
    const level = "default_transaction_isolation = 'repeatable read'"
    await execute(server.url, `ALTER DATABASE postgres SET ${level}`)
    pool = makePool(server.url)
    await pool.query('CREATE TABLE checkouts (id text PRIMARY KEY)')
    store = new PostgresStore({ client: pool })
    await store.migrate()
    await mkdir(join(root, '.tmp'), { recursive: true })
    folder = await mkdtemp(join(root, '.tmp/orms-'))
    await symlink(fileURLToPath(new URL('node_modules', enginesFolder)), join(folder, 'node_modules'))
    for (const [name, code] of blocks) await writeFile(join(folder, `${name}.ts`), code)
  }, HOOK_TIMEOUT)
  afterAll(async () => {
    await pool.end()
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }, HOOK_TIMEOUT)

  /** The exports of an ORM's block. */
  const shown = async <T>(name: string): Promise<Within<T>> =>
    (await import(/* @vite-ignore */ join(folder, `${name}.ts`))).within

  const ORMS: Readonly<Record<string, () => Promise<Orm>>> = {
    'Drizzle over node-postgres': async () =>
      drizzle(await shown('Drizzle'), store, 'node-postgres', makePool(server.url)),
    'Drizzle over postgres.js': async () =>
      drizzle(
        await shown('Drizzle'),
        store,
        'postgres-js',
        engine<(url: string) => PgPool>('postgres')(server.url),
      ),
    Knex: async () => knex(await shown('Knex'), store, server.url),
    Kysely: async () => await kysely(await shown('Kysely'), store, makePool(server.url)),
    Prisma: async () => prisma(await shown('Prisma'), store, server.url),
    TypeORM: async () => await typeorm(await shown('TypeORM'), store, server.url),
  }

  it('the documented code compiles with the types of each ORM', async () => {
    const config = {
      extends: join(root, 'tsconfig.test.json'),
      compilerOptions: {
        typeRoots: [join(root, 'node_modules/@types')],
        types: ['node'],
        skipLibCheck: true,
      },
      include: ['*.ts'],
    }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const compiler = join(root, 'node_modules/typescript-native/bin/tsc')
    const said = await promisify(execFile)(process.execPath, [compiler, '-p', folder]).then(
      () => '',
      ({ stdout }) => String(stdout),
    )
    expect(said).toBe('')
  })

  it('the page has a block for each tested ORM, and for no other', () => {
    expect([...blocks.keys()]).toEqual([...new Set(Object.keys(ORMS).map((name) => name.split(' ')[0]))])
  })

  it.each(Object.keys(ORMS))(
    "%s commits and rolls back an enqueued order together with the application's rows",
    async (name) => {
      const orm = await ORMS[name]?.()
      if (orm === undefined) throw new Error('unreachable')
      const sandbox = createSandbox()
      const { baseUrl, apiKey, fetch } = sandbox
      const client = new CustomerOrderingClient({ baseUrl, apiKey, fetch, account: name, store })
      const write = (id: string, within?: OrderOutbox, serviceId = 'svc_standard') =>
        client.orders.enqueue(
          { serviceId, target: '@ada', quantity: 2, metadata: { externalOrderId: id } },
          within === undefined ? {} : { within },
        )
      const rows = async () =>
        (await execute(server.url, 'SELECT id FROM checkouts ORDER BY id')).map(({ id }) => id)
      try {
        const before = await rows()
        const failing = orm.transaction(`${name}-2`, async (outbox) => {
          await write(`${name}-2`, outbox)
          throw new Error('the checkout failed')
        })
        await expect(failing).rejects.toThrow('the checkout failed')
        await orm.transaction(`${name}-1`, async (outbox) => {
          expect(await write(`${name}-1`, outbox)).toMatchObject({ state: 'open' })
          // An existing row is found and stays unchanged.
          expect(await write(`${name}-1`, outbox)).toMatchObject({ state: 'open' })
        })
        await orm.transaction(`${name}-3`, async (outbox) => {
          await write(`${name}-3`, outbox, 'svc_sold_out')
        })
        expect(sandbox.requests).toEqual([])
        expect(await rows()).toEqual([...before, `${name}-1`, `${name}-3`].toSorted())
        expect(await client.orders.recover()).toMatchObject({ created: 1, rejected: 1, needsAttention: [] })

        // The update of a refused order's row has a different result shape in some ORMs.
        await orm.transaction(`${name}-4`, async (outbox) => {
          expect(await write(`${name}-3`, outbox)).toMatchObject({ state: 'open' })
        })
        expect(await client.orders.recover()).toMatchObject({ created: 1, rejected: 0, needsAttention: [] })
        sandbox.expectChargedOnce(`${name}-1`)
        sandbox.expectChargedOnce(`${name}-3`)
        sandbox.expectCharges(2)

        await expect(write(`${name}-5`, orm.outside())).rejects.toThrow(/is not inside a transaction/)

        await write(`${name}-6`)
        const stale = orm.transaction(`${name}-6`, async (outbox) => {
          await client.orders.resolve({ externalOrderId: `${name}-6` }, { as: 'abandoned' })
          await write(`${name}-6`, outbox)
        })
        await expect(stale).rejects.toThrow(/Roll back, and repeat the whole transaction/)
        expect(await rows()).not.toContain(`${name}-6`)
        expect(await client.orders.unresolved()).toEqual([])
      } finally {
        await orm.end()
      }
    },
  )
})
