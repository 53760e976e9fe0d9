import type { OutcomeKind } from '../src/orders/outcome.ts'

/** The end of an attempt in words: the first column of the table in `docs/guide/responses.md`. */
export const OUTCOME_WORDS: Readonly<Record<OutcomeKind, string>> = {
  created: '2xx with a readable order',
  created_flawed: '201 with a usable id, but another field is wrong',
  created_unreadable: '201 whose body is cut, stalled, too large or not an order',
  success_unreadable: 'another 2xx without a readable order',
  contradicted:
    '2xx with another order: another `externalOrderId` or, if it is absent, another `serviceId` or `quantity`',
  redirected: '3xx, never followed',
  refused: '400, 402, 404 or 422 with a recognisable error body',
  refused_unprocessed: '405, 406, 411, 413, 414, 415 or 431 with a recognisable error body',
  unauthorized: '401',
  forbidden: '403 with a recognisable error body',
  too_early: '425',
  rate_limited: '429',
  conflict: '409 IDEMPOTENCY_CONFLICT',
  in_progress: '409 IDEMPOTENCY_IN_PROGRESS',
  conflict_unknown: '409 with another code, or none',
  request_timeout: '408',
  server_error: '5xx',
  unrecognised: 'any other status, or 400, 402, 403, 404, 422 without a recognisable error body',
  unreachable: "no connection: DNS failure, refusal or connect timeout (only Node's `fetch` and undici)",
  untrusted: "a rejected TLS certificate (only Node's `fetch` and undici)",
  transport_closed: 'transport closed before the request (only undici)',
  connection_closed: 'connection reset or closed before a response',
  connection_lost: 'any other network failure; in browsers and with a custom `fetch`, every network failure',
  timed_out: 'no response within the time limit of the attempt',
  aborted: "an abort by the caller's signal during an attempt",
  not_sent: 'the end of the call between attempts, or before the first attempt',
}
