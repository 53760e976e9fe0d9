/**
 * Reconciles a million records with the service's list, in a process with little memory. The store
 * makes its rows when they are read, so that all memory is that of `reconcile()`. `argv[2]` is the
 * number of records.
 */
import { CustomerOrderingClient, MemoryStore, type StoredRow } from 'customer-ordering-sdk'
import { hashOf } from '../../src/identity/keys.ts'
import { table } from './compare.ts'
import { instantService, KEY, orderBody } from './orders.ts'

const RECORDS = Number(process.argv[2] ?? 1_000_000)
const DIGITS = 10

let model: StoredRow | undefined

/** The row of the order with this number: the first one, with other digits. */
function rowOf(number: number): StoredRow {
  if (model === undefined) throw new Error('no order was placed')
  const { scope, id, data, ...rest } = model
  const [before, after] = [1, number].map((each) => String(each).padStart(DIGITS, '0')) as [string, string]
  const json = `${data.slice(0, data.lastIndexOf(',"sum":')).replaceAll(before, after)}}`
  const rowId = id.slice(0, -DIGITS) + after
  return { scope, id: rowId, ...rest, data: `${json.slice(0, -1)},"sum":${hashOf(scope + rowId + json)}}` }
}

class EndlessStore extends MemoryStore {
  override async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    model = row
    return await super.update(row, expectedVersion)
  }
  override async get(scope: string, id: string): Promise<StoredRow | undefined> {
    return model === undefined ? await super.get(scope, id) : rowOf(Number(id.slice(-DIGITS)))
  }
  override async list(_scope: string, { after = '0', limit }: { after?: string; limit: number }) {
    const end = Math.min(RECORDS, Number(after) + limit)
    const rows = Array.from({ length: end - Number(after) }, (_, index) => rowOf(Number(after) + index + 1))
    return end < RECORDS ? { rows, next: String(end) } : { rows }
  }
}

const client = new CustomerOrderingClient({
  baseUrl: 'https://api.example.com',
  apiKey: KEY,
  account: 'bench',
  store: new EndlessStore(),
  fetch: instantService,
})
await client.orders.create(orderBody())
// The service lists all orders that were asked for.
for (let number = 1; number < RECORDS; number++) orderBody()

let peak = 0
let matched = 0
const { rss: rssBefore } = process.memoryUsage()
const before = performance.now()
for await (const { kind } of client.orders.reconcile()) {
  if (kind !== 'matched') throw new Error(kind)
  if (++matched % 50_000 === 0) peak = Math.max(peak, process.memoryUsage().rss)
}
if (matched !== RECORDS) throw new Error(`${matched} orders matched`)
const rate = Math.round((RECORDS / (performance.now() - before)) * 1000)
process.stdout.write(`One process with a heap of 256 MB, and a store whose rows need no memory.

${table(
  ['', 'a second', 'most memory of the process', 'before'],
  [
    [
      `\`reconcile()\` of ${RECORDS.toLocaleString('en')} records`,
      rate.toLocaleString('en'),
      `${Math.round(peak / 2 ** 20)} MB`,
      `${Math.round(rssBefore / 2 ** 20)} MB`,
    ],
  ],
)}`)
process.exit()
