import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import puppeteer from 'puppeteer-core'
import { freePort } from '../../support/free-port.ts'
import { Chromium, missingChromium } from './chromium.ts'

export interface OpenBrowser {
  readonly version: string
  /** Opens a page in a new window, or replaces the last one. */
  open(url: string): Promise<void>
  close(): Promise<void>
}

export interface RealBrowser {
  readonly name: string
  /** True if it resends a POST on its own when a used connection ends without a response. */
  readonly repeats: boolean
  /** The statuses after which it resends a POST on its own (408 only on a used connection). */
  readonly repeatsAfter: readonly number[]
  /** The reason why it cannot run, or undefined. */
  missing(): string | undefined
  start(): Promise<OpenBrowser>
}

const chromium: RealBrowser = {
  name: 'Chromium',
  repeats: true,
  repeatsAfter: [408, 421],
  missing: missingChromium,
  async start() {
    const browser = await Chromium.start()
    return {
      version: browser.context.browser()?.version() ?? '',
      open: async (url) => void (await (await browser.context.newPage()).goto(url)),
      close: () => browser.stop(),
    }
  },
}

const firefoxPath = (): string | undefined => globSync('/usr/bin/firefox{-esr,}')[0]

/** Debian's Firefox, through WebDriver BiDi, which it supports directly. */
const firefox: RealBrowser = {
  name: 'Firefox',
  repeats: true,
  repeatsAfter: [421],
  missing: () => (firefoxPath() === undefined ? 'no firefox-esr is installed' : undefined),
  async start() {
    const browser = await puppeteer.launch({
      browser: 'firefox',
      executablePath: firefoxPath() ?? '',
      headless: true,
    })
    return {
      version: (await browser.version()).replace(/^\w+\//, ''),
      open: async (url) => void (await (await browser.newPage()).goto(url)),
      close: () => browser.close(),
    }
  },
}

const miniBrowser = (): string | undefined => globSync('/usr/lib/*/webkit2gtk-4.*/MiniBrowser')[0]

/**
 * WebKitGTK's MiniBrowser, through WebDriver. Only four calls are needed, so no client library is
 * used.
 */
const webkit: RealBrowser = {
  name: 'WebKit',
  // It opens a new connection for every POST.
  repeats: false,
  repeatsAfter: [421],
  missing() {
    if (miniBrowser() === undefined) return 'no libwebkit2gtk-4.1-0 is installed'
    if (!existsSync('/usr/bin/WebKitWebDriver')) return 'no webkit2gtk-driver is installed'
    return existsSync('/usr/bin/xvfb-run') ? undefined : 'no xvfb is installed'
  },
  async start() {
    const port = await freePort()
    const driver = spawn(
      'xvfb-run',
      ['-a', 'WebKitWebDriver', `--port=${port}`],
      // Start a process group, so that the display and the browser end together.
      { stdio: 'ignore', detached: true },
    )
    const stop = (): void => killGroup(driver)
    process.once('exit', stop)
    const ask = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        body: body === undefined ? null : JSON.stringify(body),
      })
      const { value } = (await response.json()) as { readonly value: Record<string, unknown> | null }
      if (!response.ok) throw new Error(`WebKitWebDriver: ${JSON.stringify(value)}`)
      return value ?? {}
    }
    for (let attempt = 1; ; attempt++) {
      try {
        await ask('GET', '/status')
        break
      } catch (error) {
        if (attempt === 150) throw error
        await sleep(200)
      }
    }
    const { sessionId, capabilities } = await ask('POST', '/session', {
      capabilities: {
        alwaysMatch: { 'webkitgtk:browserOptions': { binary: miniBrowser(), args: ['--automation'] } },
      },
    })
    return {
      version: String((capabilities as { readonly browserVersion?: string }).browserVersion),
      open: async (url) => {
        await ask('POST', `/session/${sessionId}/url`, { url })
      },
      close: async () => {
        await ask('DELETE', `/session/${sessionId}`)
        const gone = once(driver, 'exit')
        stop()
        await gone
        process.off('exit', stop)
      },
    }
  },
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGTERM')
  } catch {
    // The process has already ended.
  }
}

/** The browsers that the package is tested with. */
export const BROWSERS: readonly RealBrowser[] = [chromium, firefox, webkit]
