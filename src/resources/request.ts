import type { CallSettings, Connection } from '../http/call.ts'
import { pathProblem, queryString } from '../http/path.ts'
import { MAX_PAGE_BYTES, read } from '../http/request.ts'
import { CanonicalJsonError, canonicalJson } from '../identity/canonical.ts'
import { attachInfo } from '../response-info.ts'
import { check } from '../schemas/check.ts'
import type { StandardSchemaV1 } from '../schemas/standard-schema.ts'
import { argument, idempotencyKey, refuseArgument, standardSchema } from '../settings/arguments.ts'
import { oneOf, plainObject, type Read, type Readers } from '../settings/readers.ts'

/** HTTP methods of `client.request`. */
export type RequestMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A request to an endpoint that this package has no method for. */
export interface RawRequest<Schema extends StandardSchemaV1 | undefined = StandardSchemaV1 | undefined> {
  /** HTTP method. */
  readonly method: RequestMethod
  /**
   * Path below `baseUrl`, percent-encoded and without a query, for example
   * `/v1/orders/ord_1/refunds`.
   */
  readonly path: string
  /** Query parameters. Undefined values are omitted. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  /** Request body, sent as JSON. Not allowed with GET and HEAD. */
  readonly body?: unknown
  /** Checks the response and types the result. Without a schema, the result is `unknown`. */
  readonly schema?: Schema
  /** Value of the Idempotency-Key header. With a key, the client retries any method. */
  readonly idempotencyKey?: string
}

/** The result of `client.request`: the schema's output, or the parsed JSON without a schema. */
export type RawResult<Schema extends StandardSchemaV1 | undefined> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Schema>
  : unknown

const query: Read<NonNullable<RawRequest['query']>> = (value, refuse) => {
  const read: Record<string, string | number | boolean> = Object.create(null)
  for (const [name, field] of Object.entries(plainObject(value, refuse))) {
    if (field === undefined) continue
    const isNumber = typeof field === 'number' && Number.isFinite(field)
    if (!isNumber && typeof field !== 'string' && typeof field !== 'boolean')
      return refuse('must be a string, a finite number, true or false', name)
    read[name] = field
  }
  return read
}

const path: Read<string> = (value, refuse) => {
  if (typeof value !== 'string' || !/^\/[!-~]*$/.test(value)) {
    return refuse('must be a percent-encoded string that begins with "/"')
  }
  if (/[?#]/.test(value)) refuse('must not have a query or fragment: set the field query')
  try {
    decodeURIComponent(value)
  } catch {
    refuse('must be percent-encoded')
  }
  const problem = value === '/' ? undefined : pathProblem(value.replace(/^\/|\/$/g, ''))
  if (problem !== undefined) refuse(problem)
  return value
}

const REQUEST: Readers<RawRequest<StandardSchemaV1>> = {
  method: oneOf('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'),
  path,
  query,
  body: (value) => value,
  schema: standardSchema,
  idempotencyKey,
}

const readRequest = argument(REQUEST)

export async function sendRequest(
  connection: Connection,
  request: unknown,
  settings: CallSettings,
): Promise<unknown> {
  const { method, path, query = {}, body, schema, idempotencyKey: key } = readRequest(request)
  if (method === undefined) return refuseArgument('is missing', 'method')
  if (path === undefined) return refuseArgument('is missing', 'path')
  const reads = method === 'GET' || method === 'HEAD'
  if (reads && body !== undefined) refuseArgument(`is not allowed with ${method}`, 'body')
  const { value, info } = await read(connection, {
    endpoint: { operation: 'request', method },
    path,
    query: queryString(query),
    body: body === undefined ? undefined : jsonOf(body),
    idempotencyKey: key,
    settings,
    maxBytes: MAX_PAGE_BYTES,
    repeatable: (method !== 'POST' && method !== 'PATCH') || key !== undefined,
    charged: reads ? undefined : 'unknown',
    names: { idempotencyKey: key },
    parse: (answer) => (schema === undefined ? { value: answer } : check(schema, answer)),
  })
  attachInfo(value, info)
  return value
}

function jsonOf(body: unknown): string {
  try {
    return canonicalJson(body)
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error
    return refuseArgument(error.problem, error.path === '' ? 'body' : `body.${error.path}`)
  }
}
