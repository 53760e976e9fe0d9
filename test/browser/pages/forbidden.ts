/** Does what the page's policy forbids, to check that violations are reported. */
import { expect, it } from 'vitest'
import { runAndReport } from '../support/page-report.ts'

const forbidden: Readonly<Record<string, () => unknown>> = {
  // biome-ignore lint/security/noGlobalEval: that it is refused is what is tested
  eval: () => globalThis.eval('1'),
  'new Function': () => new Function('return 1'),
  'an inline script': () => {
    const script = document.createElement('script')
    script.append('1')
    document.head.append(script)
  },
  ...('trustedTypes' in window
    ? {
        'markup from text': () => {
          document.createElement('p').innerHTML = '<b>bold</b>'
        },
      }
    : {}),
  'another address': () => fetch('https://elsewhere.invalid/').catch(() => {}),
}

function attempts(): void {
  it.each(Object.entries(forbidden))('%s is noticed', async (_what, attempt) => {
    const before = window.violations.length
    try {
      await attempt()
    } catch {
      // Only the report counts, because code may catch the error.
    }
    for (let turns = 0; turns < 100 && window.violations.length === before; turns++)
      await new Promise((resolve) => setTimeout(resolve, 10))
    expect(window.violations.length).toBeGreaterThan(before)
  })
}

void runAndReport({ attempts })
