import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { SEEDED_BUGS } from '../crash/seeded-bugs.ts'
import { hunt } from './bugs.ts'
import { type Plan, planOf } from './plan.ts'
import { withoutSwitch } from './shrink.ts'
import { bundle } from './threads.ts'

/** Both fail early, in runs with many steps and mishaps. */
const BUGS = ['an attempt in doubt leaves no doubt', 'a first refusal moves the order to a new key'] as const

/** A module of the simulation with edits in the source. */
async function withEdits<Module>(
  edits: Parameters<typeof bundle>[0],
  file: string,
  use: (module: Module) => Promise<void>,
): Promise<void> {
  const built = await bundle(edits, new URL(file, import.meta.url))
  try {
    await use(await import(pathToFileURL(built.file).href))
  } finally {
    built.remove()
  }
}

describe('a failing run', () => {
  it.each(BUGS)('is made so short that every part of it is needed, where %s', async (name) => {
    const bug = SEEDED_BUGS.find((candidate) => candidate.name === name)
    if (bug === undefined) throw new Error(`there is no seeded bug ${name}`)
    const { noticed } = await hunt(bug, 1)
    if (noticed === undefined) throw new Error('no seed fails')
    const plan = planOf(noticed.seed)
    const promise = noticed.broken.split(':')[0]

    await withEdits<typeof import('./shrink.ts')>(bug.edits, './shrink.ts', async ({ shrink }) => {
      await withEdits<typeof import('./simulate.ts')>(bug.edits, './simulate.ts', async ({ simulate }) => {
        const promisesOf = async (smaller: Plan, without: ReadonlySet<string>) =>
          (await simulate(smaller, { without })).broken.map((sentence) => sentence.split(':')[0])
        const whole = await simulate(plan, { traced: true })
        const shrunk = await shrink(plan)

        expect(shrunk.broken.map((sentence) => sentence.split(':')[0])).toContain(promise)
        expect(shrunk.parts.length).toBeLessThan(whole.parts.length / 2)
        expect(shrunk.trace.length).toBeGreaterThan(0)
        expect(shrunk.trace.length).toBeLessThan(whole.trace.length)
        for (const part of shrunk.parts)
          expect(await promisesOf(shrunk.plan, new Set([...shrunk.without, part])), part).not.toContain(
            promise,
          )
        expect(Object.keys(shrunk.plan.server).length).toBeLessThan(Object.keys(plan.server).length / 2)
        for (const name of Object.keys(shrunk.plan.server))
          expect(await promisesOf(withoutSwitch(shrunk.plan, name), shrunk.without), name).not.toContain(
            promise,
          )
        expect(await shrink(plan)).toEqual(shrunk)
      })
    })
  })
})
