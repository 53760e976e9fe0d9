/**
 * Reconciles a large SQLite store with a list of the same length, in a process with a small heap.
 * `--help` prints the usage.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { rowIdOf, scopeOf } from '../../../src/identity/keys.ts'
import { CustomerOrderingClient } from '../../../src/index.ts'
import { encodeRecord, type JournalRecord } from '../../../src/orders/record/record.ts'
import { platformRuntime } from '../../../src/runtime.ts'
import { SqliteStore } from '../../../src/stores/sqlite.ts'
import { positiveInteger, readArguments } from '../../../tools/programs/arguments.ts'
import { LEFT_OPEN } from '../../support/order-context.ts'

const PROGRAM = fileURLToPath(import.meta.url)
const SERVER = 'https://service.test'
const ACCOUNT = 'shop'
const START = Date.UTC(2026, 0, 1)
/** Only the newest records are reported. The older ones must be known all the same. */
const SINCE = START + 10

const idOf = (number: number): string => `ord_${String(number).padStart(22, '0')}`
const orderOf = (number: number) => ({
  id: idOf(number),
  status: 'completed',
  amount: 2500,
  metadata: { externalOrderId: `order-of-a-shop-${number}` },
})

/** Every order but the first is also in the list, and one in the list has no record. */
async function fill(path: string, records: number): Promise<void> {
  await new SqliteStore({ path }).list('', { limit: 1 })
  const database = new DatabaseSync(path)
  const insert = database.prepare('INSERT INTO customer_ordering_rows VALUES (?, ?, 1, 0, ?, ?, ?, ?)')
  const scope = scopeOf(SERVER, ACCOUNT)
  database.exec('BEGIN')
  for (let number = 0; number < records; number++) {
    const order = orderOf(number)
    const slot = `ref:${order.metadata.externalOrderId}`
    const id = rowIdOf(platformRuntime.deriveId, slot)
    const at = START + Math.floor((20 * number) / records)
    const { body: _body, ...content } = LEFT_OPEN
    const record: JournalRecord = {
      ...{ ...content, slot, ...order.metadata, key: platformRuntime.randomId(), fingerprint: {} },
      ...{ state: 'created', ambiguous: false, order, firstSentAt: at },
      ...{ version: 1, createdAt: at, updatedAt: at },
    }
    const row = await encodeRecord(scope, id, record, undefined)
    insert.run(scope, id, row.state, at, at, row.data)
  }
  database.exec('COMMIT')
  database.close()
}

async function reconcileAll(path: string, records: number): Promise<void> {
  const list: typeof fetch = (input) => {
    const { searchParams } = new URL(input instanceof Request ? input.url : input)
    const offset = Number(searchParams.get('offset'))
    const length = Math.min(50, Math.max(0, records - offset))
    return Promise.resolve(Response.json(Array.from({ length }, (_, row) => orderOf(offset + row + 1))))
  }
  for (const since of [undefined, SINCE]) {
    const client = new CustomerOrderingClient({
      baseUrl: SERVER,
      account: ACCOUNT,
      apiKey: 'personal_k1x0r9w7',
      store: new SqliteStore({ path }),
      fetch: list,
      logLevel: 'off',
    })
    const kinds: Record<string, number> = {}
    for await (const { kind } of client.orders.reconcile(since === undefined ? {} : { since }))
      kinds[kind] = (kinds[kind] ?? 0) + 1
    await client.close()
    console.log(JSON.stringify(kinds))
  }
}

const [child, path, count] = process.argv.slice(2)
if (child === '--child') await reconcileAll(path ?? '', Number(count))
else {
  const { records, megabytes } = readArguments(
    {
      usage: `node test/harness/soak/reconcile.ts [RECORDS] [MEGABYTES]
  reconciles that many records (default 300000) with a list of the same length, in a heap of that size (default 256)`,
      positionals: 2,
      options: {},
    },
    ({ positionals: [records = '300000', megabytes = '256'] }) => ({
      records: positiveInteger('RECORDS', records),
      megabytes: positiveInteger('MEGABYTES', megabytes),
    }),
  )
  const folder = mkdtempSync(`${tmpdir()}/reconcile-`)
  const file = `${folder}/orders.db`
  await fill(file, records)
  const heap = `--max-old-space-size=${megabytes}`
  const ran = spawnSync(process.execPath, [heap, PROGRAM, '--child', file, String(records)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  rmSync(folder, { recursive: true })
  const expected = [
    { matched: records - 1, only_remote: 1, only_local: 1 },
    { matched: records / 2, only_remote: 1 },
  ]
  console.log(ran.stdout)
  const passed =
    ran.status === 0 && ran.stdout.trim() === expected.map((line) => JSON.stringify(line)).join('\n')
  console.log(
    `reconcile() of ${records} records in a heap of ${megabytes} MB: ${passed ? 'passed' : 'FAILED'}`,
  )
  process.exitCode = passed ? 0 : 1
}
