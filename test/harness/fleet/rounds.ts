import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serveSandbox } from '../../../src/sandbox/http/server.ts'
import { oneOf, positiveInteger, readArguments } from '../../../tools/programs/arguments.ts'
import { brokenPromises } from '../../support/invariants.ts'
import { leaksInFiles } from '../../support/leaks.ts'
import { machineTime, type Task } from './events.ts'
import { historyOf, type Records, runLogOf, sentAfterClaim } from './history.ts'
import { allRows, end, lifeOf, type Member, start } from './members.ts'
import { STORE_NAMES, type StoreName } from './open-store.ts'
import {
  type Disturbance,
  FLEET_ORDERS,
  fleetPlan,
  KILL_CHARGES,
  killPlan,
  type Plan,
  PRICE,
} from './plans.ts'
import { type SharedStore, startSharedStore } from './shared-store.ts'
import { watchedSandbox } from './watched-sandbox.ts'

/** Time limit of a round that does not end, in milliseconds. Correct rounds do not depend on it. */
const PATIENCE = 300_000

export interface Round {
  readonly store: StoreName
  readonly seed: number
  readonly charges: number
  readonly kills: number
  readonly stops: number
  readonly crashes: number
  readonly requests: number
  readonly told: Readonly<Record<'yes' | 'no' | 'unknown', number>>
  readonly milliseconds: number
  /** Broken promises in words, each with the history of its order. Empty if all held. */
  readonly violations: readonly string[]
}

/** The API key of all rounds. Stored data is searched for it. */
export const API_KEY = 'sk_live_Kq7-fleet-of-workers_Zx94'

export async function fleetRound(
  shared: SharedStore,
  seed: number,
  plan: Plan = fleetPlan(seed),
): Promise<Round> {
  const began = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'fleet-round-'))
  const roundName = `${seed}_${process.pid}_${++roundsRun}`
  const { sandbox, served, answers, observers } = watchedSandbox({
    seed,
    apiKey: API_KEY,
    balance: plan.funded * PRICE,
    behaviour: { processingTime: plan.processingTime, rememberedRefusals: plan.rememberedRefusals },
    faults: plan.faults.map(([probability, action]) => ({
      match: { operation: 'createOrder' },
      probability,
      times: 'always',
      action,
    })),
  })
  const server = await serveSandbox(served, { port: 0 })
  const references = Array.from({ length: plan.orders }, (_, index) => `seed-${seed}-order-${index}`)
  const dear = references.filter((_, index) => (index + 1) % plan.dear === 0)
  const members: Member[] = []
  const violations: string[] = []
  const count = { kills: 0, stops: 0, crashes: 0 }

  const launch = (role: Task['role'], recover: Task['recover']): Member => {
    const number = members.length
    const name = `process-${number}`
    const task: Task = {
      name,
      role,
      recover,
      seed: seed * 100 + number,
      baseUrl: server.url,
      apiKey: sandbox.apiKey,
      store: shared.address(roundName, number),
      log: join(folder, `${name}.jsonl`),
      references,
      dear,
      concurrency: plan.concurrency,
      ...plan.limits[role],
    }
    const member = start(shared.program, task)
    members.push(member)
    return member
  }
  const lookForLeaks = (where: string): void => {
    for (const leak of leaksInFiles(API_KEY, where)) violations.push(`I8: the API key is on disk: ${leak}`)
  }
  const alive = (): Member[] => members.filter(({ endedAt }) => endedAt === undefined)
  const allEnded = async (): Promise<void> => {
    const late = setTimeout(() => {
      violations.push(`the fleet did not end within ${PATIENCE} ms`)
      for (const member of alive()) end(member)
    }, PATIENCE)
    for (let left = alive(); left.length > 0; left = alive())
      await Promise.all(left.map(({ ended }) => ended))
    clearTimeout(late)
  }

  const leave = (): void => alive().forEach(end)
  process.once('exit', leave)
  try {
    const pending = [...plan.disturbances]
    const works: Promise<unknown>[] = []
    const timers = new Set<NodeJS.Timeout>()
    const replace = (victim: Member, recover: Task['recover']): void => {
      end(victim)
      count.kills++
      launch('race', recover)
    }
    /** Requests to count before the next disturbance. None during a pending kill. */
    let from = 0
    const replaceLater = async (victim: Member, later: number, recover: Task['recover']): Promise<void> => {
      from = Number.POSITIVE_INFINITY
      const deadline = performance.now() + later
      while (victim.endedAt === undefined && performance.now() < deadline)
        await new Promise((resolve) => setImmediate(resolve))
      if (victim.endedAt === undefined) replace(victim, recover)
      from = sandbox.requests.length
      await victim.ended
      // The database, its log, and everything the process wrote before it was killed.
      for (const where of [folder, shared.folder]) lookForLeaks(where)
    }
    const disturb = (what: Disturbance): void => {
      if (what.does === 'crash') {
        if (shared.crash === undefined) return
        count.crashes++
        works.push(shared.crash().catch((error) => violations.push(`the server did not come back: ${error}`)))
        return
      }
      // Do not pause a paused process again: the first of the two resumes would wake it.
      const all = alive()
      const living =
        what.does === 'kill' ? all : all.filter(({ stops }) => (stops.at(-1)?.to ?? 0) < machineTime())
      const victim = living[what.victim % living.length]
      if (victim === undefined) return
      if (what.does === 'kill') {
        if (what.later === undefined) replace(victim, what.recover)
        else works.push(replaceLater(victim, what.later, what.recover))
        return
      }
      victim.child.kill('SIGSTOP')
      count.stops++
      const stop = { from: machineTime(), to: Number.POSITIVE_INFINITY }
      victim.stops.push(stop)
      const timer = setTimeout(() => {
        timers.delete(timer)
        victim.child.kill('SIGCONT')
        stop.to = machineTime()
      }, what.milliseconds)
      timers.add(timer)
    }
    let seen = 0
    const observe = (): void => {
      for (; seen < sandbox.requests.length; seen++) {
        const arrived = seen + 1
        while (from + (pending[0]?.after ?? Number.POSITIVE_INFINITY) <= arrived) {
          const next = pending.shift()
          if (next !== undefined) disturb(next)
        }
      }
      const refused = [...answers.values()].filter(({ status }) => status === 402).length
      if (refused >= plan.refusals) sandbox.setBalance(sandbox.customerId, plan.orders * PRICE * 10)
    }
    observers.add(observe)
    for (let number = 0; number < plan.processes; number++) launch('race', plan.recover)
    await allEnded()
    observers.delete(observe)
    await Promise.all(works)

    // Now there are no processes, faults or requests, and the wallet holds enough.
    sandbox.faults.clear()
    sandbox.setBalance(sandbox.customerId, plan.orders * PRICE * 10)
    while (sandbox.requests.some(({ status }) => status === 'running')) await pause(10)
    launch('finish', plan.recover)
    await allEnded()

    for (const timer of timers) clearTimeout(timer)
    for (const { task, failure } of members)
      if (failure !== undefined) violations.push(`${task.name} failed: ${failure}`)
    const records: Records = {
      references,
      lives: members.map(lifeOf),
      requests: sandbox.requests,
      answers,
      ledger: sandbox.ledger,
      rows: await allRows(shared.address(roundName, 0), members),
    }
    violations.push(...judge(records, dear))
    lookForLeaks(folder)
    const endings = records.lives.flatMap(({ events }) =>
      events.flatMap((event) => (event.event === 'told' ? [event.told.charged] : [])),
    )
    const told = { yes: 0, no: 0, unknown: 0 }
    for (const charged of endings) told[charged]++
    return {
      store: shared.name,
      seed,
      charges: sandbox.ledger.length,
      ...count,
      requests: sandbox.requests.filter(({ operation }) => operation === 'createOrder').length,
      told,
      milliseconds: performance.now() - began,
      violations,
    }
  } finally {
    leave()
    process.off('exit', leave)
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

let roundsRun = 0

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds))

/** The broken promises of the fleet, each with the history of its order. */
function judge(records: Records, dear: readonly string[]): string[] {
  const { references, ledger, rows, lives } = records
  const broken: string[] = []
  // A charge without the reference of an order shows only here.
  if (ledger.length !== references.length - dear.length)
    broken.push(`${ledger.length} charges for ${references.length - dear.length} orders`)
  const told = new Set(
    lives.at(-1)?.events.flatMap((event) => (event.event === 'told' ? (event.told.orderId ?? []) : [])),
  )
  const stored = new Map(
    rows.map(({ data }) => {
      const record = JSON.parse(data) as { state?: string; externalOrderId?: string; order?: { id?: string } }
      return [record.externalOrderId, record] as const
    }),
  )
  for (const reference of references) {
    const charges = ledger.filter(({ externalOrderId }) => externalOrderId === reference)
    const wanted = dear.includes(reference) ? 0 : 1
    if (charges.length !== wanted)
      broken.push(`${reference} was charged ${charges.length} times instead of ${wanted}`)
    const { state, order } = stored.get(reference) ?? {}
    const orderId = charges[0]?.orderId
    if (wanted > 0 && (state !== 'created' || order?.id !== orderId))
      broken.push(`${reference} is remembered as ${state}, order ${order?.id}; charged was ${orderId}`)
    if (charges.some(({ orderId }) => !told.has(orderId)))
      broken.push(`${reference} was not found again at the end`)
  }
  broken.push(...brokenPromises(runLogOf(records)), ...sentAfterClaim(records))
  // A few histories are enough.
  const shown = new Set<string>()
  return broken.map((text) => {
    const reference = references.findLast((each) => new RegExp(`\\b${each}(?!\\d)`).test(text))
    if (reference === undefined || shown.has(reference) || shown.size === 3) return text
    shown.add(reference)
    return `${text}\n${historyOf(records, reference).join('\n')}`
  })
}

export function totalsOf(rounds: readonly Round[]) {
  const sum = (of: (round: Round) => number): number => rounds.reduce((total, round) => total + of(round), 0)
  const kills = sum((round) => round.kills)
  const stops = sum((round) => round.stops)
  const crashes = sum((round) => round.crashes)
  const seconds = sum(({ milliseconds }) => milliseconds / 1000 / rounds.length).toFixed(1)
  return {
    kills,
    stops,
    crashes,
    charges: sum(({ charges }) => charges),
    broken: sum(({ violations }) => Math.min(violations.length, 1)),
    told: { no: sum(({ told }) => told.no), unknown: sum(({ told }) => told.unknown) },
    words:
      `${rounds.length} rounds, ${kills} processes killed, ${stops} stopped, ` +
      `${crashes} ends of the server, ${seconds} s a round`,
  }
}

export function summaryOf(round: Round): string {
  const { store, seed, charges, kills, stops, crashes, requests, told, milliseconds, violations } = round
  const server = store === 'sqlite' ? '' : `, server ended ${crashes}×`
  const ended = violations.length === 0 ? 'held' : `BROKEN: ${violations.length}`
  return `${store} seed ${seed}: ${charges} charges, ${requests} requests, ${kills} killed, ${stops} stopped${server}, told ${told.yes} yes ${told.no} no ${told.unknown} unknown, ${(milliseconds / 1000).toFixed(1)} s, ${ended}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // Do not leave a process paused forever.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const { which, rounds, first } = readArguments(
    {
      usage: `npx node test/harness/fleet/rounds.ts [STORE|all|kills] [ROUNDS] [FIRST_SEED]
  runs that many rounds (default 500) over ${STORE_NAMES.join(', ')} or all of them (default), from that seed on (default 1)
  kills: one process at a time over sqlite, killed again and again`,
      positionals: 3,
      options: {},
    },
    ({ positionals: [which = 'all', rounds = '500', first = '1'] }) => ({
      which: oneOf('STORE', which, [...STORE_NAMES, 'all', 'kills']),
      rounds: positiveInteger('ROUNDS', rounds),
      first: positiveInteger('FIRST_SEED', first),
    }),
  )
  const kills = which === 'kills'
  const names = STORE_NAMES.filter((name) => which === 'all' || name === (kills ? 'sqlite' : which))
  const perRound = kills ? KILL_CHARGES : FLEET_ORDERS
  let failed = 0
  let charges = 0
  for (const name of names) {
    const shared = await startSharedStore(name)
    const done: Round[] = []
    try {
      for (let seed = first; seed < first + rounds; seed++) {
        const round = await fleetRound(shared, seed, (kills ? killPlan : fleetPlan)(seed))
        done.push(round)
        console.log(summaryOf(round))
        for (const violation of round.violations) console.log(`  ${violation}`)
      }
    } finally {
      await shared.stop()
    }
    const totals = totalsOf(done)
    failed += totals.broken
    charges += totals.charges
    console.log(
      `${name}: ${totals.words}, ${totals.charges} charges for ${done.length * perRound} orders, ` +
        `${totals.told.no} times told 'no', ${totals.broken} rounds with a broken promise`,
    )
  }
  console.log(
    `${names.join(', ')}: ${rounds} rounds each, ${charges} charges for ${names.length * rounds * perRound} orders, ` +
      `${failed} rounds with a broken promise`,
  )
  process.exitCode = failed === 0 ? 0 : 1
}
