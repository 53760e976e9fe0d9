import { test } from 'vitest'
import { Lab } from './lab.ts'

/** A test with a lab of its own: `it('is charged once', async (lab) => …)`. */
export const it = Object.assign(
  (title: string, run: (lab: Lab) => unknown): void => test(title, async () => void (await run(new Lab()))),
  // Vitest looks at `this`; bind() would lose its overloads.
  { each: test.each.bind(test) as typeof test.each },
)
