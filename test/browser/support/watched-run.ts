import type { BrowserContext, Page } from 'playwright-core'
import type { Sandbox } from '../../../src/sandbox/sandbox.ts'
import type { StoredRow } from '../../../src/stores/store.ts'
import { type LoggedCall, RunRecorder } from '../../support/run-log.ts'
import type { PageEvent, Placing } from '../pages/orders.ts'

const MAX_RETRIES = 4

/** A page at work. */
export interface WorkingPage {
  readonly page: Page
  /** Resolves when the page has done its work or has ended; rejects if its work failed. */
  readonly ended: Promise<void>
}

/**
 * Pages that place orders with one sandbox, in one order of events: what pages report, the requests that the sandbox got
 * and what it charged.
 */
export class WatchedRun {
  readonly log = new RunRecorder()
  readonly #sandbox: Sandbox
  readonly #seen = { requests: 0, charges: 0 }
  /** The newest version of each row that was acknowledged or found. */
  readonly #rows = new Map<string, StoredRow>()
  /** Writes of the store that were acknowledged and were not there afterwards, in words. */
  readonly lostWrites: string[] = []
  /** Requests that came before the store had acknowledged their record, in words. */
  readonly unwritten: string[] = []
  readonly #written = new Set<string>()

  constructor(sandbox: Sandbox, references: readonly string[]) {
    this.#sandbox = sandbox
    this.log.everyWrite = false
    this.log.everyRequest = false
    for (const reference of references) this.log.intent(reference, [`ref:${reference}`])
  }

  /** Scope of the rows, once one was seen. */
  get scope(): string | undefined {
    return this.#rows.values().next().value?.scope
  }

  /** References of which nobody was told yet whether they were charged. */
  get unsettled(): readonly string[] {
    const settled = (intent: string): boolean =>
      this.log.calls.some(
        ({ told, recovered, ...call }) =>
          (call.intent === intent && told !== undefined && told.charged !== 'unknown') ||
          recovered?.some(
            (found) =>
              found.intent === intent && (found.outcome === 'created' || found.outcome === 'rejected'),
          ),
      )
    return this.log.intents.map(({ name }) => name).filter((name) => !settled(name))
  }

  /**
   * Opens a page and sets it to work.
   *
   * @param alone true if no other page is at work: then nothing that was acknowledged may be missing
   */
  async work(
    context: BrowserContext,
    address: string,
    placing: Placing,
    alone: boolean,
  ): Promise<WorkingPage> {
    const page = await context.newPage()
    const calls: LoggedCall[] = []
    await page.exposeBinding('report', (_source, event: PageEvent) =>
      this.#hear(event, calls, placing.totalTimeout, alone),
    )
    await page.goto(address)
    const gone = new Promise<void>((resolve) => {
      page.once('close', () => resolve())
      page.once('crash', () => resolve())
    })
    const done = page
      .evaluate((plan) => window.placeOrders(plan), placing)
      // Pages are closed and crash here; whatever else ends their work is a fault.
      .catch((error: unknown) =>
        /crashed|has been closed/.test(String(error)) ? gone : Promise.reject(error),
      )
    const ended = Promise.race([done, gone]).finally(() => {
      // Not `died`, which says that nobody else was at work: until then, other tabs could meet its calls.
      for (const call of calls) call.endedAt ??= this.log.next()
    })
    return { page, ended }
  }

  /** Takes in what the sandbox has seen since. */
  look(): void {
    const { requests, ledger } = this.#sandbox
    for (const { idempotencyKey, operation, body } of requests.slice(this.#seen.requests)) {
      if (operation !== 'createOrder') continue
      const key = idempotencyKey ?? ''
      const intent: string = JSON.parse(body).metadata.externalOrderId
      if (!this.#written.has(`${key} ${body}`))
        this.unwritten.push(`${intent} was sent with key ${key} before it was written`)
      this.log.request({ intent, key, body })
    }
    this.#seen.requests = requests.length
    for (const { idempotencyKey: key, externalOrderId: intent = '', orderId } of ledger.slice(
      this.#seen.charges,
    )) {
      const requestedAt = this.log.requests.find((request) => request.key === key)?.at ?? 0
      this.log.charge({ intent, key, orderId, requestedAt })
    }
    this.#seen.charges = ledger.length
  }

  #hear(event: PageEvent, calls: LoggedCall[], totalTimeout: number, alone: boolean): number {
    if (event.type === 'written') this.#takeIn(event.row)
    this.look()
    switch (event.type) {
      case 'written':
        return 0
      case 'opened':
        if (alone) this.#compare(event.rows)
        return 0
      case 'begin': {
        const { type: _type, ...call } = event
        const logged = this.log.call({ ...call, totalTimeout, maxRetries: MAX_RETRIES })
        calls.push(logged)
        return logged.id
      }
      case 'end': {
        const { call: number, time, rows, type: _type, ...end } = event
        for (const row of rows) this.#takeIn(row)
        const call = calls.find(({ id }) => id === number)
        if (call === undefined) throw new Error(`call ${number} of another page ended`)
        this.log.ended(call, time, end)
        return number
      }
    }
  }

  #takeIn(row: StoredRow): void {
    const { key, body } = JSON.parse(row.data)
    this.#written.add(`${key} ${body}`)
    if (row.version <= (this.#rows.get(row.id)?.version ?? 0)) return
    this.#rows.set(row.id, row)
    this.log.row(row)
  }

  #compare(found: readonly StoredRow[]): void {
    for (const row of this.#rows.values()) {
      const now = found.find(({ id }) => id === row.id)
      const kept =
        now !== undefined &&
        (now.version > row.version || (now.version === row.version && now.data === row.data))
      if (!kept)
        this.lostWrites.push(
          `version ${row.version} of ${row.id} was acknowledged, and there is ${now?.version ?? 'none'}`,
        )
    }
    for (const row of found) this.#takeIn(row)
  }
}
