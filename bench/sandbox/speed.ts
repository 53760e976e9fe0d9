/**
 * How fast the sandbox is: `npm run bench:sandbox`. Two questions, each answered by a ratio to the least that Node can do,
 * measured in turns so that a busy machine slows both down:
 *
 *  - over loopback, the command against a bare `node:http` server that answers with the same bytes
 *  - in process, `sandbox.fetch` against a `fetch` that makes the same Request and Response and knows no rule
 *
 * The exit code is 1 if the sandbox is slower than it should be.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { ensureBuilt } from '../../scripts/ensure-built.ts'
import { loadFor, orderBody, type Target } from './load.ts'

const WARM_UP_ROUNDS = 8
const ROUNDS = 15
const LOOPBACK_MS = 500
const CONNECTIONS = 16
const ORDERS_PER_ROUND = 5000

interface Row {
  readonly what: string
  /** Per second. */
  readonly sandbox: number
  readonly bare: number
  /** Median of the rounds' ratios. */
  readonly ratio: number
  readonly wanted: string
  readonly reached: boolean
}

type Measured = Pick<Row, 'sandbox' | 'bare' | 'ratio'>

ensureBuilt()
const loopback = await overLoopback()
const fetching = await inProcess()
const rows: readonly Row[] = [
  {
    what: 'orders per second over loopback',
    ...loopback,
    wanted: 'ratio of 0.5 or more',
    reached: loopback.ratio >= 0.5,
  },
  {
    what: 'orders per second of processor time, in process',
    ...fetching,
    wanted: '20000 or more',
    reached: fetching.sandbox >= 20_000,
  },
]
console.table(
  rows.map(({ what, sandbox, bare, ratio, wanted }) => ({
    '': what,
    sandbox: Math.round(sandbox),
    bare: Math.round(bare),
    ratio: Number(ratio.toFixed(2)),
    wanted,
  })),
)
if (!rows.every(({ reached }) => reached)) process.exitCode = 1

async function overLoopback(): Promise<Measured> {
  const flags = ['--port', '0', '--quiet', '--balance', String(Number.MAX_SAFE_INTEGER)]
  const [sandbox, bare] = await Promise.all([
    started([fileURLToPath(new URL('../../dist/sandbox/cli.js', import.meta.url)), ...flags]),
    started([fileURLToPath(new URL('bare-server.ts', import.meta.url))]),
  ])
  let n = 0
  const load = (target: Target): Promise<number> => loadFor(target, LOOPBACK_MS, CONNECTIONS, () => ++n)
  const loadEmptied = async (): Promise<number> => {
    // It remembers every order, so it would be measured at another size in each round.
    await fetch(`http://127.0.0.1:${sandbox.port}/__sandbox/reset`, { method: 'POST' })
    return load(sandbox)
  }
  try {
    return await inTurns(loadEmptied, () => load(bare))
  } finally {
    sandbox.child.kill()
    bare.child.kill()
  }
}

async function inProcess(): Promise<Measured> {
  const headers = { 'content-type': 'application/json', 'x-request-id': 'req_js96nhr6qerz' }
  const bareFetch = async (url: string, init: RequestInit): Promise<Response> => {
    const request = new Request(url, init)
    const body = await request.text()
    return new Response(body, { status: 201, headers })
  }
  const perSecond = async (
    fetch: (url: string, init: RequestInit) => Promise<Response>,
    apiKey: string,
    url: string,
  ) => {
    const begin = process.cpuUsage()
    for (let n = 0; n < ORDERS_PER_ROUND; n++) {
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${apiKey}`,
          'content-type': 'application/json',
          'idempotency-key': `bench-${n}`,
        },
        body: orderBody(n),
      })
      if (response.status !== 201) throw new Error(`answered with ${response.status}`)
      await response.text()
    }
    // Time of this process on all its cores, garbage collection included: what other processes take does not count.
    const { user, system } = process.cpuUsage(begin)
    return ORDERS_PER_ROUND / ((user + system) / 1_000_000)
  }
  const ofSandbox = (): Promise<number> => {
    const sandbox = createSandbox({ balance: Number.MAX_SAFE_INTEGER })
    return perSecond(sandbox.fetch, sandbox.apiKey, `${sandbox.baseUrl}/v1/orders`)
  }
  const ofBare = (): Promise<number> =>
    perSecond(bareFetch, 'none', 'https://sandbox.customer-ordering.test/v1/orders')
  return inTurns(ofSandbox, ofBare)
}

/** Measures both again and again, and takes medians. */
async function inTurns(ofSandbox: () => Promise<number>, ofBare: () => Promise<number>): Promise<Measured> {
  const rounds: { readonly sandbox: number; readonly bare: number }[] = []
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    const measured = { sandbox: await ofSandbox(), bare: await ofBare() }
    if (round >= WARM_UP_ROUNDS) rounds.push(measured)
  }
  return {
    sandbox: median(rounds.map(({ sandbox }) => sandbox)),
    bare: median(rounds.map(({ bare }) => bare)),
    ratio: median(rounds.map(({ sandbox, bare }) => sandbox / bare)),
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

/** A server in a process of its own. */
async function started(program: readonly string[]): Promise<Target & { readonly child: ChildProcess }> {
  const child = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface(child.stdout)) {
    const [, port, apiKey] = /listening on http:\/\/127\.0\.0\.1:(\d+) \(API key: (\S+)\)/.exec(line) ?? []
    if (port === undefined || apiKey === undefined) break
    return { child, port: Number(port), apiKey }
  }
  child.kill()
  throw new Error(`${program[0]} did not start`)
}
