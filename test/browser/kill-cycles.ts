/**
 * Runs cycles with kills at random moments. Pages place orders with an IndexedDbStore against a
 * sandbox on a socket, whose responses are lost or late. A tab is closed, its process crashes, or
 * the whole browser is killed. Then a page with the same profile recovers and continues. A cycle is
 * the same for the same seed, except for the scheduling of the operating system.
 *
 * As a program, for long runs: `npx node test/browser/kill-cycles.ts [CYCLES] [FIRST_SEED]`.
 */
import { fileURLToPath } from 'node:url'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox, type FaultAction, type Sandbox } from '../../src/sandbox/index.ts'
import { seeded } from '../../src/stores/contract/seeded.ts'
import { positiveInteger, readArguments } from '../../tools/programs/arguments.ts'
import {
  agreement,
  convergence,
  monotony,
  noneLost,
  oneCharge,
  stability,
  truth,
} from '../support/invariants.ts'
import { Chromium } from './support/chromium.ts'
import { type Site, serveSite } from './support/site.ts'
import { WatchedRun, type WorkingPage } from './support/watched-run.ts'

export const ENDS = ['tab', 'renderer', 'browser'] as const
export type End = (typeof ENDS)[number]

const ORDERS = 6
/**
 * Every third order costs more than the wallet holds. It is reported as `'no'` and must never be
 * charged.
 */
const DEAR = 3
const MOST_TABS = 3
/**
 * Time limits of the pages' clients in milliseconds. They are short, so that the claims of a dead
 * tab expire soon.
 */
const TIMES = { timeout: 1_500, totalTimeout: 5_000 }
/** Undisturbed runs at the end. An order that they leave open needs a person. */
const FINISHES = 2

const FAULTS: readonly (readonly [probability: number, action: FaultAction])[] = [
  [0.15, { type: 'commitThenDrop' }],
  [0.1, { type: 'drop' }],
  [0.1, { type: 'cutBody' }],
  [0.1, { type: 'status', status: 503, commit: true }],
  [0.2, { type: 'delay', ms: 40, when: 'after' }],
  [0.1, { type: 'delay', ms: 40, when: 'before' }],
]

/** A browser and the pages it opens, for any number of cycles. */
export class Cycles {
  readonly #browser: Chromium
  readonly #site: Site

  private constructor(browser: Chromium, site: Site) {
    this.#browser = browser
    this.#site = site
  }

  static async start(): Promise<Cycles> {
    const site = await serveSite('orders')
    return new Cycles(await Chromium.start(), site)
  }

  /** Number of kills in the middle of a write of the browser. */
  get tornLogs(): number {
    return this.#browser.tornLogs
  }

  async stop(): Promise<void> {
    await this.#browser.stop()
    await this.#site.close()
  }

  /** Runs one cycle. A store that forgets is used to check that the harness detects it. */
  async run(seed: number, { forgetful = false } = {}) {
    const random = seeded(seed)
    const end = ENDS[seed % ENDS.length] ?? 'tab'
    const sandbox = createSandbox({
      seed,
      balance: 100_000,
      preset: random(2) === 0 ? 'default' : 'remembers-refusals',
      // Do not remember errors: a key with a remembered error would never be settled, but the last
      // recovery must settle everything.
      behaviour: { processingTime: random(20), rememberServerErrors: false },
      faults: FAULTS.map(([probability, action]) => ({
        match: { operation: 'createOrder' },
        probability,
        times: 'always',
        action,
      })),
    })
    const server = await serveSandbox(sandbox, { port: 0, cors: true })
    const orders = Array.from({ length: ORDERS }, (_, index) => ({
      reference: `seed-${seed}-order-${index}`,
      serviceId: index % DEAR === DEAR - 1 ? 'svc_premium' : 'svc_standard',
    }))
    const run = new WatchedRun(
      sandbox,
      orders.map(({ reference }) => reference),
    )
    /** Broken promises, in words. Empty if all held. */
    const violations: string[] = []
    /** The number of kills while pages were at work. */
    let ends = 0

    /** Lets tabs work on the unsettled orders. Each tab begins with another order. */
    const work = async (tabs: number, recover: boolean): Promise<WorkingPage[]> => {
      const { scope, unsettled } = run
      const left = orders.filter(({ reference }) => unsettled.includes(reference))
      return await Promise.all(
        Array.from({ length: tabs }, (_, tab) => {
          const placing = {
            baseUrl: server.url,
            apiKey: sandbox.apiKey,
            database: `orders-${seed}`,
            orders: [...left.slice(tab), ...left.slice(0, tab)],
            concurrency: 1 + random(3),
            recover,
            scope,
            forgetful,
            ...TIMES,
          }
          const alone = tabs === 1
          return run.work(this.#browser.context, this.#site.pageOf('orders'), placing, alone)
        }),
      )
    }

    try {
      const first = await work(1 + random(MOST_TABS), false)
      if (await this.#strike(end, first, sandbox, random)) ends++
      const second = await work(1, true)
      // Half of the recoveries are killed, too.
      if (random(2) === 0 && (await this.#strike(end, second, sandbox, random))) ends++
      await finish(second)
      sandbox.faults.clear()
      for (let count = 0; count < FINISHES; count++) {
        await finish(await work(1, true))
        if (run.unsettled.length === 0) break
      }
      run.look()
      run.log.recovered = true
      for (const promise of [oneCharge, noneLost, stability, truth, agreement, monotony, convergence])
        violations.push(...promise(run.log))
      violations.push(...run.lostWrites, ...run.unwritten)
      await this.#remove(`orders-${seed}`)
      return { end, ends, charges: sandbox.ledger.length, violations }
    } finally {
      await server.close()
    }
  }

  /**
   * Kills something a seeded time after a seeded request. Returns true if pages were still at work
   * then.
   */
  async #strike(
    end: End,
    pages: readonly WorkingPage[],
    sandbox: Sandbox,
    random: (below: number) => number,
  ): Promise<boolean> {
    // Count requests, not milliseconds from the start, so that kills hit pages at work on slow
    // machines, too.
    const after = sandbox.requests.length + 1 + random(6)
    const moment = random(30)
    let over = false
    const [victim] = pages
    const whenOver = end === 'tab' ? victim?.ended : Promise.all(pages.map(({ ended }) => ended))
    const noticed = Promise.resolve(whenOver).finally(() => {
      over = true
    })
    while (!over && sandbox.requests.length < after) await new Promise((resolve) => setTimeout(resolve, 1))
    const deadline = performance.now() + moment
    while (!over && performance.now() < deadline) await new Promise((resolve) => setImmediate(resolve))
    const struck = !over
    if (struck && end === 'tab') await victim?.page.close()
    if (struck && end === 'renderer' && victim !== undefined) await crash(victim)
    if (struck && end === 'browser') {
      await this.#browser.kill()
      await this.#browser.restart()
    }
    await noticed
    await finish(pages)
    return struck
  }

  async #remove(database: string): Promise<void> {
    const page = await this.#browser.context.newPage()
    await page.goto(this.#site.pageOf('orders'))
    await page.evaluate((name) => window.removeDatabase(name), database)
    await page.close()
  }
}

async function crash({ page, ended }: WorkingPage): Promise<void> {
  const session = await page.context().newCDPSession(page)
  // The browser never responds to this call, because the crashed process cannot.
  session.send('Page.crash').catch(() => {})
  await ended
}

async function finish(pages: readonly WorkingPage[]): Promise<void> {
  await Promise.all(pages.map(({ ended }) => ended))
  await Promise.all(pages.map(({ page }) => (page.isClosed() ? undefined : page.close())))
}

/** Runs cycles one after the other, and prints the broken promises and the sums. */
export async function runCycles(count: number, first: number) {
  const cycles = await Cycles.start()
  const ends: Record<End, number> = { tab: 0, renderer: 0, browser: 0 }
  const broken: string[] = []
  let charges = 0
  try {
    for (let seed = first; seed < first + count; seed++) {
      const cycle = await cycles.run(seed)
      ends[cycle.end] += cycle.ends
      charges += cycle.charges
      for (const violation of cycle.violations) {
        broken.push(`seed ${seed}: ${violation}`)
        console.log(broken.at(-1))
      }
    }
  } finally {
    await cycles.stop()
  }
  console.log(
    `${count} cycles from seed ${first}: ${ends.tab} tabs closed, ${ends.renderer} renderers crashed, ` +
      `${ends.browser} browsers killed (${cycles.tornLogs} in the middle of a write), ${charges} charges, ` +
      `${broken.length} broken promises`,
  )
  return { ends, charges, broken }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { count, first } = readArguments(
    {
      usage: `npx node test/browser/kill-cycles.ts [CYCLES] [FIRST_SEED]
  runs that many cycles (default 500), from that seed on (default 1)`,
      positionals: 2,
      options: {},
    },
    ({ positionals: [cycles = '500', first = '1'] }) => ({
      count: positiveInteger('CYCLES', cycles),
      first: positiveInteger('FIRST_SEED', first),
    }),
  )
  const { broken, charges } = await runCycles(count, first)
  process.exitCode = broken.length === 0 && charges > 0 ? 0 : 1
}
