/**
 * The long programme: every script of package.json that begins with `verify:`, one after the other, and one table of
 * what came of them at the end. `--help` tells how it is called.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import manifest from '../package.json' with { type: 'json' }
import { oneOf, readArguments } from './arguments.ts'

type Part<Script> = Script extends `verify:${infer Name}` ? Name : never
type Name = Part<keyof typeof manifest.scripts>

/** What each is called with where a first look is enough. The whole programme calls them without arguments. */
const BRIEF: Readonly<Record<Name, readonly string[]>> = {
  crashes: ['--crashes-only'],
  kills: ['10'],
  fleet: ['all', '1'],
  browser: ['3'],
  simulation: ['100000'],
  bugs: ['record'],
  model: ['1000'],
  histories: ['all', '3'],
  network: ['1'],
  fuzz: ['20000'],
  soak: ['24', '0.5'],
  mutation: ['identity'],
}

const all = Object.keys(BRIEF).filter((name): name is Name => Object.hasOwn(BRIEF, name))
const { names, brief } = readArguments(
  {
    usage: `npm run verify -- [NAME …] [--brief]
  NAME: ${all.join('; ')}
  without one: all of them
  --brief tries a little of each, to see that it works`,
    positionals: Number.POSITIVE_INFINITY,
    options: { brief: { type: 'boolean', default: false } },
  },
  ({ values, positionals }) => ({
    names: positionals.map((name) => oneOf('NAME', name, all)),
    brief: values.brief,
  }),
)

const rows: string[] = []
let failed = false
for (const name of names.length > 0 ? names : all) {
  const less = brief ? BRIEF[name] : []
  console.log(`\n== ${[`verify:${name}`, ...less].join(' ')}`)
  const begin = performance.now()
  const { passed, last } = await run(name, less)
  const minutes = ((performance.now() - begin) / 60_000).toFixed(1)
  rows.push(`${name.padEnd(16)} ${passed ? 'passed' : 'FAILED'}  ${minutes.padStart(7)}  ${last}`)
  failed ||= !passed
}
console.log('\nprogramme        result  minutes  its last line')
for (const row of rows) console.log(row)
process.exitCode = failed ? 1 : 0

/** Prints what it prints, as soon as it does. */
async function run(name: Name, less: readonly string[]): Promise<{ passed: boolean; last: string }> {
  const child = spawn('npm', ['run', '-s', `verify:${name}`, '--', ...less], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let end = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    process.stdout.write(text)
    end = (end + text).slice(-10_000)
  })
  const [code] = await once(child, 'close')
  return { passed: code === 0, last: end.trimEnd().split('\n').at(-1) ?? '' }
}
