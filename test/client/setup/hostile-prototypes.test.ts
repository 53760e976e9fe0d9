import { fileURLToPath } from 'node:url'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { expect, it } from 'vitest'
import { sample } from '../../support/effort.ts'
import { loseFirstAnswers } from '../../support/lost-answers.ts'
import { run } from '../../support/run.ts'
import { changesSince, globalsNow } from './hostile-exercise.ts'
import { POLLUTION, pollute } from './hostile-prototypes.ts'

const program = fileURLToPath(new URL('./hostile-process.ts', import.meta.url))

const PROTOTYPES: readonly [what: string, mode: string, requestIdHeader?: string | null][] = [
  ['polluted with familiar names before it is loaded', 'polluted before'],
  ['polluted before, and the service gives no request ids', 'polluted before', null],
  ['polluted after, and the service gives no request ids', 'polluted after', null],
  ['polluted with familiar names, enumerably, after it was loaded', 'polluted after'],
  ['frozen', 'frozen'],
  ['as they are', 'untouched'],
]

it.each(sample(PROTOTYPES, 3))(
  'the client works, changes no global and sends nothing unexpected if prototypes are %s',
  async (_what, mode, requestIdHeader = 'x-request-id') => {
    const sandbox = createSandbox({ behaviour: { requestIdHeader } })
    loseFirstAnswers(sandbox)
    const server = await serveSandbox(sandbox)
    try {
      const { stdout } = await run(process.execPath, [program, mode, server.url, sandbox.apiKey])
      expect(stdout).toBe('done')
    } finally {
      await server.close()
    }
    expect(JSON.stringify(sandbox.requests)).not.toContain(POLLUTION)
    expect(sandbox.ledger).toHaveLength(5)
  },
)

it('these tests detect a changed global', () => {
  const before = globalsNow()
  expect(changesSince(before)).toEqual([])
  const clean = pollute(['extra'], true)
  try {
    expect(changesSince(before)).toEqual(['Object.prototype.extra'])
  } finally {
    clean()
  }
})
