/**
 * Seeded bugs that the simulation has to notice. Each day has its own few; `npm run verify bugs` takes them all.
 */
import { describe, expect, it } from 'vitest'
import { SEEDED_BUGS } from '../crash/seeded-bugs.ts'
import { hunt, MOST_SEEDS } from './bugs.ts'
import { bundle, runSeeds } from './threads.ts'

const SAMPLE = 4
const DAY = 24 * 60 * 60 * 1000

const inReach = SEEDED_BUGS.filter(({ outOfSimulation }) => outOfSimulation === undefined)
const first = Math.floor(Date.now() / DAY) * SAMPLE
const chosen = Array.from(
  { length: SAMPLE },
  (_, index) => inReach[(first + index) % inReach.length],
).flatMap((bug) => bug ?? [])

describe('the simulation', () => {
  it.each(chosen)(`notices in ${MOST_SEEDS} seeds when $name`, async (bug) => {
    const { noticed, threw } = await hunt(bug, 2)
    expect(noticed, threw).toBeDefined()
  })

  it('does not take an error that an edit throws for a broken promise', async () => {
    const edits = [
      {
        file: 'resources/send-order.ts',
        search: 'return !claimHolds || now > sendUntil',
        replace: "throw new TypeError('the edit does not work')",
      },
    ]
    const { noticed, threw } = await hunt({ name: 'an edit that only throws', edits }, 2, 500)
    expect(noticed).toBeUndefined()
    expect(threw).toContain('threw TypeError: the edit does not work')
  })

  it('finds a promise that is rejected and handled by nobody', async () => {
    const edits = [
      {
        file: 'resources/remembered.ts',
        search: 'journal.prune(retention).catch(({ code }: StoreError) => {',
        replace: "Promise.reject(new Error('planted')).then(() => {\n    const code = ''",
      },
    ]
    const built = await bundle(edits)
    const { failures } = await runSeeds(built, { from: 1, count: 400, threads: 2 }).finally(() =>
      built.remove(),
    )
    const told = failures.filter(({ broken }) => broken.some((text) => text.includes('nobody handled it')))
    expect(told.length).toBeGreaterThan(0)
    expect(told.every(({ threw }) => threw)).toBe(true)
  })

  it('knows why it cannot notice the others', () => {
    const others = SEEDED_BUGS.flatMap(({ outOfSimulation }) => outOfSimulation ?? [])
    expect(others.length + inReach.length).toBe(SEEDED_BUGS.length)
    expect(inReach.length).toBeGreaterThanOrEqual(30)
  })
})
