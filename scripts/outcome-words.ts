import type { OutcomeKind } from '../src/orders/outcome.ts'

/** What an attempt ended with, in words: the first column of the table in `docs/errors.md`. */
export const OUTCOME_WORDS: Readonly<Record<OutcomeKind, string>> = {
  created: '2xx with a readable order',
  created_flawed: '201 with a usable id and another field wrong',
  created_unreadable: '201 whose body is cut, stalled, too large or no order',
  success_unreadable: 'another 2xx without a readable order',
  contradicted:
    '2xx with another `externalOrderId`, or without one another `serviceId` or `quantity`, than was sent',
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
  unreachable:
    "no connection: DNS, refused, connect timeout (only with Node's own fetch and that of `customer-ordering-sdk/undici`)",
  untrusted:
    "TLS certificate rejected (only with Node's own fetch and that of `customer-ordering-sdk/undici`)",
  transport_closed: 'transport closed before the request (only `customer-ordering-sdk/undici`)',
  connection_closed: 'connection reset or closed before an answer',
  connection_lost: 'any other network failure, also all of them in browsers and with a custom fetch',
  timed_out: 'no answer within the time of one attempt',
  aborted: "the caller's signal while an attempt is under way",
  not_sent: 'the call ends between attempts, or before the first',
}
