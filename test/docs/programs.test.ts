/** The programs that the documentation tells to call: what they are called with has to mean something. */
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { root } from '../../scripts/ensure-built.ts'

/** Each with arguments that would have it try nothing, or something else than was meant. */
const PROGRAMS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'test/simulation/run.ts': [['0'], ['--threads', '0', '1'], ['--nonsense']],
  'test/simulation/bugs.ts': [['no bug has this name']],
  'test/crash/kill-rounds.ts': [['foo'], ['1', '0']],
  'test/fleet/rounds.ts': [['sqlite', 'foo'], ['foo']],
  'test/browser/kill-cycles.ts': [['NaN']],
  'test/network/run.ts': [['foo'], ['0']],
  'test/fuzz/run.ts': [['0'], ['--path', '1:2']],
  'test/soak/run.ts': [['0'], ['1', 'foo']],
  'bench/run.ts': [['--rounds', '0']],
  'bench/profile.ts': [
    ['--seconds', 'abc'],
    ['paging', '--client', 'raw fetch'],
  ],
  'bench/collections.ts': [['foo']],
  'bench/schemas.ts': [['foo']],
  'bench/stores/throughput.ts': [['foo']],
  'bench/stores/memory.ts': [['foo']],
  'bench/journal/cpu.ts': [['foo']],
  'bench/journal/growth.ts': [['1', 'foo']],
  'bench/journal/sqlite.ts': [['foo']],
  'scripts/bundle-size.ts': [['--nonsense']],
  'tools/mutation/run.ts': [['--nonsense'], ['no module has this name']],
}

const run = (program: string, args: readonly string[]) =>
  spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...args], {
    cwd: root,
    encoding: 'utf8',
    timeout: 30_000,
  })

describe('the programs', () => {
  it.each(Object.entries(PROGRAMS))(
    '%s tells its usage, and refuses what it does not take',
    (program, refused) => {
      const help = run(program, ['--help'])
      expect(help).toMatchObject({ status: 0, stderr: '' })
      for (const args of refused) {
        const { status, stdout, stderr } = run(program, args)
        expect({ args, status, stdout }).toEqual({ args, status: 2, stdout: '' })
        expect(stderr.endsWith(`\n\n${help.stdout}`), stderr).toBe(true)
      }
    },
  )

  it('have their counts in them, so that one behind `npm run verify:… --` is the first', () => {
    for (const [name, script] of Object.entries(manifest.scripts).filter(([name]) =>
      name.startsWith('verify'),
    ))
      expect(script.match(/\.ts (?!&&).*/)?.[0], name).toBeUndefined()
  })
})
