/**
 * Prints how much memory one call of the built client allocates over a `fetch` that answers at once, and fails if it is
 * above its budget:
 *
 *     npm run allocations
 *
 * Bytes are the same on a busy machine as on an idle one, which no clock is. They are counted in a young generation that
 * is too large to be collected, after the engine has compiled what is hot. What the stubbed answer itself costs is in
 * them. Raise a budget only together with a reason.
 */
import { spawnSync } from 'node:child_process'
import { getHeapStatistics } from 'node:v8'
import { isBuilt, root } from './ensure-built.ts'

/** About 5 % above what was measured, for other processors. */
const BUDGETS = {
  'orders.retrieve': 39_600,
  'orders.list, 50 rows': 51_100,
  'client.request, POST': 43_300,
  'orders.create': 93_900,
}
type Call = keyof typeof BUDGETS
const WARM_UP = 3_000
const CALLS = 500
const ROUNDS = 5

/** Bytes of one call: the least of some rounds, because whatever else happens only adds. */
async function bytesOf(call: () => Promise<unknown>): Promise<number> {
  for (let count = 0; count < WARM_UP; count++) await call()
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    globalThis.gc?.()
    const before = getHeapStatistics().used_heap_size
    for (let count = 0; count < CALLS; count++) await call()
    least = Math.min(least, (getHeapStatistics().used_heap_size - before) / CALLS)
  }
  return Math.round(least)
}

async function measure(): Promise<Readonly<Record<Call, number>>> {
  const { CustomerOrderingClient } = await import('customer-ordering-sdk')
  const order = { id: 'ord_1', status: 'pending', amount: 250, currency: 'EUR', target: '@someone' }
  const one = new TextEncoder().encode(JSON.stringify(order))
  const data = Array.from({ length: 50 }, (_, index) => ({ ...order, id: `ord_${index}` }))
  const many = new TextEncoder().encode(JSON.stringify({ data }))
  const fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> =>
    new Response(String(input).includes('limit') ? many : one, {
      status: init?.method === 'POST' ? 201 : 200,
      headers: { 'content-type': 'application/json' },
    })
  const options = { baseUrl: 'https://api.example.com', apiKey: 'sk_test_of_a_usual_length_0001', fetch }
  const client = new CustomerOrderingClient({ ...options, account: 'budget' })
  const body = { serviceId: 'svc_standard', target: '@someone', quantity: 10 }
  let number = 0
  return {
    'orders.retrieve': await bytesOf(() => client.orders.retrieve('ord_1')),
    'orders.list, 50 rows': await bytesOf(() => client.orders.list({ limit: 50 }).page()),
    'client.request, POST': await bytesOf(() => client.request({ method: 'POST', path: '/v1/orders', body })),
    'orders.create': await bytesOf(() =>
      client.orders.create({ ...body, metadata: { externalOrderId: `order-${++number}` } }),
    ),
  }
}

if (process.argv[2] === 'measure') process.stdout.write(JSON.stringify(await measure()))
else {
  if (!isBuilt()) {
    process.stderr.write('The build is missing or older than the source: npm run build\n')
    process.exit(2)
  }
  const flags = ['--expose-gc', '--min-semi-space-size=256', '--max-semi-space-size=256', '--single-threaded']
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [...flags, import.meta.filename, 'measure'],
    { cwd: root, encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(stderr)
  const found: Readonly<Record<string, number>> = JSON.parse(stdout)
  for (const [call, budget] of Object.entries(BUDGETS)) {
    const bytes = found[call] ?? Number.NaN
    const over = !(bytes <= budget)
    process.stdout.write(
      `${call.padEnd(24)}${String(bytes).padStart(8)} bytes, budget ${budget}${over ? '  FAILED' : ''}\n`,
    )
    if (over) process.exitCode = 1
  }
}
