import { test } from 'vitest'
import { Lab } from './lab.ts'

/** A test with its own lab: `it('is charged once', async (lab) => …)`. */
export const it = Object.assign(
  (title: string, run: (lab: Lab) => unknown): void => test(title, async () => void (await run(new Lab()))),
  // Keep `this`, which Vitest reads. bind() would lose the overloads.
  { each: test.each.bind(test) as typeof test.each },
)
