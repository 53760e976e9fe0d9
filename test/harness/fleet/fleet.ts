import { afterAll, beforeAll, expect, it } from 'vitest'
import { HOOK_TIMEOUT } from '../../stores/support/sql-server.ts'
import { leaksInFiles } from '../../support/leaks.ts'
import type { StoreName } from './open-store.ts'
import { API_KEY, fleetRound, type Round, summaryOf, totalsOf } from './rounds.ts'
import { type SharedStore, startSharedStore } from './shared-store.ts'

/** `npm run verify fleet` runs 500 rounds, or those from a given seed. */
const ROUNDS = 12
const FIRST_SEED = 1

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
      const done: Round[] = []
      for (let seed = FIRST_SEED; seed < FIRST_SEED + ROUNDS; seed++) {
        const round = await fleetRound(shared, seed)
        done.push(round)
        if (round.violations.length > 0) expect.fail([summaryOf(round), ...round.violations].join('\n'))
      }
      const { kills, stops, crashes, told, words } = totalsOf(done)
      console.log(`${name}: ${words}`)
      expect(leaksInFiles(API_KEY, shared.folder)).toEqual([])
      // Rounds without a kill, a pause or a refusal during work would prove nothing.
      expect(kills).toBeGreaterThan(ROUNDS)
      expect(stops).toBeGreaterThan(ROUNDS)
      expect(told.unknown).toBeGreaterThan(ROUNDS)
      expect(told.no).toBeGreaterThan(ROUNDS / 2)
      expect(crashes).toBe(name === 'sqlite' ? 0 : ROUNDS)
    },
    600_000 + ROUNDS * 60_000,
  )
}
