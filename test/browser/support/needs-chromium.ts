import { describe, it } from 'vitest'
import { missingChromium } from './chromium.ts'

/** Runs tests that need Chromium; without it they are one line that says so, or, in CI, a failure. */
export function describeWithChromium(title: string, body: () => void): void {
  const why = missingChromium()
  if (why === undefined) describe(title, body)
  else if (process.env['CI'] === 'true')
    it(title, () => {
      throw new Error(`CI must run these tests: ${why}`)
    })
  else it.skip(`${title}: NOT RUN, ${why}`, () => {})
}
