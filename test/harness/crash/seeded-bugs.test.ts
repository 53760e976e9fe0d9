import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { SEEDED_BUGS } from './seeded-bugs.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** The tests that guard the money: together they notice every bug. */
const FILES = [...new Set(SEEDED_BUGS.map(({ noticedBy }) => pathOf(noticedBy)))]

function pathOf(noticedBy: string): string {
  return `test/${noticedBy}.test.ts`
}

interface Run {
  readonly passed: boolean
  readonly output: string
}

/** Runs files of tests with a bug in the source. Without a name the source only has seams. */
function run(bug: string, files: readonly string[]): Promise<Run> {
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const projects = new Set(files.map((file) => file.split('/')[1] ?? ''))
  const chosen = [...projects].flatMap((name) => ['--project', name])
  const child = spawn(
    process.execPath,
    [vitest, 'run', '--root', ROOT, '--bail', '1', '--reporter', 'dot', ...chosen, ...files],
    {
      cwd: ROOT,
      env: { ...process.env, CI: '', NO_COLOR: '1', SEEDED_BUG: bug },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += String(chunk)
    })
  return new Promise((resolve) => child.once('close', (code) => resolve({ passed: code === 0, output })))
}

/** What speaks against a run as proof that a test noticed the bug; nothing if it is one. */
function objection({ passed, output }: Run): string | undefined {
  if (passed) return 'no test notices it'
  // A bug that does not even load, or names what is not there, proves nothing about the tests.
  if (!/Tests +\d+ failed/.test(output)) return `no test ran\n${output}`
  return /ReferenceError|SyntaxError|Cannot find module|Transform failed/.test(output)
    ? `it breaks the program\n${output}`
    : undefined
}

describe('the tests that guard the money', () => {
  it('are all there', () => {
    // Vitest says nothing of a name that fits no file.
    expect(FILES.filter((file) => !existsSync(join(ROOT, file)))).toEqual([])
  })

  it('pass on the source as it is', async () => {
    const { passed, output } = await run('', FILES)
    expect(passed, output).toBe(true)
  })

  it.concurrent.each(SEEDED_BUGS.map(({ name, noticedBy }) => [name, noticedBy] as const))(
    'notice it when %s (%s)',
    async (name, noticedBy) => {
      expect(objection(await run(name, [pathOf(noticedBy)]))).toBeUndefined()
    },
  )

  it('do not count as having noticed a bug that cannot be sown', async () => {
    const nothing = await run('a bug that cannot be sown', ['test/unit/orders/outcome.test.ts'])
    expect(objection(nothing)).toContain('no test ran')
  })
})
