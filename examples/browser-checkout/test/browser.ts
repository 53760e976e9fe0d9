/** A Chromium, and what its pages complain about: errors, and whatever their policy forbids. */
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { chromium } from 'playwright-core'

/** Where Chromium is: the environment variable `CHROMIUM`. */
const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/** Only what a page needs: no sandbox that a container forbids, and no traffic of the browser's own. */
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
]

const LOCALE = { locale: 'en-GB', reducedMotion: 'reduce' } as const satisfies BrowserContextOptions

/** A browser whose profile is in a folder, where a later one finds it again. */
export async function openProfile(folder: string): Promise<BrowserContext> {
  return await chromium.launchPersistentContext(folder, { executablePath, args: FLAGS, ...LOCALE })
}

/** A browser in which every context is a visitor of its own. */
export async function openBrowser() {
  const browser = await chromium.launch({ executablePath, args: FLAGS })
  return {
    visitor: (options: BrowserContextOptions = {}) => browser.newContext({ ...LOCALE, ...options }),
    close: () => browser.close(),
  }
}

/** Errors of the script, and violations of the policy. A lost connection is no fault of the page. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = []
  page.on('console', (message) => {
    const fault = message.type() === 'error' || message.type() === 'warning'
    if (fault && !/net::ERR_|Failed to load resource/.test(message.text())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  return complaints
}
