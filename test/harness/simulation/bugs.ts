/**
 * Runs seeded bugs in the simulation: each is inserted, and seeds run until a promise is broken.
 *
 * As a program: `npx node test/harness/simulation/bugs.ts [PART_OF_A_NAME] [MOST_SEEDS]`.
 */
import { fileURLToPath } from 'node:url'
import { defined } from '../../../src/defined.ts'
import { positiveInteger, readArguments, UsageError } from '../../../tools/programs/arguments.ts'
import type { Failure } from '../../support/seeds.ts'
import { SEEDED_BUGS } from '../crash/seeded-bugs.ts'
import type { Bundle } from './bundle.ts'
import { bundleWithSeams, runSeeds } from './threads.ts'

/** A bug that is not detected within this many runs counts as missed. */
export const MOST_SEEDS = 20_000

export interface Hunt {
  /** The first seed with a broken promise. */
  readonly noticed?: Failure
  /** The first error that a run threw. A bug that does not work proves nothing about the simulation. */
  readonly threw?: string
}

export async function hunt(
  built: Bundle,
  bug: string,
  threads: number,
  most: number = MOST_SEEDS,
): Promise<Hunt> {
  const { failures } = await runSeeds(built, { from: 1, count: most, threads, untilFailure: true, bug })
  const noticed = failures.find(({ threw }) => !threw)
  const threw = failures.find((failure) => failure.threw)?.broken[0]
  return defined({ noticed, threw })
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
    const [how] = (noticed?.broken[0] ?? threw ?? '').split('\n')
    const gotAway = threw === undefined ? 'NOT NOTICED' : `NOT NOTICED (${how})`
    console.log(`${bug.name}\n  ${noticed === undefined ? gotAway : `seed ${noticed.seed}: ${how}`}`)
  }
  built.remove()
  const others = slowest === 0 ? '' : `, the slowest of the others at seed ${slowest}`
  console.log(`seeded bugs: ${bugs.length}, not noticed within ${most} seeds: ${missed}${others}`)
  process.exitCode = missed === 0 ? 0 : 1
}
