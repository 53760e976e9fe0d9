import { fork } from 'node:child_process'
import { on } from 'node:events'
import { existsSync } from 'node:fs'
import { afterAll, expect, it } from 'vitest'
import type { Trial } from './processes/notice.ts'
import { SEEDED_BUGS } from './seeded-bugs.ts'

/** The tests that guard the money. Together they detect every bug. */
const FILES = [...new Set(SEEDED_BUGS.map(({ noticedBy }) => noticedBy))]

// Do not inherit settings of this Vitest's workers.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(VITEST|CI$)/.test(name)))
const stdio = ['ignore', 'ignore', 'inherit', 'ipc'] as const
const child = fork(new URL('./processes/notice.ts', import.meta.url), { env, stdio: [...stdio] })
afterAll(() => child.disconnect())

let trials = 0

/** Why a run with a bug does not prove that a test detected it. Empty if it does. */
async function objection(bug: string, files: readonly string[]): Promise<string> {
  const trial: Trial = { number: ++trials, bug, files }
  const messages = on(child, 'message', { close: ['exit'] })
  child.send(trial)
  // Ignore responses to a test that timed out.
  for await (const [told] of messages) if (told.number === trial.number) return told.objection
  return 'the run ended without a word'
}

it('every test that guards the money exists', () => {
  // Vitest ignores a name that matches no file.
  const missing = FILES.filter((file) => !existsSync(new URL(`../../${file}.test.ts`, import.meta.url)))
  expect(missing).toEqual([])
})

it('the tests pass on the unchanged source', async () => {
  expect(await objection('', FILES)).toBe('')
})

it.each(SEEDED_BUGS.map(({ name, noticedBy }) => [name, noticedBy] as const))(
  'the tests detect that %s (%s)',
  async (name, noticedBy) => {
    expect(await objection(name, [noticedBy])).toBe('')
  },
)

it('a bug that cannot be inserted does not count as detected', async () => {
  expect(await objection('a bug that cannot be sown', ['unit/orders/protocol/outcome'])).toContain(
    'no test ran',
  )
})

it('a bug that makes no test fail does not count as detected', async () => {
  const [{ name = '' } = {}] = SEEDED_BUGS.filter(({ noticedBy }) => noticedBy === 'client/lists/paging')
  expect(await objection(name, ['unit/orders/protocol/outcome'])).toContain('no test notices it')
})
