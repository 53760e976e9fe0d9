/**
 * `npm run verify NAME`: long programs. `all` runs them one after the other and prints a table of
 * results. `all brief` tries a little of each.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { root } from '../build/ensure-built.ts'
import { node, type Programs, readName, runCommands } from '../programs/named-programs.ts'

const install = (folder: string): readonly string[] => node('tools/programs/install.ts', folder)
const engines = install('test/engines')

const PROGRAMS = {
  kills: {
    about: '500 rounds of killed processes',
    commands: [node('test/harness/fleet/rounds.ts', 'kills')],
    brief: ['10'],
  },
  fleet: {
    about: '500 rounds of four processes over each shared store',
    commands: [engines, node('test/harness/fleet/rounds.ts')],
    brief: ['all', '1'],
  },
  browser: {
    about: '500 cycles of killed tabs and browsers',
    commands: [node('test/browser/kill-cycles.ts')],
    brief: ['3'],
  },
  simulation: {
    about: '10,000,000 simulated runs',
    commands: [node('test/harness/simulation/run.ts')],
    brief: ['100000'],
  },
  bugs: {
    about: 'every seeded bug that the simulation can detect',
    commands: [node('test/harness/simulation/bugs.ts')],
    brief: ['record'],
  },
  model: {
    about: 'every order of the effects of concurrent calls, and every pair of crashes',
    commands: [node('test/harness/model/run.ts')],
    brief: ['30'],
  },
  histories: {
    about: '1,000 concurrent histories of each store',
    commands: [engines, node('test/stores/histories.ts')],
    brief: ['all', '3'],
  },
  network: {
    about: 'the network faults 20 times',
    commands: [node('test/harness/network/run.ts')],
    brief: ['1'],
  },
  fuzz: {
    about: '1,000,000 broken responses',
    commands: [node('test/harness/fuzz/run.ts')],
    brief: ['20000'],
  },
  soak: {
    about: 'reconcile() of 300,000 records, and half an hour of orders over sockets',
    commands: [node('test/harness/soak/reconcile.ts'), node('test/harness/soak/run.ts')],
    brief: ['0.5'],
  },
  mutation: {
    about: 'every small change of the core, which its tests must detect',
    commands: [install('tools/packages'), node('tools/packages/mutation/run.ts')],
    brief: ['http/redact'],
  },
} satisfies Programs & Record<string, { readonly brief: readonly string[] }>

const { name, rest } = readName('verify', {
  ...PROGRAMS,
  all: { about: 'all of them; `npm run verify all brief` tries a little of each', commands: [] },
})
if (name === 'all') await runAll()
else process.exitCode = runCommands((PROGRAMS as Programs)[name]?.commands ?? [], rest)

async function runAll(): Promise<void> {
  const brief = rest[0] === 'brief'
  if (rest.length > (brief ? 1 : 0)) {
    process.stderr.write(`Unknown arguments: ${rest.join(' ')}.\n`)
    process.exit(2)
  }
  const rows: string[] = []
  for (const [each, { brief: less }] of Object.entries(PROGRAMS)) {
    const call = [each, ...(brief ? less : [])]
    console.log(`\n== npm run verify ${call.join(' ')}`)
    const begin = performance.now()
    const { passed, last } = await run(call)
    const minutes = ((performance.now() - begin) / 60_000).toFixed(1)
    rows.push(`${each.padEnd(16)} ${passed ? 'passed' : 'FAILED'}  ${minutes.padStart(7)}  ${last}`)
    if (!passed) process.exitCode = 1
  }
  console.log('\nprogram          result  minutes  its last line')
  for (const row of rows) console.log(row)
}

/** Runs a program and passes its output on immediately. */
async function run(call: readonly string[]): Promise<{ passed: boolean; last: string }> {
  const child = spawn(process.execPath, ['tools/test/verify.ts', ...call], {
    cwd: root,
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
