import { CONFLICTS, STATUSES, type StatusOutcome } from '../../src/errors/statuses.ts'
import type { OutcomeKind } from '../../src/orders/protocol/outcome.ts'

/** The end of an attempt in words: the first column of the table in `docs/guide/responses.md`. */
const WORDS: Readonly<Record<Exclude<OutcomeKind, StatusOutcome>, string>> = {
  created: '2xx with a readable order',
  created_flawed: '201 with a usable id, but another field is wrong',
  created_unreadable: '201 whose body is cut, stalled, too large or not an order',
  success_unreadable: 'another 2xx without a readable order',
  contradicted:
    '2xx with another order: another `externalOrderId` or, if it is absent, another `serviceId` or `quantity`',
  redirected: '3xx, never followed',
  unreachable: "no connection: DNS failure, refusal or connect timeout (only Node's `fetch` and undici)",
  untrusted: "a rejected TLS certificate (only Node's `fetch` and undici)",
  transport_closed: 'transport closed before the request (only undici)',
  connection_closed: 'connection reset or closed before a response',
  connection_lost: 'any other network failure; in browsers and with a custom `fetch`, every network failure',
  timed_out: 'no response within the time limit of the attempt',
  aborted: "an abort by the caller's signal during an attempt",
  not_sent: 'the end of the call between attempts, or before the first attempt',
}

const entries = Object.entries(STATUSES)

function statusesWith(outcome: OutcomeKind): string {
  const conflict = Object.entries(CONFLICTS).find(([, row]) => row.outcome === outcome)
  if (conflict !== undefined) return `409 (or another 4xx) ${conflict[0]}`
  const found = entries.filter(([, row]) => row.outcome === outcome)
  const statuses = found.map(([status]) => status).join(', ')
  const named = statuses.replace(/, (\d+)$/, ' or $1')
  if (outcome === 'conflict_unknown') return `${named} with another code, or none`
  return found.every(([, { alone }]) => alone) ? named : `${named} with a recognisable error body`
}

export function outcomeWords(kind: OutcomeKind): string {
  if (kind === 'server_error') return '5xx'
  if (kind === 'unrecognised') return 'any other status, or a refusal without a recognisable error body'
  return Object.hasOwn(WORDS, kind) ? WORDS[kind as keyof typeof WORDS] : statusesWith(kind)
}
