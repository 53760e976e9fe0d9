/**
 * Runs seeded bugs in the simulation: each is inserted, and seeds run until a promise is broken.
 *
 * As a program: `npx node test/harness/simulation/bugs.ts [PART_OF_A_NAME] [MOST_SEEDS]`.
 */
import { fileURLToPath } from 'node:url'
import { positiveInteger, readArguments, UsageError } from '../../../tools/programs/arguments.ts'
import { SEEDED_BUGS } from '../crash/seeded-bugs.ts'
import type { Bundle } from './bundle.ts'
import { bundleWithSeams, runSeeds } from './threads.ts'

/** A bug that is not detected within this many runs counts as missed. */
export const MOST_SEEDS = 20_000

export interface Noticed {
  readonly seed: number
  /** Runs of all threads until then. */
  readonly runs: number
  readonly broken: string
}

export interface Hunt {
  readonly noticed?: Noticed
  /** The first error that a run threw. A bug that does not work proves nothing about the simulation. */
  readonly threw?: string
}

export async function hunt(
  built: Bundle,
  bug: string,
  threads: number,
  most: number = MOST_SEEDS,
): Promise<Hunt> {
  const options = { from: 1, count: most, threads, untilFailure: true, bug }
  const { failures, counts } = await runSeeds(built, options)
  const broken = failures.find(({ threw }) => !threw)
  const threw = failures.find((failure) => failure.threw)?.broken[0]
  return {
    ...(broken && { noticed: { seed: broken.seed, runs: counts.seeds, broken: broken.broken[0] ?? '' } }),
    ...(threw === undefined ? {} : { threw }),
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { bugs, most } = readArguments(
    {
      usage: `npx node test/harness/simulation/bugs.ts [PART_OF_A_NAME] [MOST_SEEDS]
  hunts the seeded bugs whose names contain that (default: all), each with that many seeds (default ${MOST_SEEDS}) at most`,
      positionals: 2,
      options: {},
    },
    ({ positionals: [part = '', most = String(MOST_SEEDS)] }) => {
      const bugs = SEEDED_BUGS.filter(
        ({ name, outOfSimulation }) => name.includes(part) && outOfSimulation === undefined,
      )
      if (bugs.length === 0) throw new UsageError(`The simulation is to notice no bug named "${part}".`)
      return { bugs, most: positiveInteger('MOST_SEEDS', most) }
    },
  )
  const built = await bundleWithSeams()
  let missed = 0
  let slowest = 0
  for (const bug of bugs) {
    const { noticed, threw } = await hunt(built, bug.name, 2, most)
    if (noticed === undefined) missed++
    else slowest = Math.max(slowest, noticed.seed)
    const [how] = (noticed?.broken ?? threw ?? '').split('\n')
    const gotAway = threw === undefined ? 'NOT NOTICED' : `NOT NOTICED (${how})`
    console.log(`${bug.name}\n  ${noticed === undefined ? gotAway : `seed ${noticed.seed}: ${how}`}`)
  }
  built.remove()
  const others = slowest === 0 ? '' : `, the slowest of the others at seed ${slowest}`
  console.log(`seeded bugs: ${bugs.length}, not noticed within ${most} seeds: ${missed}${others}`)
  process.exitCode = missed === 0 ? 0 : 1
}
