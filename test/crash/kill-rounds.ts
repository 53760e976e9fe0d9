/**
 * Rounds of SIGKILL at random moments: a process places orders with a SqliteStore against a sandbox on a socket, is killed
 * again and again, and each time another one recovers and goes on. A round is the same for the same seed, up to the
 * scheduling of the operating system.
 *
 * As a program, for long runs: `npx node test/crash/kill-rounds.ts [ROUNDS] [FIRST_SEED]`.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { positiveInteger, readArguments } from '../../scripts/arguments.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { serveSandbox } from '../../src/sandbox/server.ts'
import { leaksInFiles } from '../support/leaks.ts'
import type { Placing, Told } from './placing-process.ts'

const PROGRAM = fileURLToPath(new URL('./placing-process.ts', import.meta.url))
const ORDERS = 12
/** Every fourth order is one that the wallet cannot pay: told `'no'`, it must never be charged. */
const DEAR = 4
const KILLS = 4
/** Undisturbed runs at the end: what they leave open stays open until a person decides. */
const FINISHES = 3

/** What a round showed. */
export interface Round {
  readonly seed: number
  readonly kills: number
  readonly charges: number
  /** Broken promises, in words; empty if all held. */
  readonly violations: readonly string[]
}

/** Mulberry32: small, seeded, good enough to choose moments. */
function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Runs one round. */
export async function killRound(seed: number): Promise<Round> {
  const random = seeded(seed)
  const folder = mkdtempSync(join(tmpdir(), 'kill-round-'))
  const sandbox = createSandbox({
    seed,
    balance: 100_000,
    preset: random() < 0.5 ? 'default' : 'remembers-refusals',
    behaviour: { processingTime: Math.floor(random() * 20) },
    faults: [
      {
        match: { operation: 'createOrder' },
        probability: 0.15,
        times: 'always',
        action: { type: 'commitThenDrop' },
      },
      { match: { operation: 'createOrder' }, probability: 0.1, times: 'always', action: { type: 'drop' } },
      { match: { operation: 'createOrder' }, probability: 0.1, times: 'always', action: { type: 'cutBody' } },
      {
        match: { operation: 'createOrder' },
        probability: 0.1,
        times: 'always',
        action: { type: 'status', status: 503, commit: true },
      },
    ],
  })
  const server = await serveSandbox(sandbox, { port: 0 })
  const placing: Placing = {
    baseUrl: server.url,
    apiKey: sandbox.apiKey,
    database: join(folder, 'orders.db'),
    log: join(folder, 'told.jsonl'),
    orders: Array.from({ length: ORDERS }, (_, index) => ({
      reference: `seed-${seed}-order-${index}`,
      serviceId: index % DEAR === DEAR - 1 ? 'svc_premium' : 'svc_standard',
    })),
    concurrency: 1 + Math.floor(random() * 4),
  }
  const violations: string[] = []
  let kills = 0
  try {
    for (let run = 0; run < KILLS; run++) {
      if (await runKilled(placing, sandbox, random)) kills++
      // The database, its log, and whatever the process wrote down before it was killed.
      violations.push(
        ...leaksInFiles(sandbox.apiKey, folder).map((leak) => `the API key is on disk: ${leak}`),
      )
    }
    sandbox.faults.clear()
    // Undisturbed runs, until one leaves nothing open.
    for (let run = 0; run < FINISHES && openOrders(placing).length > 0; run++) {
      const output = await finished(start(placing))
      if (output !== '') violations.push(`an undisturbed run failed: ${output}`)
    }
    violations.push(...brokenPromises(placing, sandbox.ledger))
    return { seed, kills, charges: sandbox.ledger.length, violations }
  } finally {
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function start(placing: Placing): ChildProcess {
  return spawn(process.execPath, [PROGRAM, JSON.stringify(placing)], { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** What the process wrote to its error output; empty if it ended well. */
function finished(child: ChildProcess): Promise<string> {
  let output = ''
  child.stderr?.on('data', (chunk) => {
    output += String(chunk)
  })
  return new Promise((resolve) =>
    child.once('close', (code) => resolve(code === 0 ? '' : output || `exit ${code}`)),
  )
}

/** Runs the process and kills it at a seeded request, a seeded moment after it; true if it was still alive then. */
async function runKilled(
  placing: Placing,
  sandbox: ReturnType<typeof createSandbox>,
  random: () => number,
): Promise<boolean> {
  const child = start(placing)
  const ended = finished(child)
  // Counted in requests and not in milliseconds from the start, so that slow machines kill in the middle of work, too.
  const after = sandbox.requests.length + 1 + Math.floor(random() * 6)
  const moment = random() * 12
  let over = false
  void ended.then(() => {
    over = true
  })
  while (!over && sandbox.requests.length < after) await new Promise((resolve) => setTimeout(resolve, 1))
  const deadline = performance.now() + moment
  while (!over && performance.now() < deadline) await new Promise((resolve) => setImmediate(resolve))
  const killed = !over && child.kill('SIGKILL')
  await ended
  return killed
}

function toldOf({ log }: Placing): Told[] {
  if (!existsSync(log)) return []
  const lines = readFileSync(log, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Told)
}

function openOrders(placing: Placing): string[] {
  const closed = new Set(
    toldOf(placing)
      .filter(({ charged }) => charged !== 'unknown')
      .map(({ reference }) => reference),
  )
  return placing.orders.map(({ reference }) => reference).filter((reference) => !closed.has(reference))
}

/** Nobody charged twice, nothing lost, nobody told the wrong thing. */
function brokenPromises(
  placing: Placing,
  ledger: readonly { readonly externalOrderId?: string | undefined; readonly orderId: string }[],
): string[] {
  const broken: string[] = []
  const told = toldOf(placing)
  for (const { reference } of placing.orders) {
    const charges = ledger.filter(({ externalOrderId }) => externalOrderId === reference)
    const heard = told.filter((each) => each.reference === reference)
    const yes = heard.filter(({ charged }) => charged === 'yes')
    if (charges.length > 1) broken.push(`${reference} was charged ${charges.length} times`)
    // A server that remembers an error under the key answers it for ever; the order is listed as open for ever, too.
    const listed = heard.findLast(({ by }) => by === 'recover')?.charged === 'unknown'
    if (charges.length > 0 && yes.length === 0 && !listed)
      broken.push(`${reference} was charged and nobody was told`)
    if (charges.length === 0 && yes.length > 0) broken.push(`${reference} was told as charged and was not`)
    if (charges.length > 0 && heard.some(({ charged }) => charged === 'no'))
      broken.push(`${reference} was told 'no' and charged`)
    // An order whose answer was never readable is told without its id.
    if (yes.some(({ orderId }) => orderId !== undefined && orderId !== charges[0]?.orderId))
      broken.push(`${reference} was told with another order`)
    if (heard.every(({ charged }) => charged === 'unknown') && !listed)
      broken.push(`${reference} was lost from sight`)
  }
  return broken
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { rounds, first } = readArguments(
    {
      usage: `npx node test/crash/kill-rounds.ts [ROUNDS] [FIRST_SEED]
  runs that many rounds (default 500), from that seed on (default 1)`,
      positionals: 2,
      options: {},
    },
    ({ positionals: [rounds = '500', first = '1'] }) => ({
      rounds: positiveInteger('ROUNDS', rounds),
      first: positiveInteger('FIRST_SEED', first),
    }),
  )
  let kills = 0
  let charges = 0
  let failed = 0
  for (let seed = first; seed < first + rounds; seed++) {
    const round = await killRound(seed)
    kills += round.kills
    charges += round.charges
    for (const violation of round.violations) console.log(`seed ${seed}: ${violation}`)
    if (round.violations.length > 0) failed++
    if ((seed - first + 1) % 50 === 0)
      console.log(`${seed - first + 1} rounds, ${kills} kills, ${charges} charges, ${failed} failed`)
  }
  console.log(
    `${rounds} rounds, ${kills} processes killed, ${charges} charges, ${failed} rounds with a broken promise`,
  )
  process.exitCode = failed === 0 && charges > 0 ? 0 : 1
}
