/**
 * Checks the results of `recover()`, `reconcile()` and `resolve()` for the one order of an
 * exchange, against every response about it (including those to its first call) and against the
 * stored record.
 */
import type { CustomerOrderingError, OrderRecord, Reconciled, RecoveryOutcome } from '../../../src/index.ts'
import { chargedBy } from '../../support/run-log.ts'
import type { Answer } from './answers.ts'

export const REFERENCE = 'r-1'
export const ORDER_ID = 'ord_1'
export const ORDERED = { serviceId: 'svc_1', target: '@x', quantity: 2 } as const

/** A response, and whether it responded to a create request. */
export interface Heard {
  readonly answer: Answer
  readonly places: boolean
}

/** Facts about the order besides the reports. */
export interface Known {
  readonly heard: readonly Heard[]
  readonly stored: readonly OrderRecord[]
  readonly refuses: (answer: Answer) => boolean
  /** True if a correct service could have sent the first response to the call. */
  readonly flawless: boolean
}

export interface Reported {
  readonly recovery?: string
  readonly charged?: string
}

type Must = (held: boolean, what: string) => void

const isSuccess = ({ status, failed }: Answer): boolean => !failed && status >= 200 && status < 300

/** Values that only another order has, anywhere in a body: its reference, service or quantity. */
const ANOTHERS = /"(?:externalOrderId":"(?!r-1")|serviceId":"(?!svc_1")|quantity":(?!2\b)[-\d])/

/** A 201 is a charge unless its body belongs to another order. */
export const proves = ({ status, failed, text = '' }: Answer): boolean =>
  status === 201 && !failed && !ANOTHERS.test(text)

function evidence({ heard, refuses }: Known) {
  const placed = heard.filter(({ places }) => places).map(({ answer }) => answer)
  const read = heard.filter(({ places }) => !places).map(({ answer }) => answer)
  const success = (text: string) => (answer: Answer) =>
    isSuccess(answer) && answer.text?.includes(text) === true
  return {
    proven: placed.some(proves),
    shown: placed.some(success('"id"')),
    found: read.some(success(`"${REFERENCE}"`)),
    foundById: read.some(success(`"${ORDER_ID}"`)),
    refused: placed.length > 0 && placed.every(refuses),
    conflict: placed.some(
      ({ status, text }) => status === 409 && text?.includes('IDEMPOTENCY_CONFLICT') === true,
    ),
    inProgress: placed.some(
      ({ status, text }) => status === 409 && text?.includes('IDEMPOTENCY_IN_PROGRESS') === true,
    ),
  }
}

function judgeCharged(charged: string, stored: OrderRecord, known: Known, what: string, must: Must): void {
  const { proven, refused } = evidence(known)
  must(charged !== 'no' || refused, `${what} says 'no' where not every answer was a refusal`)
  must(charged === 'yes' || !proven, `${what} says '${charged}' although 201 was heard`)
  must(charged === chargedBy(stored), `${what} says '${charged}' of a record that is ${stored.state}`)
}

/** Checks the result of `recover()` with one record to settle. */
export function judgeRecovery(
  outcomes: readonly RecoveryOutcome[],
  reports: readonly Reported[],
  known: Known,
  must: Must,
): void {
  const [stored] = known.stored
  const [told] = outcomes
  must(outcomes.length === 1, `recover() told of ${outcomes.length} records instead of one`)
  must(known.stored.length === 1, `${known.stored.length} records are stored`)
  if (stored === undefined || told === undefined) return
  const { outcome, record, order, error, reason } = told
  const { proven, shown, found, refused, conflict, inProgress } = evidence(known)
  const isCreated = outcome === 'created'
  must(!isCreated || proven || shown || found, 'recovered as created, and nobody has heard of an order')
  must(isCreated || !proven, `recovered as ${outcome} although 201 was heard`)
  must(isCreated || !known.flawless, `recovered as ${outcome} although the service showed the order`)
  const isClosed = outcome === 'rejected'
  if (isClosed) must(refused, 'recovered as rejected without refusals')
  // A conflict stays open, because it is unknown what another payload bought with the key.
  if (reason === 'conflict') must(conflict, 'recovered as a conflict, which no answer said')
  if (outcome === 'in_progress') must(inProgress, 'recovered as in progress, which no answer said')
  const state = isCreated ? 'created' : isClosed ? 'rejected' : 'open'
  must(stored.state === state, `recovered as ${outcome} while the record is ${stored.state}`)
  must(record.state === state, `recovered as ${outcome} with a record that is ${record.state}`)
  must(
    order === undefined || stored.order?.id === order.id,
    `recovered ${order?.id}, stored ${stored.order?.id}`,
  )
  must(!known.flawless || order?.id === ORDER_ID, 'recovered without the order that the service showed')
  if (error !== undefined) judgeCharged(error.charged, stored, known, `the error of ${outcome}`, must)
  must(
    reports.length === 1 && reports[0]?.recovery === outcome,
    `reported ${reports.map(({ recovery }) => recovery).join()} of ${outcome}`,
  )
  for (const { charged } of reports)
    judgeCharged(String(charged), stored, known, `the report of ${outcome}`, must)
}

/** Checks the result of `reconcile()`, which only reads. */
export function judgeReconciliation(
  lines: readonly Reconciled[],
  before: readonly OrderRecord[],
  known: Known,
  must: Must,
): void {
  const { found, foundById } = evidence(known)
  must(JSON.stringify(known.stored) === JSON.stringify(before), 'reconcile() changed what is remembered')
  const [stored] = known.stored
  const own = lines.filter(({ record }) => record !== undefined)
  // Several orders of the list may be doubtful, also beside the one that matches.
  const sure = own.filter(({ kind }) => kind !== 'doubtful').length
  must(sure === 1 || (sure === 0 && own.length > 0), `the record stands in ${sure} of ${own.length} lines`)
  for (const { kind, record, order } of lines) {
    must((kind === 'only_remote') === (record === undefined), `${kind} with${record ? '' : 'out'} a record`)
    must(kind !== 'only_local' || order === undefined, 'an order that only this side knows is shown')
    if (record === undefined) continue
    must(record.slot === stored?.slot && record.state === stored.state, 'another record than the stored one')
    if (kind === 'only_local' || kind === 'doubtful') continue
    must(found || foundById, `${kind}, and no answer showed the order`)
    const [here, there] = [record.order?.amount, order?.amount]
    const differs = here !== undefined && there !== undefined && here !== there
    must((kind === 'amount_differs') === differs, `${kind} of the amounts ${here} and ${there}`)
  }
  if (known.flawless)
    must(own[0]?.kind === 'matched', `${own[0]?.kind} although the service showed the order`)
}

/** Checks the result of `resolve()` as created, which first reads the order. */
export function judgeResolution(
  ended: { readonly record: OrderRecord } | { readonly error: CustomerOrderingError },
  known: Known,
  must: Must,
): void {
  const [stored] = known.stored
  must(known.stored.length === 1, `${known.stored.length} records are stored`)
  if (stored === undefined) return
  if ('error' in ended) {
    must(stored.state === 'open', `resolve() failed, and the record is ${stored.state}`)
    must(!known.flawless, 'resolve() failed although the service showed the order')
    judgeCharged(ended.error.charged, stored, known, 'resolve()', must)
    return
  }
  must(evidence(known).foundById, 'resolved as created, and nobody has shown the order')
  for (const { state, order } of [ended.record, stored])
    must(
      state === 'created' && order?.id === ORDER_ID,
      `resolved, and the record is ${state} as ${order?.id}`,
    )
}
