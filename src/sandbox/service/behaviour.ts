import { assertShape, flag, listOf, number, oneOf, orNull, record, type Shape, text } from './shape.ts'

/** A check of `POST /v1/orders`; see {@link SandboxBehaviour.checks}. */
export type SandboxCheck = 'auth' | 'key' | 'validation' | 'service' | 'balance'

/** A field of an order besides the documented ones. */
export type SandboxOrderField =
  | 'serviceId'
  | 'target'
  | 'quantity'
  | 'currency'
  | 'metadata'
  | 'sourceSystem'
  | 'createdAt'

/**
 * Switches for behaviour that the API document does not specify.
 *
 * Times are in milliseconds. {@link sandboxPresets} has named combinations.
 */
export interface SandboxBehaviour {
  /** Whether a service's `amount` is for one unit or for the whole order. Default `'perUnit'`. */
  readonly priceIs: 'perUnit' | 'perOrder'
  /**
   * Where the steps of a quantity start.
   *
   * With minimum 5 and step 10, `'minimum'` allows 5, 15 and 25, and `'zero'` allows 10 and 20.
   * Default `'minimum'`.
   */
  readonly stepFrom: 'minimum' | 'zero'
  /**
   * Whether `quantity` may have a fraction. The API document requires an integer. Default false.
   */
  readonly fractionalQuantity: boolean
  /** Required body fields besides `serviceId` and `quantity`. Default `['target']`. */
  readonly requiredFields: readonly ('target' | 'metadata' | 'externalOrderId')[]
  /**
   * What happens to body fields that the API document does not mention.
   *
   * With `'refuse'`, the request gets 400. Default `'ignore'`.
   */
  readonly unknownFields: 'ignore' | 'refuse'
  /**
   * Where an order's source system comes from: `metadata.sourceSystem`, the body's `sourceSystem`,
   * or the API key.
   *
   * Default `'metadata'`.
   */
  readonly sourceSystemFrom: 'metadata' | 'body' | 'apiKey'

  /**
   * Shape of an ErrorResponse.
   *
   * `'bare'`: `{ code, message }` (default). `'nested'`: `{ error: { code, message } }`.
   * `'errors'`: `{ errors: [{ code, message }] }`. `'problem'`: RFC 9457 with a `code`. `'flat'`:
   * `{ error: CODE, message }`.
   */
  readonly errorShape: 'bare' | 'nested' | 'errors' | 'problem' | 'flat'
  /**
   * Envelope of the lists.
   *
   * `'array'`: the bare array. `'data'`: `{ data }` (default). `'items'`:
   * `{ items, total, limit, offset }`. `'named'`: `{ orders | services, hasMore }`. `'results'`:
   * `{ results, pagination: { total, hasMore } }`.
   */
  readonly listEnvelope: 'array' | 'data' | 'items' | 'named' | 'results'
  /**
   * Fields of an order in responses, besides the documented ones.
   *
   * Default: all but `sourceSystem`.
   */
  readonly orderFields: readonly SandboxOrderField[]
  /**
   * Name and values of the field that shows whether a service is in stock.
   *
   * Default `stockState` with `in_stock` and `out_of_stock`.
   */
  readonly stockState: { readonly field: string; readonly inStock: string; readonly outOfStock: string }
  /**
   * Statuses that an order goes through.
   *
   * Each begins `after` milliseconds after the creation. Default: always `pending`.
   */
  readonly statuses: readonly { readonly status: string; readonly after: number }[]
  /** Response header with the request's identifier, or null for none. Default `'x-request-id'`. */
  readonly requestIdHeader: string | null

  /**
   * The five checks of an order creation, in the order in which they run.
   *
   * Default auth, key, validation, service, balance.
   */
  readonly checks: readonly SandboxCheck[]
  /**
   * Scope of an Idempotency-Key: one API key, or all API keys of a customer. Default `'apiKey'`.
   */
  readonly keyScope: 'apiKey' | 'customer'
  /**
   * How long a key is remembered, or null for no limit. Default null.
   *
   * A key never expires while its request runs.
   */
  readonly keyLifetime: number | null
  /**
   * When a key's lifetime begins.
   *
   * `'remembered'` (default): with the request whose response is remembered. `'firstUse'`: with the
   * first request, even if it is refused. `'lastUse'`: with the latest request.
   */
  readonly keyLifetimeFrom: 'remembered' | 'firstUse' | 'lastUse'
  /**
   * Which keys are accepted. Other keys get 400. Default `'any'` (1–255 visible ASCII characters).
   */
  readonly keyFormat: 'any' | 'uuid'
  /**
   * When two payloads under one key are treated as the same.
   *
   * `'bytes'`: byte-equal. `'json'` (default): equal as JSON, whatever their whitespace and order
   * of fields. `'json-without-metadata'`: equal as JSON, apart from `metadata`.
   */
  readonly payloadEquality: 'bytes' | 'json' | 'json-without-metadata'
  /**
   * Statuses of the refusals that are remembered under the key and replayed.
   *
   * Default none: after a refusal, the key may be used again.
   */
  readonly rememberedRefusals: readonly (400 | 402 | 404 | 422)[]
  /** Whether a key accepts another payload after a refusal that is not remembered. Default true. */
  readonly refusedKeysChangePayload: boolean
  /** Whether a 5xx of a `status` fault is remembered and replayed under the key. Default false. */
  readonly rememberServerErrors: boolean
  /** Status of a replayed creation. Default 201. */
  readonly replayStatus: 200 | 201
  /**
   * Whether a replay shows the order as in the first response or as it is now. Default
   * `'original'`.
   */
  readonly replayBody: 'original' | 'current'
  /** Whether replays carry `Idempotent-Replayed: true`. Default false. */
  readonly replayHeader: boolean
  /**
   * How long a creation runs.
   *
   * Until it ends, repeats of the request get IDEMPOTENCY_IN_PROGRESS. Default 0: only concurrent
   * repeats get that response.
   */
  readonly processingTime: number
  /**
   * How long a creation that died (fault `crash`) blocks its key: repeats of the request get
   * IDEMPOTENCY_IN_PROGRESS.
   *
   * Null: no limit. Default 0.
   */
  readonly orphanedMarkLifetime: number | null

  /**
   * Maximum number of rows in a page, or null for no maximum.
   *
   * A larger `limit` is reduced to this number. Default 100.
   */
  readonly maxLimit: number | null
  /** Whether lists ignore `offset`, so that every page is the first page. Default false. */
  readonly ignoreOffset: boolean
  /**
   * What happens to an invalid `limit` or `offset`.
   *
   * `'clamp'` (default): an integer is raised or lowered to the nearest valid value, and other text
   * is ignored. `'refuse'`: the request gets 400.
   */
  readonly invalidPaging: 'clamp' | 'refuse'
  /**
   * Sort order of the list of orders.
   *
   * `'random'` shuffles orders and services for each request. Default `'newest'`.
   */
  readonly ordering: 'newest' | 'oldest' | 'amount' | 'random'
  /** How long reads by id return 404 for a new order, and lists omit it. Default 0. */
  readonly readLag: number
}

const defaults: SandboxBehaviour = {
  priceIs: 'perUnit',
  stepFrom: 'minimum',
  fractionalQuantity: false,
  requiredFields: ['target'],
  unknownFields: 'ignore',
  sourceSystemFrom: 'metadata',
  errorShape: 'bare',
  listEnvelope: 'data',
  orderFields: ['serviceId', 'target', 'quantity', 'currency', 'metadata', 'createdAt'],
  stockState: { field: 'stockState', inStock: 'in_stock', outOfStock: 'out_of_stock' },
  statuses: [{ status: 'pending', after: 0 }],
  requestIdHeader: 'x-request-id',
  checks: ['auth', 'key', 'validation', 'service', 'balance'],
  keyScope: 'apiKey',
  keyLifetime: null,
  keyLifetimeFrom: 'remembered',
  keyFormat: 'any',
  payloadEquality: 'json',
  rememberedRefusals: [],
  refusedKeysChangePayload: true,
  rememberServerErrors: false,
  replayStatus: 201,
  replayBody: 'original',
  replayHeader: false,
  processingTime: 0,
  orphanedMarkLifetime: 0,
  maxLimit: 100,
  ignoreOffset: false,
  invalidPaging: 'clamp',
  ordering: 'newest',
  readLag: 0,
}

/** Name of a combination of switches. */
export type SandboxPreset =
  | 'default'
  | 'remembers-refusals'
  | 'balance-before-key'
  | 'strict-gateway'
  | 'minimal-answers'
  | 'rfc9457'
  | 'eventually-consistent'
  | 'forgetful'

/** The named combinations of switches. Each lists its differences from `default`. */
export const sandboxPresets: { readonly [Name in SandboxPreset]: Partial<SandboxBehaviour> } = {
  default: {},
  /** Remembers refusals and server errors under their keys, and marks replays. */
  'remembers-refusals': {
    rememberedRefusals: [400, 402, 404, 422],
    rememberServerErrors: true,
    replayHeader: true,
  },
  /** Checks the key last: if an order empties the wallet, a repeat of its request gets 402. */
  'balance-before-key': { checks: ['auth', 'validation', 'service', 'balance', 'key'] },
  /**
   * Rejects repeated payloads that are not byte-equal, keys that are not UUIDs, unknown fields,
   * orders without `externalOrderId` and invalid paging.
   *
   * Returns at most 20 rows in a page.
   */
  'strict-gateway': {
    errorShape: 'nested',
    listEnvelope: 'results',
    payloadEquality: 'bytes',
    keyFormat: 'uuid',
    unknownFields: 'refuse',
    requiredFields: ['target', 'metadata', 'externalOrderId'],
    invalidPaging: 'refuse',
    maxLimit: 20,
  },
  /** Responses have only the documented fields. */
  'minimal-answers': { orderFields: [], listEnvelope: 'array', requestIdHeader: null, errorShape: 'flat' },
  /** Returns errors as `application/problem+json`. */
  rfc9457: { errorShape: 'problem', listEnvelope: 'items', replayStatus: 200, replayHeader: true },
  /** Shows new orders two seconds late, and shuffles lists. */
  'eventually-consistent': {
    readLag: 2000,
    ordering: 'random',
    listEnvelope: 'named',
    replayBody: 'current',
  },
  /** Forgets a key after a minute. A creation that died blocks its key for half a minute. */
  forgetful: { keyLifetime: 60_000, orphanedMarkLifetime: 30_000 },
}

const duration = number({ min: 0, fraction: true })

const allChecks: Shape = (value, path) =>
  Array.isArray(value) && value.length === 5 && defaults.checks.every((name) => value.includes(name))
    ? null
    : `${path}: expected each of ${defaults.checks.join(', ')} exactly once`

const switches: { readonly [Name in keyof SandboxBehaviour]: Shape } = {
  priceIs: oneOf('perUnit', 'perOrder'),
  stepFrom: oneOf('minimum', 'zero'),
  fractionalQuantity: flag,
  requiredFields: listOf(oneOf('target', 'metadata', 'externalOrderId')),
  unknownFields: oneOf('ignore', 'refuse'),
  sourceSystemFrom: oneOf('metadata', 'body', 'apiKey'),
  errorShape: oneOf('bare', 'nested', 'errors', 'problem', 'flat'),
  listEnvelope: oneOf('array', 'data', 'items', 'named', 'results'),
  orderFields: listOf(
    oneOf('serviceId', 'target', 'quantity', 'currency', 'metadata', 'sourceSystem', 'createdAt'),
  ),
  stockState: record({ field: text(/./, 'a name'), inStock: text(), outOfStock: text() }),
  statuses: listOf(record({ status: text(), after: duration })),
  requestIdHeader: orNull(text(/^[\w-]+$/, 'a header name or null')),
  checks: allChecks,
  keyScope: oneOf('apiKey', 'customer'),
  keyLifetime: orNull(duration),
  keyLifetimeFrom: oneOf('remembered', 'firstUse', 'lastUse'),
  keyFormat: oneOf('any', 'uuid'),
  payloadEquality: oneOf('bytes', 'json', 'json-without-metadata'),
  rememberedRefusals: listOf(oneOf(400, 402, 404, 422)),
  refusedKeysChangePayload: flag,
  rememberServerErrors: flag,
  replayStatus: oneOf(200, 201),
  replayBody: oneOf('original', 'current'),
  replayHeader: flag,
  processingTime: duration,
  orphanedMarkLifetime: orNull(duration),
  maxLimit: orNull(number({ min: 1 })),
  ignoreOffset: flag,
  invalidPaging: oneOf('clamp', 'refuse'),
  ordering: oneOf('newest', 'oldest', 'amount', 'random'),
  readLag: duration,
}

export function isPreset(name: string): name is SandboxPreset {
  return Object.hasOwn(sandboxPresets, name)
}

export function withBehaviour(
  base: SandboxBehaviour,
  changes: SandboxPreset | Partial<SandboxBehaviour>,
): SandboxBehaviour {
  if (typeof changes === 'string') {
    if (!isPreset(changes))
      throw new TypeError(
        `unknown preset ${JSON.stringify(changes)}; known: ${Object.keys(sandboxPresets).join(', ')}`,
      )
    return { ...base, ...sandboxPresets[changes] }
  }
  assertShape<Partial<SandboxBehaviour>>(changes, record({}, switches), 'behaviour')
  return { ...base, ...changes }
}

export const defaultBehaviour: SandboxBehaviour = Object.freeze(defaults)
