/**
 * Rounds of SIGKILL at random moments: a process places orders with a SqliteStore against a sandbox on a socket, is killed
 * again and again, and each time another one recovers and goes on. A round is the same for the same seed, up to the
 * scheduling of the operating system. The processes are those of the fleet, one at a time.
 *
 * As a program, for long runs: `npx node test/harness/crash/kill-rounds.ts [ROUNDS] [FIRST_SEED]`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { positiveInteger, readArguments } from '../../../scripts/arguments.ts'
import { serveSandbox } from '../../../src/sandbox/http/server.ts'
import type { FaultAction, Sandbox } from '../../../src/sandbox/index.ts'
import { seeded } from '../../../src/stores/contract/seeded.ts'
import { brokenPromises } from '../../support/invariants.ts'
import { leaksInFiles } from '../../support/leaks.ts'
import type { Task } from '../fleet/events.ts'
import { arrivalsOf, readingsOf, runLogOf } from '../fleet/history.ts'
import { allRows, end, lifeOf, type Member, start } from '../fleet/members.ts'
import type { StoreAddress } from '../fleet/open-store.ts'
import { watchedSandbox } from '../fleet/watched-sandbox.ts'

const ORDERS = 12
/** Every fourth order is one that the wallet cannot pay: it must never be charged. */
const DEAR = 4
const KILLS = 4
const LIMITS = { timeout: 2_000, totalTimeout: 10_000, maxRetries: 2, safeRetryWindow: 20 * 60_000 } as const
const API_KEY = 'sk_live_Wd3-killed-at-any-moment_Hp58'

/** What goes wrong with an order request, and how often. */
const FAULTS: readonly (readonly [probability: number, action: FaultAction])[] = [
  [0.15, { type: 'commitThenDrop' }],
  [0.1, { type: 'drop' }],
  [0.1, { type: 'cutBody' }],
  [0.1, { type: 'status', status: 503, commit: true }],
]

/** What a round showed. */
export interface Round {
  readonly seed: number
  readonly kills: number
  readonly charges: number
  /** Broken promises, in words; empty if all held. */
  readonly violations: readonly string[]
}

/** Runs one round. */
export async function killRound(seed: number): Promise<Round> {
  const random = seeded(seed)
  const folder = mkdtempSync(join(tmpdir(), 'kill-round-'))
  const { sandbox, served, answers } = watchedSandbox({
    seed,
    apiKey: API_KEY,
    balance: 100_000,
    // Remembered server errors would be answered for ever, so that such an order could not be settled before its window ends.
    behaviour: { processingTime: random(20), rememberedRefusals: random(2) === 0 ? [] : [402, 422] },
    faults: FAULTS.map(([probability, action]) => ({
      match: { operation: 'createOrder' },
      probability,
      times: 'always',
      action,
    })),
  })
  const server = await serveSandbox(served, { port: 0 })
  const references = Array.from({ length: ORDERS }, (_, index) => `seed-${seed}-order-${index}`)
  const dear = references.filter((_, index) => index % DEAR === DEAR - 1)
  const store: StoreAddress = { store: 'sqlite', path: join(folder, 'orders.db') }
  const concurrency = 1 + random(4)
  const members: Member[] = []
  const launch = (role: Task['role']): Member => {
    const name = `process-${members.length}`
    const member = start({
      ...LIMITS,
      name,
      role,
      recover: 'takeOver',
      seed: seed * 100 + members.length,
      baseUrl: server.url,
      apiKey: API_KEY,
      store,
      log: join(folder, `${name}.jsonl`),
      references,
      dear,
      concurrency,
    })
    members.push(member)
    return member
  }
  const violations: string[] = []
  const leaks = (): void => {
    // The database, its log, and whatever the process wrote down before it was killed.
    for (const leak of leaksInFiles(API_KEY, folder)) violations.push(`I8: the API key is on disk: ${leak}`)
  }
  let kills = 0
  try {
    for (let run = 0; run < KILLS; run++) {
      const member = launch('race')
      await killLater(member, sandbox, random)
      if (member.killed) kills++
      leaks()
    }
    sandbox.faults.clear()
    while (sandbox.requests.some(({ status }) => status === 'running')) await pause(10)
    await launch('finish').ended
    leaks()
    for (const { task, failure } of members)
      if (failure !== undefined) violations.push(`${task.name} failed: ${failure}`)
    const { ledger } = sandbox
    for (const reference of references) {
      const charges = ledger.filter(({ externalOrderId }) => externalOrderId === reference).length
      const wanted = dear.includes(reference) ? 0 : 1
      if (charges !== wanted)
        violations.push(`${reference} was charged ${charges} times instead of ${wanted}`)
    }
    const log = runLogOf({
      references,
      lives: members.map(lifeOf),
      arrivals: arrivalsOf(sandbox.requests, answers),
      readings: readingsOf(sandbox.requests),
      ledger,
      rows: await allRows(store, members),
    })
    violations.push(...brokenPromises(log))
    return { seed, kills, charges: ledger.length, violations }
  } finally {
    for (const member of members) if (member.endedAt === undefined) end(member)
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Kills the process at a seeded request, a seeded moment after it, if it is still alive then; resolves when it is gone. */
async function killLater(member: Member, sandbox: Sandbox, random: (below: number) => number): Promise<void> {
  // Counted in requests and not in milliseconds from the start, so that slow machines kill in the middle of work, too.
  const after = sandbox.requests.length + 1 + random(6)
  const moment = random(12_000) / 1_000
  const over = (): boolean => member.endedAt !== undefined
  while (!over() && sandbox.requests.length < after) await pause(1)
  const deadline = performance.now() + moment
  while (!over() && performance.now() < deadline) await new Promise((resolve) => setImmediate(resolve))
  if (!over()) end(member)
  await member.ended
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { rounds, first } = readArguments(
    {
      usage: `npx node test/harness/crash/kill-rounds.ts [ROUNDS] [FIRST_SEED]
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
