/**
 * The public API against a model, one command after the other, and side by side under fast-check's scheduler. A failing
 * run is printed with its seed and path, made short.
 */
import { describe, expect, it } from 'vitest'
import { effort, sample } from '../../support/effort.ts'
import { withBug } from '../simulation/threads.ts'
import { checkInterleavings, checkModel } from './checks.ts'

const SEED = 1
const RUNS = effort(60, 1_500)

/** Seeded bugs that only the one, or only the other, has to notice. A short run tries one of each. */
const NOTICED: readonly (readonly [bug: string, by: 'model' | 'interleavings'])[] = [
  ['a refusal settles what an earlier attempt left in doubt', 'model'],
  ['an error of the server counts as a refusal', 'model'],
  ['a queued order is given up when the service is busy', 'model'],
  ['a refusal after doubt does not keep recovery from repeating the request', 'model'],
  ['every attempt has a key of its own', 'interleavings'],
  ['a row that is there already counts as inserted', 'interleavings'],
  ['a write goes over the version of somebody else', 'interleavings'],
  ['a first refusal moves the order to a new key', 'interleavings'],
]

describe('the public API', () => {
  it(`does what the model does, in ${RUNS} runs of up to 40 commands`, async () => {
    expect(await checkModel(RUNS, SEED)).toBeUndefined()
  })

  it(`charges each order once and tells the truth, in ${RUNS} runs of calls side by side`, async () => {
    expect(await checkInterleavings(RUNS, SEED)).toBeUndefined()
  })
})

describe('the model', () => {
  it.each(sample(NOTICED, 4))('notices it when %s (%s)', async (name, by) => {
    const program = new URL('./checks.ts', import.meta.url)
    await withBug<typeof import('./checks.ts')>(name, program, async (checks) => {
      const report = await (by === 'model'
        ? checks.checkModel(RUNS, SEED)
        : checks.checkInterleavings(RUNS, SEED))
      expect(report).toBeDefined()
      // A bug that does not even work proves nothing about the model.
      expect(report).not.toMatch(/(Type|Reference|Range|Syntax)Error/)
    })
  })
})
