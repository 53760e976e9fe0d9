import { afterAll, beforeAll, expect, it } from 'vitest'
import { HOOK_TIMEOUT } from '../../stores/support/sql-server.ts'
import { leaksInFiles } from '../../support/leaks.ts'
import type { StoreName } from './open-store.ts'
import { fleetPlan, type Plan } from './plans.ts'
import { API_KEY, fleetRound, type Round, summaryOf, totalsOf } from './rounds.ts'
import { type SharedStore, startSharedStore } from './shared-store.ts'

/** `npm run verify fleet` and `npm run verify kills` run 500 rounds, or those from a given seed. */
const FIRST_SEED = 1

/** Runs rounds over one store, some at the same time, and returns their totals if nothing is broken. */
export async function roundsOf(
  shared: SharedStore,
  count: number,
  { plan = fleetPlan, atOnce = 1 }: { plan?: (seed: number) => Plan; atOnce?: number } = {},
): Promise<ReturnType<typeof totalsOf>> {
  const done: Round[] = []
  let seed = FIRST_SEED
  const run = async (): Promise<void> => {
    while (seed < FIRST_SEED + count) {
      const round = await fleetRound(shared, seed, plan(seed++))
      done.push(round)
      if (round.violations.length > 0) expect.fail([summaryOf(round), ...round.violations].join('\n'))
    }
  }
  await Promise.all(Array.from({ length: atOnce }, run))
  const totals = totalsOf(done)
  console.log(`${shared.name}: ${totals.words}`)
  expect(leaksInFiles(API_KEY, shared.folder)).toEqual([])
  // Rounds without a kill during work would prove nothing.
  expect(totals.kills).toBeGreaterThan(count)
  expect(done.every(({ charges }) => charges > 0)).toBe(true)
  return totals
}

const ROUNDS = 8

/** Tests a fleet with one store. Each store has its own test file, so that they run in parallel. */
export function fleetHolds(name: StoreName): void {
  let shared: SharedStore | undefined
  beforeAll(async () => {
    shared = await startSharedStore(name)
  }, HOOK_TIMEOUT)
  afterAll(() => shared?.stop(), HOOK_TIMEOUT)

  it(
    `a fleet charges each of 200 orders exactly once, loses none and reports correctly, in ${ROUNDS} rounds`,
    async () => {
      if (shared === undefined) throw new Error('not started')
      const { stops, crashes, told } = await roundsOf(shared, ROUNDS)
      // Neither would rounds without a pause or a refusal.
      expect(stops).toBeGreaterThan(ROUNDS)
      expect(told.unknown).toBeGreaterThan(ROUNDS)
      expect(told.no).toBeGreaterThan(ROUNDS / 2)
      expect(crashes).toBe(name === 'sqlite' ? 0 : ROUNDS)
    },
    600_000 + ROUNDS * 60_000,
  )
}
