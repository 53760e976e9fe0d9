/**
 * Seeded bugs against the simulation: each is put into the source, and seeds run until a promise is broken.
 *
 * As a program: `npx node test/simulation/bugs.ts [PART_OF_A_NAME] [MOST_SEEDS]`.
 */
import { fileURLToPath } from 'node:url'
import { positiveInteger, readArguments, UsageError } from '../../scripts/arguments.ts'
import { SEEDED_BUGS, type SeededBug } from '../crash/seeded-bugs.ts'
import { bundle, runSeeds } from './threads.ts'

/** A bug that is not noticed in so many runs has got away. */
export const MOST_SEEDS = 50_000

/** How a bug was noticed. */
export interface Noticed {
  readonly seed: number
  /** Runs until then, of all threads. */
  readonly runs: number
  readonly broken: string
}

/** Runs seeds on the source with the bug in it; nothing if it got away. */
export async function hunt(
  { edits }: SeededBug,
  threads: number,
  most: number = MOST_SEEDS,
): Promise<Noticed | undefined> {
  const built = await bundle(edits)
  try {
    const { failures, seeds } = await runSeeds(built, {
      from: 1,
      count: most,
      threads,
      untilFailure: true,
    })
    const first = failures.at(0)
    return first && { seed: first.seed, runs: seeds, broken: first.broken[0] ?? '' }
  } finally {
    built.remove()
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { bugs, most } = readArguments(
    {
      usage: `npx node test/simulation/bugs.ts [PART_OF_A_NAME] [MOST_SEEDS]
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
  let missed = 0
  let slowest = 0
  for (const bug of bugs) {
    const noticed = await hunt(bug, 2, most)
    if (noticed === undefined) missed++
    else slowest = Math.max(slowest, noticed.seed)
    const what =
      noticed === undefined ? 'NOT NOTICED' : `seed ${noticed.seed}: ${noticed.broken.split('\n')[0]}`
    console.log(`${bug.name}\n  ${what}`)
  }
  console.log(
    `${bugs.length} bugs, ${missed} not noticed within ${most} seeds, the slowest of the others at seed ${slowest}`,
  )
  process.exitCode = missed === 0 ? 0 : 1
}
