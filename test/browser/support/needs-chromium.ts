import { describeUnless } from '../../support/needs.ts'
import { missingChromium } from './chromium.ts'

export function describeWithChromium(title: string, body: () => void): void {
  describeUnless(missingChromium(), title, body)
}
