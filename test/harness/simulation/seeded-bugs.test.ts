/**
 * Seeded bugs that the simulation must detect. Each day tests a few of them, and `npm run verify
 * bugs` tests all.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { SEEDED_BUGS } from '../crash/seeded-bugs.ts'
import { hunt, MOST_SEEDS } from './bugs.ts'
import type { Bundle } from './bundle.ts'
import { bundleWithSeams, runSeeds } from './threads.ts'

const SAMPLE = 4
const DAY = 24 * 60 * 60 * 1000

const inReach = SEEDED_BUGS.filter(({ outOfSimulation }) => outOfSimulation === undefined)
const first = Math.floor(Date.now() / DAY) * SAMPLE
const chosen = Array.from(
  { length: SAMPLE },
  (_, index) => inReach[(first + index) % inReach.length],
).flatMap((bug) => bug ?? [])

let built: Bundle
beforeAll(async () => {
  built = await bundleWithSeams()
})
afterAll(() => built.remove())

it.each(chosen)(`in ${MOST_SEEDS} seeds, the simulation detects that $name`, async ({ name }) => {
  const { noticed, threw } = await hunt(built, name, 2)
  expect(noticed, threw).toBeDefined()
})

it('the simulation does not take an error thrown by a bug for a broken promise', async () => {
  const { noticed, threw } = await hunt(built, 'a bug that only throws', 2, 500)
  expect(noticed).toBeUndefined()
  expect(threw).toContain('threw TypeError: the bug does not work')
})

it('the simulation finds an unhandled rejection', async () => {
  const options = { from: 1, count: 400, threads: 2, bug: 'a promise that nobody handles' }
  const { failures } = await runSeeds(built, options)
  const told = failures.filter(({ broken }) => broken.some((text) => text.includes('nobody handled it')))
  expect(told.length).toBeGreaterThan(0)
  expect(told.every(({ threw }) => threw)).toBe(true)
})
