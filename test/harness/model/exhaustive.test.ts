/**
 * Every order of the effects of concurrent calls, and of one call after the other, with every
 * mishap at every effect. `npm run verify model` adds pairs of mishaps and three concurrent calls.
 */
import { expect, it } from 'vitest'
import { FULL, sample } from '../../support/effort.ts'
import { withBug } from '../simulation/threads.ts'
import { CRASH_POINTS } from './crash-points.ts'
import { searched } from './schedules.ts'
import { SETTINGS } from './settings.ts'

/** A short run has every third setting, and mishaps only at the crash points below. */
const chosen = sample(SETTINGS, 3).map((setting) => ({ ...setting, mishaps: FULL ? 1 : 0 }))
/** 73 shares no divisor with the repetition of the settings, so a short run has some of each. */
const SHORT = 73
const points = sample(CRASH_POINTS, SHORT).map((setting, index) => ({
  ...setting,
  mishaps: FULL && index % SHORT === 0 ? 2 : 1,
}))
const MOST_RUNS = 200_000

/** Seeded bugs that need two concurrent calls, or a mishap at the right moment. */
const NOTICED = [
  'a row that is there already counts as inserted',
  'a write goes over the version of somebody else',
  'the request is sent before the record is stored',
] as const

it.each(chosen)('concurrent calls keep every promise in each order of effects: $name', async (setting) => {
  const { broken, whole } = await searched(setting, MOST_RUNS)
  expect(broken).toBeUndefined()
  expect(whole, `${setting.name} has more than ${MOST_RUNS} runs`).toBe(true)
})

it('a crash or failure at every effect of create(), its recovery and the next call breaks no promise', {
  timeout: 1_800_000,
}, async () => {
  for (const setting of points) {
    const { broken, whole } = await searched(setting, MOST_RUNS)
    if (!whole) expect.fail(broken ?? `${setting.name} has more than ${MOST_RUNS} runs`)
  }
})

it.each(FULL ? NOTICED : [])('some order of effects shows that %s', async (name) => {
  const program = new URL('./schedules.ts', import.meta.url)
  await withBug<{ readonly searched: typeof searched }>(name, program, async (bugged) => {
    const shown: string[] = []
    for (const setting of [...SETTINGS, ...SETTINGS.map((each) => ({ ...each, mishaps: 1 }))])
      if (shown.length === 0) shown.push(...((await bugged.searched(setting, 2000)).broken ?? []))
    expect(shown).not.toEqual([])
  })
})
