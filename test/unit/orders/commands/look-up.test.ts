import { describe, expect, it } from 'vitest'
import { ConfigurationError } from '../../../../src/errors/classes.ts'
import type { AttemptResult } from '../../../../src/http/attempt.ts'
import type { CallSettings } from '../../../../src/http/call.ts'
import { type Lookup, lookUp, lookUpById } from '../../../../src/orders/commands/look-up.ts'
import type { RecoveryOutcome } from '../../../../src/orders/commands/recovery-outcome.ts'
import type { FoundRecord } from '../../../../src/orders/record/journal.ts'
import { LEFT_OPEN, leftOpen, remember } from '../../../support/order-context.ts'
import {
  ABORTED,
  callSettings,
  LOST,
  ORDER,
  type Place,
  placeWith,
  answer as response,
  TIMED_OUT,
} from '../../../support/place.ts'

const settings = callSettings({ timeout: 1000, totalTimeout: 10_000 })
const answer = (body: unknown, status = 200): AttemptResult => response(status, body)

/** A service with these responses by path, each called with the number of the request. */
const service = (respond: (path: string, count: number) => AttemptResult | Promise<AttemptResult>): Place =>
  placeWith([({ asked }, path) => respond(path, asked.length)])
const readById = (place: Place, found: FoundRecord, changes: Partial<CallSettings> = {}) =>
  lookUpById(place.context, 'orders.recover', found, { ...settings, ...changes })

/** Stores an open record with that reference. */
const named = ({ context }: Place, reference: string): Promise<FoundRecord> =>
  remember(context, leftOpen(reference))

async function lookups(place: Place, ...references: string[]): Promise<Lookup[]> {
  const found: Lookup[] = []
  for (const reference of references)
    found.push({ found: await named(place, reference), reason: 'past_window' })
  return found
}

async function looked(
  { context }: Place,
  wanted: readonly Lookup[],
  { checkOpen = () => {}, changes = {} }: { checkOpen?: () => void; changes?: Partial<CallSettings> } = {},
): Promise<string[]> {
  const outcomes: string[] = []
  const used = { ...settings, ...changes }
  const walk = lookUp(context, 'orders.recover', wanted, used, { reachable: true, checkOpen })
  for await (const outcome of walk) outcomes.push(textOf(outcome))
  return outcomes
}

const textOf = ({ outcome, record, order, reason, error }: RecoveryOutcome): string =>
  [record.externalOrderId, outcome, order?.id ?? record.order?.id, reason, error?.code]
    .filter(Boolean)
    .join(' ')

const row = (externalOrderId: string, changes: object = {}): object => ({
  ...ORDER,
  id: `o-${externalOrderId}`,
  metadata: { externalOrderId },
  ...changes,
})
/** Responses with these rows on the first page, and none after it. */
const showing =
  (...rows: readonly object[]) =>
  (path: string): AttemptResult =>
    answer({ orders: path.includes('offset=0') ? rows : [] })

describe('orders that are looked for in the list', () => {
  it('one walk over the list finds all orders, and ends with the last of them', async () => {
    const place = service(showing(row('r3'), row('other'), row('r1'), row('r2')))
    const wanted = await lookups(place, 'r1', 'r2', 'r3')
    expect(await looked(place, wanted)).toEqual(['r3 created o-r3', 'r1 created o-r1', 'r2 created o-r2'])
    expect(place.asked).toEqual(['/v1/orders?limit=50&offset=0'])
  })

  it('an order in the list that differs in any field is doubtful, and not taken for ours', async () => {
    for (const changes of [{ quantity: 2 }, { serviceId: 'x' }, { target: 'u' }]) {
      const place = service(showing(row('r1', changes)))
      const found = await looked(place, await lookups(place, 'r1'))
      expect(found).toEqual(['r1 needs_attention doubtful unresolved_order'])
    }
  })

  it('a list is read once more, because rows may move while it is read', async () => {
    let pages = 0
    const place = service((path) => {
      pages++
      return answer({ orders: path.includes('offset=0') && pages > 2 ? [row('r1')] : [] })
    })
    expect(await looked(place, await lookups(place, 'r1'))).toEqual(['r1 needs_attention past_window'])
    expect(pages).toBe(2)
  })

  it.each<[string, AttemptResult, string]>([
    ['a broken connection', LOST, 'still_open connection'],
    ['no answer in time', TIMED_OUT, 'still_open timeout'],
    ['500', answer({}, 500), 'still_open server'],
    ['503', answer({}, 503), 'still_open server'],
    ['429', answer({}, 429), 'still_open rate_limit'],
    ['408', answer({}, 408), 'still_open api'],
    ['425', answer({}, 425), 'still_open api'],
    ['401', answer({}, 401), 'needs_attention past_window authentication'],
    ['403', answer({}, 403), 'needs_attention past_window permission_denied'],
    ['404', answer({}, 404), 'needs_attention past_window not_found'],
    ['no list', answer({}), 'needs_attention past_window invalid_response'],
  ])('orders stay open if the list may be available later: %s', async (_what, result, expected) => {
    const place = service((path) => (path.endsWith('offset=0') ? answer({ orders: [row('r1')] }) : result))
    const wanted = await lookups(place, 'r1', 'r2')
    // Earlier finds stay found.
    expect(await looked(place, wanted)).toEqual(['r1 created o-r1', `r2 ${expected}`])
  })

  it('a look-up in the list fails with every response that proves nothing', async () => {
    const bug = new TypeError('a mistake of ours')
    const broken = service(() => Promise.reject(bug))
    await expect(looked(broken, await lookups(broken, 'r1'))).rejects.toBe(bug)

    const controller = new AbortController()
    const place = service(() => {
      controller.abort()
      return ABORTED
    })
    const { signal } = controller
    const ending = looked(place, await lookups(place, 'r1'), { changes: { signal } })
    await expect(ending).rejects.toMatchObject({ code: 'aborted', charged: 'unknown' })
  })

  it('a look-up ends with a client that is closed meanwhile, whatever the list contains', async () => {
    const closed = new ConfigurationError('closed', { charged: 'unknown' })
    let open = true
    const place = service(() => {
      open = false
      return LOST
    })
    const checkOpen = (): void => {
      if (!open) throw closed
    }
    await expect(looked(place, await lookups(place, 'r1'), { checkOpen })).rejects.toBe(closed)
  })
})

describe('an order that is read by its id', () => {
  const created = { ...LEFT_OPEN, state: 'created', order: { id: 'o1' } } as const

  it('an order read by its id is remembered, and requested only once', async () => {
    const place = service(() => answer(ORDER))
    const found = await remember(place.context, created)
    const outcome = await readById(place, found)
    expect(outcome).toMatchObject({ outcome: 'created', order: ORDER, record: { state: 'created' } })

    const failing = service(() => answer({}, 503))
    const again = await remember(failing.context, created)
    expect(await readById(failing, again, { maxRetries: 3 })).toMatchObject({
      outcome: 'created',
      reason: 'unreadable',
      error: { code: 'server', charged: 'yes' },
    })
    expect(failing.asked).toHaveLength(1)
  })

  it('a read by id fails with every response that proves nothing', async () => {
    const bug = new TypeError('a mistake of ours')
    const broken = service(() => Promise.reject(bug))
    const found = await remember(broken.context, created)
    await expect(readById(broken, found)).rejects.toBe(bug)

    const place = service(() => ABORTED)
    const ending = readById(place, await remember(place.context, created), { signal: AbortSignal.abort() })
    await expect(ending).rejects.toMatchObject({ code: 'aborted', charged: 'yes' })
  })
})
