/** Runs the fuzzer as a program. `--help` prints the usage. */
import { readArguments, UsageError } from '../../../tools/programs/arguments.ts'
import { printProgress, printSummary, readSeeds, SEED_OPTIONS } from '../../support/seeds.ts'
import { type Count, fuzz, noTally, runSeed } from './batch.ts'

const { count, seed, path, from, threads } = readArguments(
  {
    usage: `npx node test/harness/fuzz/run.ts [ANSWERS] [--from SEED] [--threads N]
  sends at least that many answers (default 1,000,000)
npx node test/harness/fuzz/run.ts --seed N [--path P]
  runs one seed again, or the one exchange that the path leads to`,
    positionals: 1,
    options: { ...SEED_OPTIONS, path: { type: 'string' } },
  },
  ({ values: { path, ...values }, positionals: [answers] }) => {
    if (path !== undefined && values.seed === undefined) throw new UsageError('--path belongs to a --seed.')
    const read = readSeeds('ANSWERS', values, answers, '1_000_000')
    if (path !== undefined && !/^\d+(:\d+)*$/.test(path))
      throw new UsageError('--path is numbers with colons between them, as a failure prints it.')
    return { ...read, path }
  },
)

if (seed === undefined) {
  const onProgress = printProgress<Count>('npx node test/harness/fuzz/run.ts')
  printSummary(await fuzz(count, { from, threads, onProgress }), 'answers', count)
} else {
  const tally = noTally()
  const { counts, failures } = tally
  await runSeed(seed, tally, path)
  for (const { broken } of failures) console.log(broken.join('\n'))
  // Only a path that a failure has printed leads to the intended exchange.
  if (failures.length === 0)
    console.log(
      `Nothing is wrong in ${counts.exchanges} exchanges. The seed without --path tells whether another one is.`,
    )
  process.exitCode = failures.length === 0 && counts.exchanges > 0 ? 0 : 1
}
