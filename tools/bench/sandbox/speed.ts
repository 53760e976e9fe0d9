/**
 * Measures the speed of the sandbox: `npm run bench sandbox`. Prints two ratios to the minimum that
 * Node needs. Both sides alternate, so that load slows both down:
 *
 * - over loopback, the command compared with a bare `node:http` server that responds with the same
 *   bytes
 * - in process, `sandbox.fetch` compared with a `fetch` that creates the same Request and Response
 *   without any rules
 *
 * The exit code is 1 if the sandbox is slower than it should be.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { ensureBuilt } from '../../build/ensure-built.ts'
import { loadFor, orderBody, type Target } from './load.ts'

const WARM_UP_ROUNDS = 8
const ROUNDS = 15
const LOOPBACK_MS = 500
const CONNECTIONS = 16
const ORDERS_PER_ROUND = 5000

interface Server extends Target {
  readonly child: ChildProcess
}

/** Orders per second of one round. */
interface Rates {
  readonly byClock: number
  /** Per processor time of the serving thread, which depends less on other load. NaN if unknown. */
  readonly byProcessor: number
}

interface Round {
  readonly sandbox: Rates
  readonly bare: Rates
}

interface Row {
  readonly what: string
  /** Medians of the orders per second and of the ratios. */
  readonly sandbox: number
  readonly bare: number
  readonly ratio: number
  readonly wanted: string
  readonly reached: boolean
}

ensureBuilt()
const loopback = await overLoopback()
const fetching = await inProcess()
const half = { wanted: 'ratio of 0.5 or more', reached: (_: number, ratio: number) => ratio >= 0.5 }
const rows: readonly Row[] = [
  rowOf('loopback, by the clock', loopback, 'byClock', half),
  rowOf("loopback, by the server's processor time", loopback, 'byProcessor', half),
  rowOf('in process, by processor time', fetching, 'byProcessor', {
    wanted: '20000 or more',
    reached: (sandbox) => sandbox >= 20_000,
  }),
].filter(({ ratio }) => !Number.isNaN(ratio))
console.table(
  rows.map(({ what, sandbox, bare, ratio, wanted }) => ({
    'orders per second': what,
    sandbox: Math.round(sandbox),
    bare: Math.round(bare),
    ratio: Number(ratio.toFixed(2)),
    wanted,
  })),
)
if (!rows.every(({ reached }) => reached)) process.exitCode = 1

async function overLoopback(): Promise<readonly Round[]> {
  const flags = ['--port', '0', '--quiet', '--balance', String(Number.MAX_SAFE_INTEGER)]
  const [sandbox, bare] = await Promise.all([
    started([fileURLToPath(new URL('../../../dist/command.js', import.meta.url)), 'sandbox', ...flags]),
    started([fileURLToPath(new URL('bare-server.ts', import.meta.url))]),
  ])
  let n = 0
  const load = async (target: Server): Promise<Rates> => {
    const [begin, processor] = [n, processorSeconds(target)]
    const byClock = await loadFor(target, LOOPBACK_MS, CONNECTIONS, () => ++n)
    return { byClock, byProcessor: (n - begin) / (processorSeconds(target) - processor) }
  }
  const loadEmptied = async (): Promise<Rates> => {
    // Reset the sandbox: it remembers every order, so each round would measure another size.
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

async function inProcess(): Promise<readonly Round[]> {
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
  ): Promise<Rates> => {
    const [clock, begin] = [performance.now(), process.cpuUsage()]
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
    // Counts all threads of this process, including garbage collection.
    const { user, system } = process.cpuUsage(begin)
    return {
      byClock: ORDERS_PER_ROUND / ((performance.now() - clock) / 1000),
      byProcessor: ORDERS_PER_ROUND / ((user + system) / 1_000_000),
    }
  }
  const ofSandbox = (): Promise<Rates> => {
    const sandbox = createSandbox({ balance: Number.MAX_SAFE_INTEGER })
    return perSecond(sandbox.fetch, sandbox.apiKey, `${sandbox.baseUrl}/v1/orders`)
  }
  const ofBare = (): Promise<Rates> =>
    perSecond(bareFetch, 'none', 'https://sandbox.customer-ordering.test/v1/orders')
  return inTurns(ofSandbox, ofBare)
}

/** Measures both sides alternately. */
async function inTurns(
  ofSandbox: () => Promise<Rates>,
  ofBare: () => Promise<Rates>,
): Promise<readonly Round[]> {
  const rounds: Round[] = []
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    const measured = { sandbox: await ofSandbox(), bare: await ofBare() }
    if (round >= WARM_UP_ROUNDS) rounds.push(measured)
  }
  return rounds
}

function rowOf(
  what: string,
  rounds: readonly Round[],
  by: keyof Rates,
  goal: { readonly wanted: string; readonly reached: (sandbox: number, ratio: number) => boolean },
): Row {
  const sandbox = median(rounds.map((round) => round.sandbox[by]))
  const bare = median(rounds.map((round) => round.bare[by]))
  const ratio = median(rounds.map((round) => round.sandbox[by] / round.bare[by]))
  return { what, sandbox, bare, ratio, wanted: goal.wanted, reached: goal.reached(sandbox, ratio) }
}

/** Processor time of a server's main thread so far. NaN if the system does not report it. */
function processorSeconds({ child: { pid } }: Server): number {
  const path = `/proc/${pid}/task/${pid}/stat`
  if (!existsSync(path)) return Number.NaN
  // After the name in brackets, the 12th and 13th fields are the used ticks, a hundred per second.
  const fields = readFileSync(path, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

/** Starts a server in a separate process. */
async function started(program: readonly string[]): Promise<Server> {
  const child = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface(child.stdout)) {
    const [, port, apiKey] = /listening on http:\/\/127\.0\.0\.1:(\d+) \(API key: (\S+)\)/.exec(line) ?? []
    if (port === undefined || apiKey === undefined) break
    return { child, port: Number(port), apiKey }
  }
  child.kill()
  throw new Error(`${program[0]} did not start`)
}
