/**
 * What the statuses of responses prove about an order. Written down independently of the source's
 * outcome table; `test/unit/support/statuses.test.ts` compares the two.
 */

/** The service checked the order and refused it, if the response has an error body. */
export const REFUSED = [400, 402, 404, 422] as const
/** The service did not process the request, if the response has an error body. */
const UNPROCESSED = [403, 405, 406, 411, 413, 414, 415, 431]
/** The service did not process the request, whatever the body. */
const UNPROCESSED_ALONE = [401, 425, 429]

/** Statuses that prove without a body that the request bought nothing. */
export const REFUSALS_ALONE: ReadonlySet<number> = new Set(UNPROCESSED_ALONE)
/** Statuses that prove with an error body that the request bought nothing. */
export const REFUSALS_WITH_BODY: ReadonlySet<number> = new Set([...REFUSED, ...UNPROCESSED])
/** Statuses after which the service has checked the order. 409: the key belongs to another one. */
export const CHECKED_REFUSALS: ReadonlySet<number> = new Set([...REFUSED, 409])
/** Statuses after which the request itself bought nothing. */
export const DEFINITE: ReadonlySet<number> = new Set([
  ...CHECKED_REFUSALS,
  ...UNPROCESSED,
  ...UNPROCESSED_ALONE,
])
