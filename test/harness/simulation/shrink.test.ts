import { expect, it } from 'vitest'
import { hunt } from './bugs.ts'
import { type Plan, planOf } from './plan.ts'
import { withoutSwitch } from './shrink.ts'
import { bundleWithSeams, withBug } from './threads.ts'

/** Both fail early, in runs with many steps and mishaps. */
const BUGS = ['an attempt in doubt leaves no doubt', 'a first refusal moves the order to a new key'] as const

it.each(BUGS)('a failing run is shortened until every part is needed, if %s', async (name) => {
  const built = await bundleWithSeams()
  const { noticed } = await hunt(built, name, 1).finally(built.remove)
  if (noticed === undefined) throw new Error('no seed fails')
  const plan = planOf(noticed.seed)
  const promise = noticed.broken[0]?.split(':')[0]

  const program = new URL('./shrink.ts', import.meta.url)
  await withBug<typeof import('./shrink.ts')>(name, program, async ({ shrink, simulate }) => {
    const promisesOf = async (smaller: Plan, without: ReadonlySet<string>) =>
      (await simulate(smaller, { without })).broken.map((sentence) => sentence.split(':')[0])
    const whole = await simulate(plan)
    const shrunk = await shrink(plan)

    expect(shrunk.broken.map((sentence) => sentence.split(':')[0])).toContain(promise)
    expect(shrunk.parts.length).toBeLessThan(whole.parts.length / 2)
    // Without its mishaps a run may take longer, and its trace with it: only parts are judged.
    expect(shrunk.trace).not.toEqual([])
    for (const part of shrunk.parts)
      expect(await promisesOf(shrunk.plan, new Set([...shrunk.without, part])), part).not.toContain(promise)
    expect(Object.keys(shrunk.plan.server).length).toBeLessThan(Object.keys(plan.server).length / 2)
    for (const name of Object.keys(shrunk.plan.server))
      expect(await promisesOf(withoutSwitch(shrunk.plan, name), shrunk.without), name).not.toContain(promise)
    expect(await shrink(plan)).toEqual(shrunk)
  })
})
