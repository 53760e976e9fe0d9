/**
 * Prints how much memory one call of the built client allocates with a `fetch` that responds
 * immediately. Fails if a call exceeds its budget:
 *
 * npm run allocations
 *
 * Allocated bytes, unlike times, do not depend on the load of the machine. They are counted in a
 * young generation that is too large to be collected, after the engine has compiled the hot code.
 * They include the cost of the stubbed response.
 *
 * For comparison, the program also prints the cost of the response alone, of ky as this package
 * calls it, and of ky with its defaults. The difference to the second is this package's own cost.
 * Give a reason when you raise a budget.
 */
import { spawnSync } from 'node:child_process'
import { getHeapStatistics } from 'node:v8'
import { orderBody, placed } from '../bench/orders.ts'
import { isBuilt, root } from '../build/ensure-built.ts'
import { InstantDispatcher } from './instant-dispatcher.ts'

/** About 5 % above the measured values, to allow for other processors. */
const BUDGETS = {
  'orders.retrieve': 37_700,
  // A page remembers its ids, so that a later nextPage() can skip rows that were already returned.
  'orders.list, 50 rows': 69_800,
  'client.request, POST': 40_000,
  // The client compares the response with the request, so that it never returns another order.
  'orders.create': 78_300,
  'undici: orders.retrieve': 19_100,
  'undici: orders.list, 50 rows': 50_500,
  'undici: client.request, POST': 20_900,
}
type Call = keyof typeof BUDGETS

/** The cost of single parts, for information. They have no budget. */
const PARTS = ['the answer alone', 'ky, one attempt', 'ky, defaults'] as const
const REQUESTS = ['GET', 'list of 50', 'POST'] as const
type Part = `${(typeof PARTS)[number]}, ${(typeof REQUESTS)[number]}`
/**
 * With fewer calls, code is only partly compiled: `orders.retrieve` took 8 % more after 3,000 calls
 * than after 10,000.
 */
const WARM_UP = 10_000
const CALLS = 500
const ROUNDS = 5

/**
 * Bytes of one call: the minimum of several rounds, because other work in the process only adds
 * bytes.
 */
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

async function measure(): Promise<Readonly<Record<Call | Part, number>>> {
  const { CustomerOrderingClient } = await import('customer-ordering-sdk')
  const { default: ky } = await import('ky')
  // Without a reference, because every order has this response.
  const { metadata: _reference, ...fields } = placed(orderBody())
  const order = { ...fields, id: 'ord_1', channel: 'web' }
  const one = new TextEncoder().encode(JSON.stringify(order))
  const data = Array.from({ length: 50 }, (_, index) => ({ ...order, id: `ord_${index}` }))
  const many = new TextEncoder().encode(JSON.stringify({ data }))
  const fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> =>
    new Response((input instanceof Request ? input.url : String(input)).includes('limit') ? many : one, {
      status: (input instanceof Request ? input : init)?.method === 'POST' ? 201 : 200,
      headers: { 'content-type': 'application/json' },
    })
  const options = { baseUrl: 'https://api.example.com', apiKey: 'sk_test_of_a_usual_length_0001', fetch }
  const client = new CustomerOrderingClient({ ...options, account: 'budget' })
  const { metadata: _metadata, ...body } = orderBody()
  const url = `${options.baseUrl}/v1/orders`
  const headers = { authorization: `Bearer ${options.apiKey}` }
  const post = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } }
  const bare = async (address: string, init: RequestInit = { headers }): Promise<unknown> =>
    JSON.parse(await (await fetch(address, init)).text())
  // Calls ky as src/http/ky-transport.ts does: ky sees only the URL.
  const attempt = async (address: string, init: RequestInit = { headers }): Promise<unknown> => {
    const response = await ky(address, {
      retry: 0,
      timeout: false,
      throwHttpErrors: false,
      fetch: () => fetch(address, init),
    })
    return JSON.parse(await response.text())
  }
  const defaults = ky.create({ fetch, headers })
  const { undiciTransport } = await import('customer-ordering-sdk/undici')
  const dispatcher = new InstantDispatcher((path) => (path.includes('limit') ? many : one))
  const undici = new CustomerOrderingClient({
    baseUrl: options.baseUrl,
    apiKey: options.apiKey,
    transport: undiciTransport({ dispatcher }),
  })
  return {
    'orders.retrieve': await bytesOf(() => client.orders.retrieve('ord_1')),
    'orders.list, 50 rows': await bytesOf(() => client.orders.list({ limit: 50 })),
    'client.request, POST': await bytesOf(() => client.request({ method: 'POST', path: '/v1/orders', body })),
    'orders.create': await bytesOf(() => client.orders.create(orderBody())),
    'the answer alone, GET': await bytesOf(() => bare(`${url}/ord_1`)),
    'the answer alone, list of 50': await bytesOf(() => bare(`${url}?limit=50`)),
    'the answer alone, POST': await bytesOf(() => bare(url, { ...post, body: JSON.stringify(body) })),
    'ky, one attempt, GET': await bytesOf(() => attempt(`${url}/ord_1`)),
    'ky, one attempt, list of 50': await bytesOf(() => attempt(`${url}?limit=50`)),
    'ky, one attempt, POST': await bytesOf(() => attempt(url, { ...post, body: JSON.stringify(body) })),
    'ky, defaults, GET': await bytesOf(() => defaults.get(`${url}/ord_1`).json()),
    'ky, defaults, list of 50': await bytesOf(() => defaults.get(`${url}?limit=50`).json()),
    'ky, defaults, POST': await bytesOf(() => defaults.post(url, { json: body }).json()),
    'undici: orders.retrieve': await bytesOf(() => undici.orders.retrieve('ord_1')),
    'undici: orders.list, 50 rows': await bytesOf(() => undici.orders.list({ limit: 50 })),
    'undici: client.request, POST': await bytesOf(() =>
      undici.request({ method: 'POST', path: '/v1/orders', body }),
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
      `${call.padEnd(29)}${String(bytes).padStart(8)} bytes, budget ${budget}${over ? '  FAILED' : ''}\n`,
    )
    if (over) process.exitCode = 1
  }
  const title = '\nFor information'
  process.stdout.write(`${title.padEnd(25)}${REQUESTS.map((name) => name.padStart(12)).join('')}\n`)
  for (const part of PARTS) {
    const cells = REQUESTS.map((request) => String(found[`${part}, ${request}`] ?? Number.NaN).padStart(12))
    process.stdout.write(`${part.padEnd(24)}${cells.join('')}\n`)
  }
}
