/** Starts Chromium, and collects script errors and violations of the page's policy. */
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { chromium } from 'playwright-core'

/** Path of Chromium, from the environment variable `CHROMIUM`. */
const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/**
 * Disables the browser's sandbox, which containers forbid, and the browser's own network traffic.
 */
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
]

const LOCALE = { locale: 'en-GB', reducedMotion: 'reduce' } as const satisfies BrowserContextOptions

/** Opens a browser whose profile is in `folder`, so that a later browser can use it. */
export async function openProfile(folder: string): Promise<BrowserContext> {
  return await chromium.launchPersistentContext(folder, { executablePath, args: FLAGS, ...LOCALE })
}

/** Opens a browser. Each of its contexts is a separate visitor. */
export async function openBrowser() {
  const browser = await chromium.launch({ executablePath, args: FLAGS })
  return {
    visitor: (options: BrowserContextOptions = {}) => browser.newContext({ ...LOCALE, ...options }),
    close: () => browser.close(),
  }
}

/**
 * Collects script errors and policy violations. Ignores lost connections, which are not the page's
 * fault.
 */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = []
  page.on('console', (message) => {
    const fault = message.type() === 'error' || message.type() === 'warning'
    if (fault && !/net::ERR_|Failed to load resource/.test(message.text())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  return complaints
}
