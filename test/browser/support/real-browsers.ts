import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import puppeteer from 'puppeteer-core'
import { Chromium, missingChromium } from './chromium.ts'

/** A browser that runs. */
export interface OpenBrowser {
  readonly version: string
  /** Opens a page in a window of its own, or in place of the one before. */
  open(url: string): Promise<void>
  close(): Promise<void>
}

/** A browser that may be installed. */
export interface RealBrowser {
  readonly name: string
  /** Whether it sends a POST once more by itself when a connection that was used before ends without an answer. */
  readonly repeats: boolean
  /** The responses after which it sends a POST once more by itself, 408 only on a connection that was used before. */
  readonly repeatsAfter: readonly number[]
  /** Why it cannot run; undefined if it can. */
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
      open: async (url) => {
        await (await browser.context.newPage()).goto(url)
      },
      close: () => browser.stop(),
    }
  },
}

const firefoxPath = (): string | undefined => globSync('/usr/bin/firefox{-esr,}')[0]

/** Debian's, by WebDriver BiDi, which it speaks itself. */
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
      open: async (url) => {
        await (await browser.newPage()).goto(url)
      },
      close: () => browser.close(),
    }
  },
}

const miniBrowser = (): string | undefined => globSync('/usr/lib/*/webkit2gtk-4.*/MiniBrowser')[0]

/** WebKitGTK's small browser, by WebDriver: four calls, so no client of that protocol is needed. */
const webkit: RealBrowser = {
  name: 'WebKit',
  // It sends every POST on a connection of its own.
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
      // A group of its own, so that the display and the browser end with it.
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
    // It has ended.
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** The browsers that the package is tested in. */
export const BROWSERS: readonly RealBrowser[] = [chromium, firefox, webkit]
