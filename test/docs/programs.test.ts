/** Tests the arguments of the documented programs: each argument must have an effect. */
import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { root } from '../../tools/build/ensure-built.ts'
import { sample } from '../support/effort.ts'

/** Each program with arguments that would make it try nothing, or something unintended. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  'tools/test/verify.ts': ['foo'],
  'tools/bench/bench.ts': ['foo'],
  'tools/examples/example.ts': ['foo'],
  'test/harness/simulation/run.ts': ['0'],
  'test/harness/simulation/bugs.ts': ['no bug has this name'],
  'test/harness/fleet/rounds.ts': ['kills', 'foo'],
  'test/browser/kill-cycles.ts': ['NaN'],
  'test/harness/network/run.ts': ['0'],
  'test/harness/fuzz/run.ts': ['--path', '1:2'],
  'test/harness/soak/run.ts': ['foo'],
  'tools/checks/bundle-size.ts': ['--nonsense'],
  'tools/packages/mutation/run.ts': ['no module has this name'],
}

/** Behaves as after a checkout without `dist`: the package cannot import itself by name. */
const WITHOUT_BUILD = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier.startsWith('customer-ordering-sdk')) throw new Error('needs a build: ' + specifier)
      return next(specifier, context)
    },
  })`)}`

const run = (program: string, args: readonly string[], environment = {}) => {
  // tools/bench measures the build.
  const unbuilt = program.startsWith('tools/bench/') ? [] : ['--import', WITHOUT_BUILD]
  return spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', ...unbuilt, program, ...args],
    { cwd: root, encoding: 'utf8', timeout: 50_000, env: { ...process.env, ...environment } },
  )
}

it.each(sample(Object.entries(PROGRAMS), 20))('%s prints its usage, and rejects %j', (program, refused) => {
  const help = run(program, ['--help'])
  expect(help).toMatchObject({ status: 0, stderr: '' })
  const { status, stdout, stderr } = run(program, refused)
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr.endsWith(`\n\n${help.stdout}`), stderr).toBe(true)
})

it.each(
  sample<[string, string[], Record<string, string>]>(
    [
      ['tools/test/verify.ts', ['all', 'foo'], {}],
      ['test/harness/simulation/run.ts', ['17'], { npm_config_seed: 'true' }],
      ['test/harness/simulation/run.ts', ['10', '--seed', '5'], {}],
      ['test/harness/simulation/run.ts', ['--seed', '5', '--from', '99'], {}],
      ['test/harness/fuzz/run.ts', ['10', '--seed', '2'], {}],
      // A soak of no duration would find no growth.
      ['test/harness/soak/run.ts', ['0'], {}],
    ],
    6,
  ),
)('programs reject arguments that are ambiguous or try nothing: %s %j %j', (program, args, environment) => {
  expect(run(program, args, environment)).toMatchObject({ status: 2, stdout: '' })
})

it('`npm run` has 20 names at most', () => {
  expect(Object.keys(manifest.scripts).length).toBeLessThanOrEqual(20)
})
