import { it } from 'vitest'
import { roundsOf } from '../fleet/fleet.ts'
import { killPlan } from '../fleet/plans.ts'
import { startSharedStore } from '../fleet/shared-store.ts'

const ROUNDS = 50

it(
  `every order is charged once at most, none is lost, and no charged one is reported as 'no', in ${ROUNDS} rounds`,
  async () => {
    const shared = await startSharedStore('sqlite')
    await roundsOf(shared, ROUNDS, { plan: killPlan, atOnce: 2 }).finally(() => shared.stop())
  },
  // On a busy machine, a single round needs much longer than on average.
  60_000 + ROUNDS * 20_000,
)
