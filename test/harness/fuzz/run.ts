/** Runs the fuzzer as a program. `--help` prints the usage. */
import { readArguments, UsageError } from '../../../tools/programs/arguments.ts'
import { progressPrinter, readSeeds, SEED_OPTIONS } from '../../support/seeds.ts'
import { noCounts, runSeed } from './batch.ts'
import { fuzz, MOST_KEPT } from './threads.ts'

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

async function runOne(seed: number): Promise<void> {
  const counts = noCounts()
  await runSeed(seed, counts, path)
  for (const { report } of counts.failures) console.log(report)
  if (counts.failures.length === 0) {
    // Only a path that a failure has printed leads to the intended exchange.
    const elsewhere = path === undefined ? '' : ' The seed without --path tells whether another one is.'
    console.log(`Nothing is wrong in ${counts.exchanges} exchanges.${elsewhere}`)
  }
  process.exitCode = counts.failures.length === 0 && counts.exchanges > 0 ? 0 : 1
}

async function runMany(): Promise<void> {
  const progress = progressPrinter()
  let told = 0
  const summary = await fuzz(count, from, threads, (sofar) => {
    for (const { report } of sofar.failures.slice(told)) console.log(report)
    told = sofar.failures.length
    progress(() => `${sofar.answers} answers, ${told} failed, ${(sofar.elapsed / 1000).toFixed(0)} s`)
  })
  const { seeds, exchanges, answers, accepted, failures, cpu, elapsed, memory } = summary
  const grew = memory.most > memory.first + MOST_KEPT
  const megabytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MB`
  console.log(
    `${(elapsed / 1000).toFixed(0)} s, ${Math.round((answers / cpu) * 1000)} answers a second of CPU time, ` +
      `${megabytes(memory.first)} kept by a thread after its first seed and ${megabytes(memory.most)} at most, ` +
      `Node ${process.versions.node}`,
  )
  console.log(
    `seeds ${from} to ${from + seeds - 1}: ${answers} answers in ${exchanges} calls, ` +
      `${accepted} of them accepted, ${failures.length} seeds with something wrong` +
      (grew ? ', and too much is kept' : ''),
  )
  process.exitCode = failures.length === 0 && answers >= count && !grew ? 0 : 1
}

if (seed === undefined) await runMany()
else await runOne(seed)
