import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { describeWith } from '../support/postgres.ts'
import { enginesFolder } from '../support/postgres-clients.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const folder = join(root, '.tmp/postgres-types')

const program = `
import { PGlite } from '@electric-sql/pglite'
import { Client, Pool } from 'pg'
import postgres from 'postgres'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { type PostgresClient, PostgresStore } from 'customer-ordering-sdk/stores/postgres'

const pool = new Pool()
const store = new PostgresStore({ client: pool })
export const stores: PostgresStore[] = [
  store,
  new PostgresStore({ client: new Client() }),
  new PostgresStore({ client: await PGlite.create() }),
]

const connection = await pool.connect()
export const outbox = store.within(connection)
await new PGlite().transaction(async (transaction) => {
  await store.within(transaction).get('scope', 'id')
  await new CustomerOrderingClient().orders.enqueue(
    { serviceId: 's', target: 't', quantity: 1, metadata: { externalOrderId: 'r' } },
    { within: store.within(transaction) },
  )
})

const sql = postgres()
const client: PostgresClient = {
  query: async (text, parameters) => ({ rows: await sql.unsafe(text, parameters) }),
  getTransactionStatus: () => 'I',
}
stores.push(new PostgresStore({ client }))

// @ts-expect-error It has no \`query\`.
stores.push(new PostgresStore({ client: { connect: () => {} } }))
`

describeWith('clients', 'the types of PostgresStore', () => {
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('take what pg, PGlite and postgres.js declare', async () => {
    const modules = fileURLToPath(new URL('node_modules', enginesFolder))
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'program.ts'), program)
    await writeFile(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: join(root, 'tsconfig.test.json'),
        compilerOptions: {
          paths: {
            'customer-ordering-sdk/stores/*': [join(root, 'src/stores/*.ts')],
            pg: [join(modules, '@types/pg')],
            postgres: [join(modules, 'postgres')],
            '@electric-sql/pglite': [join(modules, '@electric-sql/pglite')],
          },
        },
        include: ['*.ts'],
      }),
    )
    const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc')
    const output = await promisify(execFile)(process.execPath, [compiler, '-p', folder]).then(
      () => '',
      ({ stdout, message }) => String(stdout || message),
    )
    expect(output).toBe('')
  })
})
