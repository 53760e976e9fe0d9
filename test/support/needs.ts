import { describe, it } from 'vitest'

/**
 * Replaces tests whose requirements are missing with one test that states it. It is skipped, or
 * fails in CI.
 */
export function notRun(title: string, why: string): void {
  const said = `${title}: NOT RUN, ${why}`
  console.warn(said)
  it.skipIf(process.env['CI'] !== 'true')(said, () => {
    throw new Error('CI must run these tests')
  })
}

/** Defines tests unless a requirement is missing. `why` states which. */
export function describeUnless(why: string | undefined, title: string, body: () => void): void {
  if (why === undefined) describe(title, body)
  else notRun(title, why)
}
