/**
 * Compares the public API with a model, command by command. A failing run is shrunk and printed
 * with its seed and path.
 */
import { describe, expect, it } from 'vitest'
import { effort, FULL } from '../../support/effort.ts'
import { withBug } from '../simulation/threads.ts'
import { checkModel } from './orders-model.ts'

const SEED = 1
const RUNS = effort(60, 1_500)

/** Seeded bugs that the model must detect. */
const NOTICED = [
  'a refusal settles what an earlier attempt left in doubt',
  'an error of the server counts as a refusal',
  'a refusal after doubt does not keep recovery from repeating the request',
] as const

describe('the public API', () => {
  it(`the public API behaves like the model in ${RUNS} runs of up to 40 commands`, async () => {
    expect(await checkModel(RUNS, SEED)).toBeUndefined()
  })
})

if (FULL)
  describe('the model', () => {
    it.each(NOTICED)('the model detects that %s', async (name) => {
      const program = new URL('./orders-model.ts', import.meta.url)
      await withBug<typeof import('./orders-model.ts')>(name, program, async (model) => {
        const report = await model.checkModel(RUNS, SEED)
        expect(report).toBeDefined()
        // A bug that does not work proves nothing about the model.
        expect(report).not.toMatch(/(Type|Reference|Range|Syntax)Error/)
      })
    })
  })
