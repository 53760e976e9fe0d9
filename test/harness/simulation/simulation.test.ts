/**
 * The real client, journal and recovery in virtual time: workers that share a store, a service with
 * seeded behaviour, and mishaps at every await. `npm run verify simulation` runs a given number of
 * seeds.
 */
import { describe, expect, it } from 'vitest'
import { effort } from '../../support/effort.ts'
import { planOf } from './plan.ts'
import { simulate } from './simulate.ts'
import { bundle, runSeeds } from './threads.ts'

const SEEDS = effort(500, 60_000)

describe('the simulation', () => {
  it(`no promise breaks in ${SEEDS} seeded runs`, async () => {
    const built = await bundle()
    const { counts, failures } = await runSeeds(built, {
      from: 1,
      count: SEEDS,
      // Run in this thread: a separate thread would compile everything again.
      threads: effort(1, 2),
    }).finally(() => built.remove())
    const told = failures
      .slice(0, 5)
      .map(
        ({ seed, broken }) => `npx node test/harness/simulation/run.ts --seed ${seed}\n${broken.join('\n')}`,
      )
    expect(told).toEqual([])
    expect(counts.seeds).toBe(SEEDS)
  })

  it('a seed is repeated bit for bit, alone and among others', async () => {
    // Consecutive seeds: every 32nd runs the whole client.
    const seeds = Array.from({ length: 64 }, (_, index) => index + 1)
    expect(seeds.filter((seed) => planOf(seed).whole)).toEqual(expect.arrayContaining([32, 64]))
    const traced = (seed: number) => simulate(planOf(seed), { traced: true })
    const alone = []
    for (const seed of seeds) alone.push(await traced(seed))
    expect(await Promise.all(seeds.map(traced))).toEqual(alone)
  })
})
