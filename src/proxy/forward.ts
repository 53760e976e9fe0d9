/** Decides about one request, adds the API key, sends it once, and passes on the response. */
import { isObject, takeRejection } from '../defined.ts'
import { ConfigurationError } from '../errors/classes.ts'
import { LIKE_A_KEY, REQUEST_ID_HEADERS, redact } from '../http/redact.ts'
import { API_KEY_TAG, apiKeyTag, IF_API_KEY_TAG, proxiedTag } from '../identity/keys.ts'
import { credentialsOf } from '../settings/credentials.ts'
import { uuidV5 } from '../uuid-v5.ts'
import { Limit } from './limit.ts'
import type { Settings } from './options.ts'
import { type Target, targetOf } from './routes.ts'

/** A request, whichever server received it. */
export interface Received<Incoming> {
  /** Given to the functions in the options. */
  readonly request: Incoming
  readonly method: string
  /** Only its path and query count. Undefined if they are not valid. */
  readonly url: URL | undefined
  header(name: string): string | null
  /** Aborts when the client leaves before it has the response. */
  readonly left: AbortSignal
  /** Reads at most `limit` bytes into memory. */
  readBody(limit: number): Promise<Body>
}

/** The bytes, or why there are none. */
export type Body = Uint8Array<ArrayBuffer> | BodyProblem
type BodyProblem = 'too_large' | 'cut_off' | 'not_json'

const BODY_PROBLEMS: Readonly<Record<BodyProblem, Parameters<typeof refusal>>> = {
  too_large: [413, 'PAYLOAD_TOO_LARGE', 'The request body is larger than the proxy allows.'],
  cut_off: [400, 'BAD_REQUEST', 'The request body ended early.'],
  not_json: [400, 'BAD_REQUEST', 'The request body is not valid JSON.'],
}

/**
 * Only what the client reads: `Age` shows a list that comes from a cache. The client reads no
 * `Content-Type`, and HTML from the service must not run on your site's origin. No `Content-Length` and
 * no `Content-Encoding`, because the proxy returns the body decoded.
 */
const RETURNED_HEADERS = ['age', 'retry-after', 'idempotent-replayed', ...REQUEST_ID_HEADERS]

/**
 * Statuses after which browsers silently resend a POST: Chromium after both, Firefox and WebKit
 * after 421. Neither status proves that the order was not created
 * (docs/decisions/a-browser-may-repeat.md).
 */
const RESENT_BY_BROWSERS: readonly number[] = [408, 421]

const STATUSES_WITHOUT_BODY: readonly number[] = [204, 205]

const SALT = 'customer-ordering-sdk/proxy'

/** A request that `authorize` accepted, with everything that is sent to the service. */
interface Ready {
  readonly key: string
  readonly headers: Headers
  readonly body: Uint8Array<ArrayBuffer> | undefined
  /** Adds the tag of the API key to a response. */
  tagged(response: Response): Response
}

const TOO_LATE = [
  425,
  'TOO_LATE',
  'The time limit of the request was over, or its client had left, before the proxy could send it.',
] as const

export async function forward<Incoming>(
  settings: Settings<Incoming>,
  received: Received<Incoming>,
): Promise<Response> {
  const { mountPath, maxBodyBytes, timeout } = settings
  const { method, url, left } = received
  const target = url && targetOf(method, url, mountPath)
  if (target === undefined) {
    const below = `The proxy forwards only the calls of the API, below ${mountPath}/v1 (option mountPath).`
    return refusal(404, 'NOT_FOUND', below)
  }
  if ('wrong' in target)
    return refusal(
      400,
      'BAD_REQUEST',
      `The query has a parameter that is unknown or repeated: ${target.wrong}.`,
    )
  if (Number(received.header('content-length')) > maxBodyBytes) return refusal(...BODY_PROBLEMS.too_large)
  const limit = new Limit(timeout, left)
  try {
    const ready = await limit.race(prepare(settings, received, target))
    if (ready === undefined) return refusal(...TOO_LATE)
    if (ready instanceof Response) return ready
    if (limit.isOver()) return ready.tagged(refusal(...TOO_LATE))
    return ready.tagged(await exchange(settings, received, target, ready, limit.signal))
  } finally {
    limit.release()
  }
}

/** Returns the response instead if the request must not be sent. */
async function prepare<Incoming>(
  settings: Settings<Incoming>,
  received: Received<Incoming>,
  { route }: Target,
): Promise<Ready | Response> {
  const { request } = received
  const verdict = await settings.authorize(request, route)
  if (verdict instanceof Response)
    return route.operation === 'createOrder' ? await recognisable(verdict) : verdict
  if (verdict !== true) return refusal(401, 'UNAUTHENTICATED', 'Sign in first.')

  const source = settings.apiKey
  const key = await credentialsOf(typeof source === 'string' ? source : () => source(request)).get()
  if (key === null)
    throw new ConfigurationError('The proxy has no API key. Nothing was sent. Set the option apiKey.')
  const tag = apiKeyTag(uuidV5, SALT, key)
  const tagged = (response: Response): Response => {
    response.headers.set(API_KEY_TAG, tag)
    return response
  }
  const headers = new Headers({ authorization: `Bearer ${key}` })
  const accept = received.header('accept')
  if (accept !== null) headers.set('accept', accept)
  if (route.operation !== 'createOrder') return { key, headers, body: undefined, tagged }
  const idempotencyKey = received.header('idempotency-key')
  // Requiring this header also stops forms on other sites: a browser sends the header to
  // another origin only after a preflight.
  if (!idempotencyKey) return refusal(400, 'BAD_REQUEST', 'The header Idempotency-Key is missing.')
  if (!isJson(received))
    return refusal(415, 'UNSUPPORTED_MEDIA_TYPE', 'The header Content-Type must be application/json.')
  headers.set('idempotency-key', idempotencyKey)
  headers.set('content-type', 'application/json')
  const expected = received.header(IF_API_KEY_TAG)
  // After a 425, the client sends the order again under the new API key, unless an earlier
  // request may have created the order.
  if (expected !== null && expected !== proxiedTag(uuidV5, idempotencyKey, tag))
    return tagged(refusal(425, 'API_KEY_CHANGED', 'The API key of the proxy has changed.'))
  const body = await received.readBody(settings.maxBodyBytes)
  return typeof body === 'string' ? tagged(refusal(...BODY_PROBLEMS[body])) : { key, headers, body, tagged }
}

/** Sends the request once, and returns the response for the page. */
async function exchange<Incoming>(
  { service, onLost, ...settings }: Settings<Incoming>,
  { method, left }: Received<Incoming>,
  { path, query }: Target,
  { key, headers, body }: Ready,
  signal: AbortSignal,
): Promise<Response> {
  const lose = (status: 502 | 504, reason: string): Response => {
    // The service is not to blame if the client stopped waiting.
    if (!left.aborted) takeRejection(onLost?.({ method, path, reason: redact(reason, [key]) }), () => {})
    const doubt = method === 'GET' ? '' : ' An order may have been created and charged.'
    return refusal(status, 'SERVICE_LOST', `The service returned no usable response.${doubt}`)
  }
  const send = settings.fetch ?? fetch
  let response: Response
  try {
    const init = {
      method,
      headers,
      redirect: 'manual',
      signal,
      ...(body && { body }),
      ...noStore(),
    } as const
    response = await send(service + path + query, init)
  } catch (error) {
    return lose(signal.aborted ? 504 : 502, reasonOf(error))
  }
  const { status } = response
  if (RESENT_BY_BROWSERS.includes(status)) return lose(504, `The service responded with ${status}.`)
  if (status < 200 || (status >= 300 && status < 400) || status > 599)
    return lose(502, `The service responded with ${status || 'a redirect'}.`)
  let text = ''
  try {
    text = await response.text()
  } catch (error) {
    // Forward a success without its body: the status proves the charge, and the client sends the
    // same key again to read the order.
    if (method === 'GET' || status >= 300) return lose(502, reasonOf(error))
  }
  const returned = new Headers({ 'cache-control': 'no-store', 'content-type': 'application/json' })
  for (const name of RETURNED_HEADERS) {
    const value = response.headers.get(name)
    if (value !== null) returned.set(name, redact(value, [key]))
  }
  const shortest = status < 400 ? LIKE_A_KEY : 0
  const content = STATUSES_WITHOUT_BODY.includes(status) ? null : redact(text, [key], shortest)
  return new Response(content, { status, headers: returned })
}

/** Statuses by which the page's client knows that its order was not processed. */
const UNPROCESSED = [401, 403, 429]

/**
 * Gives a refusal by `authorize` a status and a code that mean a refusal to the page's client.
 * Otherwise, it must assume that a gateway sent them after the order was created, and reports
 * `'unknown'`.
 */
async function recognisable(verdict: Response): Promise<Response> {
  const { status } = verdict
  if (status < 400 || status > 499) return verdict
  const headers = new Headers(verdict.headers)
  for (const name of [...headers.keys()]) if (name.startsWith('content-')) headers.delete(name)
  headers.set('cache-control', 'no-store')
  const fields = fieldsOf(await verdict.text())
  const { code } = fields
  const isCode = typeof code === 'string' && /^(?!IDEMPOTENCY_)[\w.-]{1,99}$/.test(code)
  return Response.json(
    { ...fields, code: isCode ? code : 'REFUSED' },
    { status: UNPROCESSED.includes(status) ? status : 403, headers },
  )
}

/** The fields of a JSON object. Any other text becomes a message. */
function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const json: unknown = JSON.parse(text)
    if (isObject(json) && !Array.isArray(json)) return json
  } catch {
    // The text is a message.
  }
  return { message: `${text || 'The proxy refused the order.'} Nothing was sent.` }
}

/** The service cannot decode a compressed body, because the proxy does not forward its encoding. */
function isJson(received: Received<unknown>): boolean {
  const [type = ''] = (received.header('content-type') ?? '').split(';')
  const encoding = received.header('content-encoding') ?? 'identity'
  return type.trim().toLowerCase() === 'application/json' && encoding.toLowerCase() === 'identity'
}

function refusal(status: number, code: string, message: string): Response {
  const text = status < 500 ? `${message} Nothing was sent.` : message
  return Response.json({ code, message: text }, { status, headers: { 'cache-control': 'no-store' } })
}

function noStore(): { readonly cache?: 'no-store' } {
  return 'cache' in Request.prototype ? { cache: 'no-store' } : {}
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message
}
