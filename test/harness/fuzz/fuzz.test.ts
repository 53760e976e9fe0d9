/** Runs every call with faulty responses. `npm run verify fuzz` sends a million of them. */
import { expect, it } from 'vitest'
import { FULL, sample } from '../../support/effort.ts'
import { collect } from '../../support/heap.ts'
import { endlessPlan, PIECE } from './answers.ts'
import { fuzz, noTally, runSeed } from './batch.ts'
import { CALLS, runExchange } from './exchange.ts'

const ANSWERS = 20_000
const MB = 2 ** 20

const everything = `calls end in a result or in an error of this package, and the journal agrees, over ${ANSWERS} responses`
if (FULL)
  it(everything, async () => {
    const { failures, counts } = await fuzz(ANSWERS, { from: 1, threads: 2 })
    expect(failures.map(({ broken }) => broken.join('\n'))).toEqual([])
    expect(counts.answers).toBeGreaterThanOrEqual(ANSWERS)
    // A fuzzer whose every response is rejected tests little.
    expect(counts.accepted).toBeGreaterThan(ANSWERS / 20)
  })

it('no call breaks in a seed, which is repeated response for response', async () => {
  const [first, second] = [noTally(), noTally()]
  await runSeed(77, first)
  await runSeed(77, second)
  expect(second).toEqual(first)
  expect(first.failures).toEqual([])
  expect(first.counts.accepted).toBeGreaterThan(first.counts.answers / 20)
})

it.each(sample(Object.keys(CALLS), 4))('%s reads no more of an endless body than its limit', async (call) => {
  for (const status of FULL ? [200, 201, 400, 503] : [200]) {
    collect()
    const { broken, taken, peak } = await runExchange({
      call,
      answers: [{ ...endlessPlan, status }],
      maxRetries: 0,
      name: 0,
    })
    expect(broken).toEqual([])
    expect(peak).toBeLessThan(64 * MB)
    expect(taken).toBeLessThanOrEqual((status < 400 ? 16 * MB : MB / 4) + 2 * PIECE)
  }
})
