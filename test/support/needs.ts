import { describe, it } from 'vitest'

/** Instead of tests that need what this machine lacks: one that says so and is skipped, or, in CI, fails. */
export function notRun(title: string, why: string): void {
  const said = `${title}: NOT RUN, ${why}`
  console.warn(said)
  it.skipIf(process.env['CI'] !== 'true')(said, () => {
    throw new Error('CI must run these tests')
  })
}

/** Defines tests unless something that they need is missing; `why` says what. */
export function describeUnless(why: string | undefined, title: string, body: () => void): void {
  if (why === undefined) describe(title, body)
  else notRun(title, why)
}
