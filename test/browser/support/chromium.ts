import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium } from 'playwright-core'
import { cutIncompleteRecords } from './leveldb-logs.ts'

const program = process.env['CHROMIUM'] ?? 'chromium'

/** Disables the browser's sandbox, which containers forbid, and the browser's own network traffic. */
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--remote-debugging-port=0',
]

const STARTS = 3

/** The reason why Chromium is missing, or undefined if it is present. */
export function missingChromium(): string | undefined {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'no Chromium is installed (the variable CHROMIUM may name one)'
  }
}

/** Chromium with a profile that outlives the browser's process until `stop`. */
export class Chromium {
  readonly profile: string = mkdtempSync(join(tmpdir(), 'chromium-profile-'))
  /** Number of logs in which a kill left an incomplete record. */
  tornLogs = 0
  #process: ChildProcess | undefined
  #browser: Browser | undefined

  private constructor() {
    // Stop the browser even if a test fails before it can.
    process.once('exit', () => this.#process?.kill('SIGKILL'))
  }

  static async start(): Promise<Chromium> {
    const browser = new Chromium()
    await browser.restart()
    return browser
  }

  /** The browser context that opens pages, in the profile. */
  get context(): BrowserContext {
    const context = this.#browser?.contexts()[0]
    if (context === undefined) throw new Error('the browser does not run')
    return context
  }

  /** A browser context that is deleted when it is closed, like a private window. */
  async privateContext(): Promise<BrowserContext> {
    if (this.#browser === undefined) throw new Error('the browser does not run')
    return await this.#browser.newContext()
  }

  /**
   * Starts the browser with its profile.
   *
   * @param repairs false to leave incomplete records in its logs, so that it may lose acknowledged
   *   rows at a later start
   */
  async restart({ repairs = true } = {}): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      if (repairs) this.tornLogs += cutIncompleteRecords(this.profile)
      const child = spawn(program, [...FLAGS, `--user-data-dir=${this.profile}`, 'about:blank'], {
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      this.#process = child
      try {
        this.#browser = await chromium.connectOverCDP(await debuggerOf(child))
        return
      } catch (error) {
        await this.kill()
        // Retry, because the processes of a killed browser may still use the profile.
        if (attempt === STARTS) throw error
      }
    }
  }

  /** Kills the browser's main process, as a crash would. Its other processes end with it. */
  async kill(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    }
    await this.#browser?.close()
    this.#browser = undefined
  }

  async stop(): Promise<void> {
    await this.kill()
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

/** The address of the browser's debugger, which the browser prints at startup. */
function debuggerOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let printed = ''
    child.stderr?.on('data', (chunk) => {
      printed += String(chunk)
      const address = /DevTools listening on (ws:\S+)/.exec(printed)?.[1]
      if (address !== undefined) resolve(address)
    })
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`Chromium ended with ${code}: ${printed.slice(-2_000)}`)))
  })
}
