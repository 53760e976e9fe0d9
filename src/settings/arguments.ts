import type {
  CreateManyOptions,
  CreateOptions,
  EchoedField,
  ListOptions,
  ListOrdersParams,
  ListParams,
  ReconcileParams,
  RecoverOptions,
  RequestOptions,
  Resolution,
  WaitForOptions,
} from '../call-options.ts'
import { bare, isObject } from '../defined.ts'
import { invalidArgument } from '../errors/classes.ts'
import type { CallSettings } from '../http/call.ts'
import { checkIdempotencyKey, checkReference } from '../identity/keys.ts'
import type { StandardSchemaV1 } from '../schemas/standard-schema.ts'
import { habitOf } from './habits.ts'
import {
  callable,
  duration,
  flag,
  headers,
  integer,
  oneOf,
  only,
  type Read,
  type Readers,
  type Refuse,
  readFields,
  text,
} from './readers.ts'

export const standardSchema: Read<StandardSchemaV1> = only((value) => {
  // Reads the field of any value, because a schema may also be a function, as in arktype.
  const standard = (value as Partial<StandardSchemaV1> | null)?.['~standard']
  return typeof standard?.validate === 'function'
}, 'must be a Standard Schema (zod, valibot, arktype, …)')

const CALL: Readers<RequestOptions> = {
  signal: only(
    (value) =>
      isObject(value) &&
      typeof value['aborted'] === 'boolean' &&
      typeof value['addEventListener'] === 'function' &&
      typeof value['removeEventListener'] === 'function',
    'must be an AbortSignal',
  ),
  timeout: duration,
  totalTimeout: duration,
  maxRetries: integer(0, 100),
  headers,
}

function checkedBy(problemOf: (value: unknown) => string | undefined): Read<string> {
  return (value, refuse) => {
    const problem = problemOf(value)
    return problem === undefined ? String(value) : refuse(problem)
  }
}

export const idempotencyKey: Read<string> = checkedBy(checkIdempotencyKey)

export const CREATE: Readers<CreateOptions> = { ...CALL, allowDuplicate: flag, idempotencyKey }

const since: Read<number> = only(
  (value) => Number.isFinite(value),
  'must be a time in milliseconds since 1970',
)

interface OrderNames {
  readonly externalOrderId: string
  readonly idempotencyKey: string
}

/** An object with exactly one field of `T`. */
type OneOf<T> = { [Name in keyof T]: Pick<T, Name> }[keyof T]

const NAME: Readers<OrderNames> = {
  // As `create()` checks it: an order adopted under a reference that only looks the same is bought again.
  externalOrderId: checkedBy(checkReference),
  idempotencyKey,
}

const LIST: Readers<ListParams> = {
  limit: integer(1),
  offset: integer(0),
}

export const readArguments: {
  readonly call: ReadArgument<RequestOptions>
  readonly listCall: ReadArgument<ListOptions>
  readonly create: ReadArgument<CreateOptions>
  readonly createMany: ReadArgument<CreateManyOptions>
  readonly waitFor: ReadArgument<WaitForOptions<never>>
  readonly recover: ReadArgument<RecoverOptions>
  readonly list: ReadArgument<ListParams>
  readonly listOrders: ReadArgument<ListOrdersParams>
  readonly reconcile: ReadArgument<ReconcileParams>
  readonly name: (value: unknown) => OneOf<OrderNames>
  readonly query: (value: unknown) => OneOf<OrderNames & { readonly since: number }>
  readonly resolution: (value: unknown) => Resolution
} = {
  call: argument(CALL),
  listCall: argument({ ...CALL, prefetch: integer(0, 16) }),
  create: argument(CREATE),
  createMany: argument<CreateManyOptions>({ ...CALL, concurrency: integer(1), onProgress: callable() }),
  waitFor: argument<WaitForOptions<never>>({ ...CALL, until: callable() }),
  recover: argument({ ...CALL, concurrency: integer(1), takeOver: flag }),
  list: argument(LIST),
  listOrders: argument({ ...LIST, sourceSystem: text }),
  name: exactlyOne(argument(NAME, "{ externalOrderId: 'order-1' }"), 'externalOrderId or idempotencyKey'),
  query: exactlyOne(
    argument({ ...NAME, since }, "{ externalOrderId: 'order-1' } or { since: 0 }"),
    'externalOrderId, idempotencyKey or since',
  ),
  resolution: readResolution,
  reconcile: argument<ReconcileParams>({
    since,
    sourceSystem: text,
  }),
}

const FIELDS: readonly unknown[] = ['externalOrderId', 'serviceId', 'quantity', 'target', 'sourceSystem']

interface ResolutionFields {
  readonly as: 'created' | 'abandoned'
  readonly orderId: string
  readonly despite: readonly EchoedField[]
}

const RESOLUTION: Readers<ResolutionFields> = {
  as: oneOf('created', 'abandoned'),
  orderId: text,
  despite: only(
    (value) => Array.isArray(value) && value.every((field) => FIELDS.includes(field)),
    `must be an array of the fields that the error named: ${FIELDS.join(', ')}`,
  ),
}

/** Rejects contradictory fields, because a misread decision could cause a second charge. */
function readResolution(value: unknown): Resolution {
  const { as, orderId, despite = [] } = argument(RESOLUTION)(value)
  if (as === undefined) return refuseArgument("must be 'created' or 'abandoned'", 'as')
  if (as === 'created' && orderId !== undefined) return { as, orderId, despite }
  if (as === 'created' || orderId !== undefined)
    return refuseArgument("is required with as: 'created', and not allowed otherwise", 'orderId')
  if (despite.length > 0) return refuseArgument("is allowed only with as: 'created'", 'despite')
  return { as }
}

/** Two names could mean two orders, and acting on the wrong order could cost money. */
function exactlyOne<T extends object>(read: ReadArgument<T>, names: string): (value: unknown) => OneOf<T> {
  return (value) => {
    const named = read(value)
    if (!hasOne(named)) return refuseArgument(`must have exactly one field: ${names}`)
    return named
  }
}

function hasOne<T extends object>(named: Partial<T>): named is Partial<T> & OneOf<T> {
  return Object.keys(named).length === 1
}

/** `undefined` counts as an empty object. */
export type ReadArgument<T> = (value: unknown) => Partial<T>

export function argument<T extends object>(readers: Readers<T>, example?: string): ReadArgument<T> {
  const suffix = example === undefined ? '' : ` such as ${example}`
  const refuse: Refuse = (problem, inside) =>
    refuseArgument(inside === undefined ? problem + suffix : problem, inside)
  return (value) => (value === undefined ? NO_OPTIONS : readFields(value, readers, refuse, habitOf))
}

const NO_OPTIONS: Readonly<Record<never, never>> = Object.freeze(Object.create(null))

export function refuseArgument(problem: string, path = ''): never {
  throw invalidArgument(path, problem)
}

export function callSettings(defaults: CallSettings, options: Partial<RequestOptions>): CallSettings {
  if (options === NO_OPTIONS) return defaults
  // Rest syntax in a caller gives `options` a prototype. Without `bare`, a polluted
  // `Object.prototype` would add settings.
  const { signal, timeout, totalTimeout, maxRetries, headers } = bare(options)
  return {
    signal,
    timeout: timeout ?? defaults.timeout,
    totalTimeout: totalTimeout ?? defaults.totalTimeout,
    maxRetries: maxRetries ?? defaults.maxRetries,
    headers: headers ?? defaults.headers,
  }
}
