import type { BrowserContext, Page } from 'playwright-core'
import type { Sandbox } from '../../../src/sandbox/sandbox.ts'
import type { StoredRow } from '../../../src/stores/store.ts'
import { type LoggedCall, RunRecorder } from '../../support/run-log.ts'
import type { PageEvent, Placing } from '../pages/orders.ts'

const MAX_RETRIES = 4

export interface WorkingPage {
  readonly page: Page
  /** Resolves when the page has finished its work or has been closed. Rejects if its work failed. */
  readonly ended: Promise<void>
}

/**
 * Pages that place orders with one sandbox, and one order of events: the pages' reports, the
 * sandbox's requests, and its charges.
 */
export class WatchedRun {
  readonly log = new RunRecorder()
  readonly #sandbox: Sandbox
  readonly #seen = { requests: 0, charges: 0 }
  /** The newest acknowledged or found version of each row. */
  readonly #rows = new Map<string, StoredRow>()
  /** Acknowledged writes that were missing later, in words. */
  readonly lostWrites: string[] = []
  /** Requests that came before their record was acknowledged, in words. */
  readonly unwritten: string[] = []
  readonly #written = new Set<string>()

  constructor(sandbox: Sandbox, references: readonly string[]) {
    this.#sandbox = sandbox
    this.log.everyWrite = false
    this.log.everyRequest = false
    for (const reference of references) this.log.intent(reference, [`ref:${reference}`])
  }

  /** Scope of the rows, once known. */
  get scope(): string | undefined {
    return this.#rows.values().next().value?.scope
  }

  /** References whose charge no caller has been told yet. */
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
   * Opens a page and starts its work.
   *
   * @param alone true if no other page is working: then no acknowledged row may be missing
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
      // Pages are closed and crash on purpose. Any other end of their work is a failure.
      .catch((error: unknown) =>
        /crashed|has been closed/.test(String(error)) ? gone : Promise.reject(error),
      )
    const ended = Promise.race([done, gone]).finally(() => {
      // Do not use `died`, which means that no other page was working: until then, other tabs could
      // meet its calls.
      for (const call of calls) call.endedAt ??= this.log.next()
    })
    return { page, ended }
  }

  /** Reads the sandbox's new requests and charges. */
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
