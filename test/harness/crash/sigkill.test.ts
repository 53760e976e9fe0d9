import { describe, expect, it } from 'vitest'
import { killPlan } from '../fleet/plans.ts'
import { fleetRound, type Round, totalsOf } from '../fleet/rounds.ts'
import { startSharedStore } from '../fleet/shared-store.ts'

/** `npm run verify kills` runs 500 rounds, or those from a given seed. */
const ROUNDS = 50
const FIRST_SEED = 1
const AT_ONCE = 2

describe('a process that is killed while it places orders', () => {
  it(
    `every order is charged once at most, none is lost, and no charged one is reported as 'no', in ${ROUNDS} rounds`,
    async () => {
      const rounds: Round[] = []
      let seed = FIRST_SEED
      const shared = await startSharedStore('sqlite')
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          while (seed < FIRST_SEED + ROUNDS) rounds.push(await fleetRound(shared, seed, killPlan(seed++)))
        }),
      ).finally(() => shared.stop())
      const broken = rounds.flatMap((round) => round.violations.map((text) => `seed ${round.seed}: ${text}`))
      const { kills, words } = totalsOf(rounds)
      console.log(words)
      expect(broken).toEqual([])
      // Rounds without a kill in the middle of an order would prove nothing.
      expect(kills).toBeGreaterThan(ROUNDS)
      expect(rounds.every(({ charges }) => charges > 0)).toBe(true)
    },
    // On a busy machine, a single round needs much longer than on average.
    60_000 + ROUNDS * 20_000,
  )
})
