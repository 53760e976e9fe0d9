import type { JsonObject } from './json.ts'

export const operations = [
  'createOrder',
  'listOrders',
  'retrieveOrder',
  'listServices',
  'retrieveService',
  'retrieveBalance',
] as const

/** An endpoint of the API document. */
export type SandboxOperation = (typeof operations)[number]

/** The parts of a request that fault rules can match. */
export interface SandboxRequestView {
  /** Null for paths and methods that the API does not have. */
  readonly operation: SandboxOperation | null
  /** HTTP method, upper case. */
  readonly method: string
  /** Path without the query, for example `/v1/orders`. */
  readonly path: string
  /** Query parameters. */
  readonly query: URLSearchParams
  /** Label of the API key, or null if the API key is missing or unknown. */
  readonly apiKeyId: string | null
  /** Idempotency-Key, or null. */
  readonly idempotencyKey: string | null
  /** `metadata.externalOrderId` of the body, or null. */
  readonly externalOrderId: string | null
  /** The parsed JSON body, or undefined if it is invalid or nested deeper than 64 levels. */
  readonly body: unknown
}

/** Which requests a rule applies to. All conditions that are set must hold. */
export interface FaultMatch {
  /** Endpoint of the API. */
  readonly operation?: SandboxOperation
  /** HTTP method, upper case, for example `POST`. */
  readonly method?: string
  /** Start of the path, or a pattern that matches part of the path. */
  readonly path?: string | RegExp
  /** `metadata.externalOrderId` of the body. */
  readonly externalOrderId?: string
  /** Idempotency-Key of the request. */
  readonly idempotencyKey?: string
  /** A condition in code. Not possible in a file. */
  readonly when?: (request: SandboxRequestView) => boolean
}

/**
 * A change to all rows of a list, before a page is selected. `'shuffle'` uses the sandbox's seed.
 */
export type FaultListChange =
  | 'dropFirst'
  | 'duplicateFirst'
  | 'reverse'
  | 'shuffle'
  | ((rows: readonly JsonObject[], request: SandboxRequestView) => readonly JsonObject[])

/**
 * A fault.
 *
 * Unless the action's description says otherwise, the service processes the request, so a valid
 * creation is charged. For an action with the option `commit`, the service processes the request
 * only if `commit` is true; the default is false, except where stated.
 *
 * `delay`, `forgetKeys`, `transformBody`, `shortPage` and `mutateList` may all apply to one
 * request. Of the rules with other actions, at most one applies to a request, and later such
 * rules do not count that request.
 */
export type FaultAction =
  /**
   * The connection is refused, and the request is not processed.
   *
   * The Node server cannot refuse a single request, so it resets the connection instead.
   */
  | { readonly type: 'refuseConnection' }
  /** The connection is reset, and the request is not processed. */
  | { readonly type: 'drop' }
  /** The connection is reset after the request is processed: the response is lost. */
  | { readonly type: 'commitThenDrop' }
  /**
   * The server dies halfway: the key is marked as running, nothing is charged, and the connection
   * is reset.
   *
   * See the switch `orphanedMarkLifetime`.
   */
  | { readonly type: 'crash' }
  /**
   * Sends the headers and `after` bytes of the body (default: half), then breaks the connection, or
   * ends the response normally if `cleanly` is true.
   */
  | { readonly type: 'cutBody'; readonly after?: number; readonly cleanly?: boolean }
  /** Sends the headers and `after` bytes of the body (default: half), then nothing more. */
  | { readonly type: 'stallBody'; readonly after?: number }
  /** The request never gets a response. */
  | { readonly type: 'stall'; readonly commit?: boolean }
  /**
   * Delays the response by `ms`.
   *
   * `when: 'before'` (default): processing begins after the delay. `'during'`: a creation is marked
   * as running during the delay. `'after'`: processing is immediate, and the response is late.
   */
  | { readonly type: 'delay'; readonly ms: number; readonly when?: 'before' | 'during' | 'after' }
  /**
   * Responds with another status, 200–599.
   *
   * The body is `json`, `text`, a proxy's error page (`html`), or, if none of them is set, an
   * ErrorResponse with `code`. With the switch `rememberServerErrors`, a 5xx is remembered under
   * the key.
   */
  | {
      readonly type: 'status'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly json?: unknown
      readonly text?: string
      readonly html?: boolean
      readonly code?: string
      readonly commit?: boolean
    }
  /** Responds with 409 IDEMPOTENCY_IN_PROGRESS. */
  | { readonly type: 'inProgress'; readonly commit?: boolean }
  /** Before processing the request, the service forgets the keys of requests that have ended. */
  | { readonly type: 'forgetKeys' }
  /**
   * Changes the JSON body of the response: first with the merge patch (RFC 7396: null removes a
   * field), which leaves a body alone that is no object, then with the function.
   */
  | {
      readonly type: 'transformBody'
      readonly transform?: (body: unknown, request: SandboxRequestView) => unknown
      readonly patch?: JsonObject
    }
  /** Lists: pages have at most their limit minus `fewer` rows. Default 1. */
  | { readonly type: 'shortPage'; readonly fewer?: number }
  /**
   * Lists: changes all rows before the page is selected.
   *
   * With `skip: 1, times: Infinity`, the rows change between pages 1 and 2.
   */
  | { readonly type: 'mutateList'; readonly change: FaultListChange }
  /**
   * Responds with `body`, by default as application/json and with the real status, or with 200 if
   * `commit` is false.
   *
   * `commit` is true by default.
   */
  | {
      readonly type: 'bytes'
      readonly body: string
      readonly contentType?: string
      readonly status?: number
      readonly commit?: boolean
    }
  /**
   * Order creations: returns the customer's newest order that was charged under another key, like a
   * proxy that mixes up connections.
   *
   * If there is no such order, the fault has no effect. `commit` is true by default.
   */
  | { readonly type: 'otherOrder'; readonly commit?: boolean }

/** A fault and the requests that it applies to. */
export interface FaultRule {
  /** Default: every request. */
  readonly match?: FaultMatch
  /** How many matching requests the rule skips first. Default 0. */
  readonly skip?: number
  /** How often the rule applies. Default 1. `Infinity`, or `"always"` in a file, means no limit. */
  readonly times?: number | 'always'
  /**
   * Probability that the rule applies to a matching request.
   *
   * Default 1. The sandbox's seed determines the random draws.
   */
  readonly probability?: number
  /** What goes wrong. */
  readonly action: FaultAction
}

/** The fault rules of a sandbox, tried in the order in which they were added. */
export interface SandboxFaults {
  /**
   * Adds a rule and returns a function that removes it.
   *
   * @throws {TypeError} if the rule is malformed
   */
  add(rule: FaultRule): () => void
  /** Removes all rules. */
  clear(): void
  /**
   * Returns the rules that have not yet applied `times` times.
   *
   * A rule with `Infinity` is pending until it has applied once.
   */
  pending(): readonly FaultRule[]
  /** Returns every rule, oldest first, with its counts so far. */
  list(): readonly SandboxFaultStatus[]
  /** Removes one rule. Returns false if no rule has this id. */
  remove(id: number): boolean
}

/** A fault rule and its counts. */
export interface SandboxFaultStatus {
  /** Identifier of the rule, never reused. */
  readonly id: number
  /** The rule as it was added. */
  readonly rule: FaultRule
  /** Number of requests that matched the rule. */
  readonly matched: number
  /** How often the rule has applied. */
  readonly acted: number
  /** True once the rule has applied `times` times. */
  readonly spent: boolean
}
