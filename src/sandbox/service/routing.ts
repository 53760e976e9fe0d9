import type { SandboxOperation, SandboxRequestView } from './faults.ts'
import { isJsonObject, type JsonReading, readJson } from './json.ts'
import type { SandboxMessage, SandboxRequest } from './reply.ts'
import type { Refusal } from './wire.ts'
import { findApiKey, type World } from './world.ts'

/** A request, read and routed. */
export interface Call extends Routed {
  readonly method: string
  readonly authorization: string | null
  readonly idempotencyKey: string | null
  readonly contentType: string | null
  readonly body: string
  readonly reading: JsonReading
}

interface Routed {
  readonly operation: SandboxOperation | null
  readonly id: string
  /** The requested path, without the path of the base URL. */
  readonly path: string
  readonly query: URLSearchParams
  readonly refusal: Refusal | null
  /** Value of the `Allow` header of a 405. */
  readonly allow: string | null
}

export type LogEntry = { -readonly [Field in keyof SandboxRequest]: SandboxRequest[Field] }

const paths: readonly {
  readonly pattern: RegExp
  readonly methods: Readonly<Record<string, SandboxOperation>>
}[] = [
  { pattern: /^\/v1\/orders$/, methods: { GET: 'listOrders', POST: 'createOrder' } },
  { pattern: /^\/v1\/orders\/([^/]+)$/, methods: { GET: 'retrieveOrder' } },
  { pattern: /^\/v1\/services$/, methods: { GET: 'listServices' } },
  { pattern: /^\/v1\/services\/([^/]+)$/, methods: { GET: 'retrieveService' } },
  { pattern: /^\/v1\/balance$/, methods: { GET: 'retrieveBalance' } },
]

export function callOf(message: SandboxMessage, baseUrl: URL): Call {
  const { method, headers, body } = message
  return {
    ...route(message, baseUrl),
    method,
    authorization: headers['authorization'] ?? null,
    idempotencyKey: headers['idempotency-key'] ?? null,
    contentType: headers['content-type'] ?? null,
    body,
    reading: readJson(body),
  }
}

function route(message: SandboxMessage, baseUrl: URL): Routed {
  const nowhere = { operation: null, id: '', allow: null }
  const target = targetOf(message.url, baseUrl)
  if (target === null) {
    const refusal = { status: 400, code: 'INVALID_REQUEST', message: 'The request target is not a URL.' }
    return { ...nowhere, path: message.url, query: new URLSearchParams(), refusal }
  }
  const { pathname, query } = target
  const prefix = baseUrl.pathname.replace(/\/+$/, '')
  const path = pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname
  const found = { ...nowhere, path, query }
  for (const { pattern, methods } of paths) {
    const match = pattern.exec(path)
    const id = match === null ? null : decode(match[1] ?? '')
    if (id === null) continue
    const operation = Object.hasOwn(methods, message.method) ? methods[message.method] : undefined
    if (operation !== undefined) return { ...found, id, operation, refusal: null }
    const refusal = {
      status: 405,
      code: 'METHOD_NOT_ALLOWED',
      message: 'This path does not support this method.',
    }
    return { ...found, id, refusal, allow: Object.keys(methods).join(', ') }
  }
  return { ...found, refusal: { status: 404, code: 'NOT_FOUND', message: 'The API has no such path.' } }
}

export function viewOf(call: Call, world: World): SandboxRequestView {
  const { operation, method, path, query, idempotencyKey } = call
  const body = call.reading.ok ? call.reading.value : undefined
  const metadata = isJsonObject(body) ? body['metadata'] : undefined
  const reference = isJsonObject(metadata) ? metadata['externalOrderId'] : undefined
  return {
    operation,
    method,
    path,
    query,
    idempotencyKey,
    body,
    apiKeyId: findApiKey(world.tables, call.authorization)?.id ?? null,
    externalOrderId: typeof reference === 'string' ? reference : null,
  }
}

export function logEntry(
  number: number,
  message: SandboxMessage,
  { operation, method, path, query, idempotencyKey, apiKeyId }: SandboxRequestView,
  at: number,
): LogEntry {
  const { authorization: _, ...headers } = message.headers
  const text = query.toString()
  return {
    number,
    operation,
    method,
    path: text === '' ? path : `${path}?${text}`,
    idempotencyKey,
    apiKeyId,
    headers,
    at,
    body: message.body,
    status: 'running',
    response: null,
    delivery: 'complete',
    charged: false,
    faults: [],
  }
}

interface Target {
  readonly pathname: string
  readonly query: URLSearchParams
}

function targetOf(target: string, baseUrl: URL): Target | null {
  const path = target.startsWith(`${baseUrl.origin}/`) ? target.slice(baseUrl.origin.length) : target
  // For a plain path, skip the URL parser, which takes longer than the rest of the routing.
  if (/^(?:\/[\w-]+)+$/.test(path)) return { pathname: path, query: new URLSearchParams() }
  try {
    const { pathname, searchParams } = new URL(target, baseUrl)
    return { pathname, query: searchParams }
  } catch {
    return null
  }
}

function decode(segment: string): string | null {
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}
