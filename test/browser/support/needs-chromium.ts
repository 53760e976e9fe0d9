import { describeUnless } from '../../support/needs.ts'
import { missingChromium } from './chromium.ts'

/** Describes tests that need Chromium. */
export function describeWithChromium(title: string, body: () => void): void {
  describeUnless(missingChromium(), title, body)
}
