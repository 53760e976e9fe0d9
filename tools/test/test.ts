/**
 * `npm test` and `npm run test:all`. Starts each step as soon as the steps that it needs have
 * passed, in parallel lanes. Prints the output of a step when it ends, and a table at the end.
 * Passes its arguments to Vitest:
 *
 * npm test -- --reporter=verbose
 *
 * With `--after-test`, `npm run test:all` omits the checks that `npm test` has just run.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../build/ensure-built.ts'
import { type Counts, countsOf, readReports } from './report.ts'
import { CHECKS, IN_ALL, IN_TEST, LEFT_OUT, type Step } from './steps.ts'

const reports = join(root, '.tmp/test-reports')
const own = ['--all', '--after-test']
const [all, afterTest] = own.map((option) => process.argv.includes(option))
const passedOn = process.argv.slice(2).filter((argument) => !own.includes(argument))
const steps = (all ? IN_ALL : IN_TEST).filter((step) => !afterTest || !CHECKS.includes(step))

type Ending = 'passed' | 'FAILED' | 'not run'

interface Ended {
  readonly ending: Ending
  readonly seconds: number
}

const begin = performance.now()
const secondsSince = (time: number): number => (performance.now() - time) / 1000

/**
 * Runs a command and prints its output when it ends. Otherwise, the lines of parallel commands
 * would mix.
 */
function run({ name, command, vitest, env }: Step): Promise<Ended> {
  const began = performance.now()
  const [program = '', ...parameters] = vitest === undefined ? command : ['vitest', 'run', ...vitest]
  const report = vitest === undefined ? [] : reporting(name)
  const child = spawn(program, [...parameters, ...report], {
    cwd: root,
    env: {
      // Tests start Node hundreds of times, so processes share their compiled code.
      NODE_COMPILE_CACHE: join(root, '.tmp/compile-cache'),
      ...process.env,
      NO_COLOR: '1',
      ...(all ? { TEST_EFFORT: 'full' } : {}),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => printed.push(chunk))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      const ended: Ended = { ending: code === 0 ? 'passed' : 'FAILED', seconds: secondsSince(began) }
      console.log(`\n== ${name}: ${ended.ending} in ${ended.seconds.toFixed(0)} s`)
      if (code !== 0 || vitest !== undefined) process.stdout.write(Buffer.concat(printed))
      resolve(ended)
    })
  })
}

const reporting = (name: string): readonly string[] => [
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=${join(reports, `${name.replaceAll(' ', '-')}.json`)}`,
  ...passedOn,
]

/** Runs each step after the steps that it needs, and after the previous step of its lane. */
async function runAll(): Promise<ReadonlyMap<string, Ended>> {
  const ended = new Map<string, Ended>()
  const running = new Map<string, Promise<void>>()
  const lanes = new Map<string, Promise<void>>()
  for (const step of steps) {
    const needs = (step.needs ?? []).filter((name) => running.has(name))
    const before = [...needs.map((name) => running.get(name)), lanes.get(step.lane)]
    const turn = Promise.all(before).then(async () => {
      const needed = needs.every((name) => ended.get(name)?.ending === 'passed')
      ended.set(step.name, needed ? await run(step) : { ending: 'not run', seconds: 0 })
    })
    running.set(step.name, turn)
    lanes.set(step.lane, turn)
  }
  await Promise.all(running.values())
  return ended
}

function print(ended: ReadonlyMap<string, Ended>, { passed, failed, missing }: Counts): void {
  console.log('\n   s  step')
  for (const { name } of steps) {
    const { ending, seconds } = ended.get(name) ?? { ending: 'not run', seconds: 0 }
    console.log(`${seconds.toFixed(0).padStart(4)}  ${name}${ending === 'passed' ? '' : `: ${ending}`}`)
  }
  if (missing.length > 0) console.log(`\nNOT RUN, because a requirement is missing on this machine:`)
  for (const title of missing) console.log(`  ${title}`)
  if (!all) {
    console.log('\nOmitted here, and run by `npm run test:all` and by CI:')
    for (const { what, command } of LEFT_OUT) console.log(`  ${what.padEnd(66)} ${command}`)
  }
  console.log(`\n${passed} tests passed, ${failed} failed, in ${secondsSince(begin).toFixed(0)} s`)
}

for (const made of ['.tmp/test-reports', '.tmp/test-counts'])
  rmSync(join(root, made), { recursive: true, force: true })
mkdirSync(reports, { recursive: true })
const ended = await runAll()
const found = readReports(reports)
const counts = countsOf(found, all === true)
// .ci/run reads this file.
writeFileSync(join(root, '.tmp/test-counts'), `${counts.passed} ${counts.failed}\n`)
print(ended, counts)
for (const complaint of counts.complaints) console.log(complaint)
const failed = [...ended.values()].some(({ ending }) => ending !== 'passed')
process.exitCode = failed || counts.complaints.length > 0 ? 1 : 0
