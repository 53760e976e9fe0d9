/**
 * Shows why one walk over a long list takes more memory than another. V8 doubles its young
 * generation whenever as many bytes survive as it holds. So memory depends on the live bytes at the
 * moment of a collection.
 *
 * npm run bench collections -- [ORDERS]
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { positiveInteger, readArguments } from '../programs/arguments.ts'
import { startService } from './service.ts'
import { spread } from './statistics.ts'

const orders = readArguments(
  {
    usage: `npm run bench collections -- [ORDERS]
  walks over a list of that many orders (default 1,000,000)`,
    positionals: 1,
    options: {},
  },
  ({ positionals: [orders = '1_000_000'] }) => positiveInteger('ORDERS', orders),
)
const service = await startService(0, orders)

const plain = (items: string): string => `
  let count = 0
  while (count < ${orders}) {
    const response = await fetch('${service.url}/v1/orders?limit=1000&offset=' + count)
    const { data } = ${items}
    for (const _ of data) count++
  }
  process.exit()`
const programs: Readonly<Record<string, string>> = {
  'a loop over fetch': plain('await response.json()'),
  'the same loop, keeping the ids of two pages': `
    const near = []
    ${plain('await response.json(); near.unshift(new Set(data.map(({ id }) => id))); near.length = Math.min(near.length, 2)')}`,
  'this package': `
    import { CustomerOrderingClient } from 'customer-ordering-sdk'
    const client = new CustomerOrderingClient({ baseUrl: '${service.url}', apiKey: 'k' })
    for await (const _ of client.orders.list({ limit: 1000 })) {}
    process.exit()`,
}

console.log(
  '|  | collections | alive after one, kB (median) | MB between two, at the end | heap at the end, MB |',
)
console.log('| --- | ---: | ---: | ---: | ---: |')
for (const [name, program] of Object.entries(programs)) {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--trace-gc', '--trace-gc-nvp', '--input-type=module', '-e', program],
    { cwd: new URL('../..', import.meta.url), maxBuffer: 2 ** 30 },
  )
  const young = stdout.split('\n').filter((line) => line.includes(' gc=s '))
  const of = (field: string): number[] =>
    young.map((line) => Number(new RegExp(`\\b${field}=(\\d+)`).exec(line)?.[1]))
  const last = (values: readonly number[]): string => (spread(values.slice(-5)).median / 1e6).toFixed(0)
  console.log(
    `| ${name} | ${young.length} | ${(spread(of('new_space_survived')).median / 1e3).toFixed(0)} | ${last(of('allocated'))} | ${last(of('start_memory_size'))} |`,
  )
}
service.close()
