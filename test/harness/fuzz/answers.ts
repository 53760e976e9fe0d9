/**
 * Generates faulty responses: valid bodies of every documented response with changed structure or
 * text, wrong headers, wrong statuses, and deliveries that break or never end. fast-check draws
 * them, so that a failing one is shrunk.
 */
import fc from 'fast-check'
import { createRandom } from '../../../src/sandbox/service/random.ts'
import { used } from '../../support/heap.ts'
import { spellingsIn, wholeSpellingsIn } from '../../support/leaks.ts'
import type { VirtualTime } from '../../support/virtual-time.ts'

/** Placeholder for the Authorization header that a service echoes. */
const ECHO = '@@authorization@@'

const order = {
  id: 'ord_1',
  status: 'pending',
  amount: 2500,
  currency: 'EUR',
  metadata: { externalOrderId: 'r-1' },
}
const other = { id: 'ord_2', status: 'delivered', amount: 100, serviceId: 'svc_1', quantity: 1 }
const service = {
  productId: 'svc_1',
  amount: 250,
  currency: 'EUR',
  minQuantity: 1,
  maxQuantity: 1000,
  stepQuantity: 1,
  stock: 'in_stock',
}
const CODES = [
  ...['IDEMPOTENCY_CONFLICT', 'IDEMPOTENCY_IN_PROGRESS', 'INSUFFICIENT_FUNDS'],
  ...['https://errors.example.com/IDEMPOTENCY_IN_PROGRESS', 'not found', '', ECHO],
]

const TEMPLATES: Readonly<Record<string, unknown>> = {
  order,
  service,
  balance: { amount: 100_000, currency: 'EUR', updatedAt: '2026-01-01T00:00:00Z' },
  array: [order, other],
  orders: { orders: [order, other], total: 2 },
  items: { items: [order], hasMore: true, pagination: { offset: 0, limit: 50, total: 1000 } },
  services: { data: [service, { ...service, productId: 'svc_2' }], meta: { total: 2, has_more: false } },
  nested: { data: { orders: [order] } },
  twoArrays: { items: [order], services: [service] },
  empty: { items: [], total: 0 },
  nothing: null,
  object: {},
  text: 'ok',
  echoedOrder: { ...order, authorization: ECHO },
  ...Object.fromEntries(
    CODES.flatMap((code, index) => [
      [`error ${index}`, { code, message: 'It did not work.' }],
      [`nested error ${index}`, { error: { code, message: 'It did not work.', details: [ECHO] } }],
      [`first of errors ${index}`, { errors: [{ code, detail: 'It did not work.' }] }],
      [
        `problem ${index}`,
        {
          type: `https://errors.example.com/${code}`,
          title: 'It did not work.',
          status: 409,
          instance: '/v1/orders',
        },
      ],
      [`words ${index}`, { statusCode: 422, error: 'Unprocessable', reason: code }],
    ]),
  ),
  bothCodes: { code: 'IDEMPOTENCY_CONFLICT', previous: 'IDEMPOTENCY_IN_PROGRESS' },
}
const TEMPLATE_NAMES = Object.keys(TEMPLATES)

/** The resource that a call reads. */
export type TemplateName = 'order' | 'orders' | 'service' | 'services' | 'balance'

const parsed = (text: string): unknown => JSON.parse(text) as unknown

/** Replacement values. Numbers that JavaScript cannot write are inserted into the text later. */
const VALUES: readonly unknown[] = [
  ...[null, true, false, '', ' ', 0, -1, 1.5, 1e21, Number.MAX_SAFE_INTEGER],
  ...['@@9007199254740993@@', '@@1e400@@', '@@-0@@', '@@-1e400@@', '@@NaN@@', '@@0x10@@', '@@1E2@@'],
  ...['NaN', 'Infinity', '100', '1e3', [], {}, [null], [[]], { length: 3 }],
  parsed('{"__proto__":{"polluted":true,"id":"ord_p","amount":1}}'),
  parsed('{"constructor":{"prototype":{"polluted":true}}}'),
  parsed('{"toString":null,"valueOf":1,"toJSON":"x","then":"y"}'),
  parsed('{"then":null,"hasOwnProperty":1}'),
  nest(60),
  'x'.repeat(3000),
  '\0\u202e\ud800\udfff\ufeff😀\u2028',
  ...['ord_1', '../../balance', '%2e%2e%2f', 'a\r\nx-evil: 1', ECHO],
  ...[[order, order], order],
]

function nest(depth: number): unknown {
  let value: unknown = 'deep'
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { in: value }
  return value
}

type Fields = Record<string, unknown>

const isHolder = (value: unknown): value is Fields => typeof value === 'object' && value !== null

/** Changes of a value at a place. */
const MUTATIONS: readonly ((fields: Fields, key: string, value: unknown) => void)[] = [
  function replace(fields, key, value) {
    fields[key] = value
  },
  function remove(fields, key) {
    if (Array.isArray(fields)) fields.splice(Number(key), 1)
    else if (key === 'root') fields[key] = null
    else delete fields[key]
  },
  function add(fields, key, value) {
    const before = fields[key]
    const holder = isHolder(before) ? before : fields
    holder['extra'] = value
  },
  function wrap(fields, key) {
    fields[key] = { data: fields[key] }
  },
  function list(fields, key, value) {
    fields[key] = [fields[key], value]
  },
  function rename(fields, key) {
    fields[`${key}_`] = fields[key]
    if (key !== 'root') delete fields[key]
  },
  function proto(fields, key, value) {
    const attributes = { enumerable: true, configurable: true, writable: true }
    if (isHolder(fields[key])) Object.defineProperty(fields[key], '__proto__', { value, ...attributes })
  },
]

const placeIn = (text: string, at: number): number => Math.floor((text.length * at) / 1001)

/** Changes of a text. One that returns bytes changes what is sent, and not the text. */
const TEXT_CHANGES = {
  truncate: (text, at) => text.slice(0, placeIn(text, at)),
  'byte order mark': (text) => `\ufeff${text}`,
  prefix: (text, at) => `${[")]}',\n", 'callback(', '<!-- -->', '\0'][at % 4]}${text}`,
  suffix: (text, at) => `${text}${[')', '\0\0', '}', ' // end', '\n{}'][at % 5]}`,
  'invalid UTF-8': (text, at) =>
    Buffer.concat([
      Buffer.from(text.slice(0, placeIn(text, at))),
      Buffer.from([0xc3, 0x28, 0xff]),
      Buffer.from(text.slice(placeIn(text, at))),
    ]),
  'random bytes': (_, at) => {
    const random = createRandom(at)
    return Buffer.from(Array.from({ length: at % 200 }, () => Math.floor(random.next() * 256)))
  },
  twice: (text) => text + text,
  quoted: (text) => JSON.stringify(text),
  'duplicate keys': (text) =>
    text.replace('{', '{"id":"ord_dup","amount":1,"code":"IDEMPOTENCY_CONFLICT","amount":"2","id":null,'),
  'UTF-16': (text) => Buffer.from(text, 'utf16le'),
  nothing: () => '',
  'white space': (text) => `\n\t ${text} \r\n`,
  'deep arrays': (_, at) => `${'['.repeat(20 * at)}${']'.repeat(20 * at)}`,
  'deep objects': (_, at) => `${'{"error":'.repeat(10 * at)}"IDEMPOTENCY_CONFLICT"${'}'.repeat(10 * at)}`,
  HTML: (_text, _at, echo) => `<!doctype html><title>502</title><pre>${echo}</pre>`,
} satisfies Record<string, (text: string, at: number, echo: string) => string | Buffer>
type TextChange = keyof typeof TEXT_CHANGES
const TEXT_CHANGE_NAMES = Object.keys(TEXT_CHANGES) as TextChange[]

const DELIVERIES = [
  ...(['whole', 'chunks', 'breaks', 'stops', 'drips', 'text only', 'text that breaks', 'no body'] as const),
  ...(['texts for bytes', 'reader that throws', 'refused', 'silent', 'endless'] as const),
] as const

/** One response as plain data. */
export interface AnswerPlan {
  readonly status: number
  /** True to use the template of the called endpoint, whatever `template` is. */
  readonly fitting: boolean
  readonly template: number
  readonly mutations: readonly { readonly at: number; readonly how: number; readonly value: number }[]
  readonly changes: readonly { readonly how: TextChange; readonly at: number }[]
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly delivery: (typeof DELIVERIES)[number]
  /** The encodings in which a service echoes the Authorization header. */
  readonly echo: number
}

const STATUSES = [400, 401, 402, 403, 404, 408, 409, 422, 425, 429, 500, 502, 503] as const
const HEADERS: readonly string[] = `
  content-type content-length content-encoding retry-after x-request-id request-id location
  idempotent-replayed set-cookie www-authenticate x-echo
`
  .trim()
  .split(/\s+/)
const HEADER_VALUES: readonly string[] = [
  ...['application/json', 'application/problem+json; charset=utf-16', 'text/html'],
  'application/json; charset=nonsense',
  ...['0', '1', '5', '-1', '1.5', '1e400', '99999999999999999999', 'NaN'],
  ...['Wed, 21 Oct 2099 07:28:00 GMT', 'Wed, 21 Oct 1999 07:28:00 GMT', 'soon', '2026-01-01', ''],
  ...['gzip', 'br, gzip, deflate', 'true', 'false'],
  ...[`https://elsewhere.example/?key=${ECHO}`, ECHO, `Bearer realm="${ECHO}"`],
  ...['x'.repeat(2000), '\xff\x80'],
]

const ECHOES: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.replace('Bearer ', ''),
  (text) => Buffer.from(text).toString('base64'),
  (text) => Buffer.from(`a${text}`).toString('base64'),
  (text) => Buffer.from(text.replace('Bearer', 'key')).toString('base64url'),
  encodeURIComponent,
  (text) => Buffer.from(text).toString('hex'),
  (text) => JSON.stringify(text).slice(1, -1),
]

/** Draws a response. Most start valid and get one or two faults. Some are noise. */
export const answerPlan: fc.Arbitrary<AnswerPlan> = fc.record({
  status: fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(200, 201) },
    { weight: 8, arbitrary: fc.constantFrom(...STATUSES) },
    { weight: 2, arbitrary: fc.integer({ min: 100, max: 599 }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(0, 99, 600, 999, -1, 301, 302, 303, 304, 307, 308, 204, 205, 101, 103),
    },
  ),
  fitting: fc.boolean(),
  template: fc.nat(TEMPLATE_NAMES.length - 1),
  mutations: fc.array(
    fc.record({ at: fc.nat(40), how: fc.nat(MUTATIONS.length - 1), value: fc.nat(VALUES.length - 1) }),
    { maxLength: 3 },
  ),
  changes: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(fc.record({ how: fc.constantFrom(...TEXT_CHANGE_NAMES), at: fc.nat(1000) }), {
        minLength: 1,
        maxLength: 2,
      }),
    },
  ),
  headers: fc.array(fc.tuple(fc.constantFrom(...HEADERS), fc.constantFrom(...HEADER_VALUES)), {
    maxLength: 3,
  }),
  delivery: fc.oneof(
    { weight: 30, arbitrary: fc.constant<'whole'>('whole') },
    { weight: 10, arbitrary: fc.constantFrom(...DELIVERIES.slice(1, -1)) },
    { weight: 1, arbitrary: fc.constant<'drips'>('drips') },
  ),
  echo: fc.nat(ECHOES.length - 1),
})

/** Rarer than a draw can be: an endless stream costs as much as thousands of other responses. */
export const endlessPlan: AnswerPlan = {
  status: 200,
  fitting: false,
  template: 0,
  mutations: [],
  changes: [],
  headers: [],
  delivery: 'endless',
  echo: 0,
}

/** A response as sent, with the sender's knowledge of it. */
export interface Answer {
  readonly plan: AnswerPlan
  readonly status: number
  /** The completely delivered text. Absent if it was not completely delivered. */
  readonly text?: string
  readonly failed: boolean
  /** True if the response body contains the API key. */
  readonly echoes: boolean
  /** True if it contains only a part of the key, which cannot be told from other text. */
  readonly broken: boolean
  /** Bytes that the reader has read so far. */
  taken(): number
  /** Peak memory of this thread while an endless body was read, in bytes. 0 for other responses. */
  peak(): number
}

export const PIECE: number = 64 * 1024
const noise = new Uint8Array(PIECE).fill(0x20)

/** Sends a response. Throws what a fetch would throw. */
export function send(
  plan: AnswerPlan,
  suits: TemplateName,
  authorization: string,
  time: VirtualTime,
  owner: object,
  told: (answer: Answer) => void,
): Promise<Response> {
  const echo = ECHOES[plan.echo]?.(authorization) ?? authorization
  const bytes = bodyOf(plan, suits, echo)
  const sentText = bytes.toString('latin1')
  const key = authorization.replace('Bearer ', '')
  let taken = 0
  let peak = 0
  const { delivery } = plan
  // All of the text arrives before a stream breaks or stalls.
  const whole = ['whole', 'chunks', 'text only', 'drips', 'breaks', 'stops'].includes(delivery)
  const failed = delivery === 'refused' || delivery === 'silent'
  told({
    plan,
    status: plan.status,
    ...(whole ? { text: new TextDecoder().decode(bytes) } : {}),
    failed,
    // A part of the key may become complete only after JSON removes its escapes.
    echoes: [sentText, sentText.replaceAll('\\"', '"')].some((text) => spellingsIn(text, key).length > 0),
    broken: spellingsIn(sentText, key).length > 0 && wholeSpellingsIn(sentText, key).length === 0,
    taken: () => taken,
    peak: () => peak,
  })
  if (delivery === 'silent') return new Promise<never>(() => {})
  if (delivery === 'refused') return Promise.reject(thrown(plan, authorization))
  const piece = Math.max(1, Math.ceil(bytes.length / 3))
  let at = 0
  const next = (): Uint8Array | undefined => {
    const chunk = bytes.subarray(at, at + piece)
    at += piece
    taken += chunk.length
    return chunk.length === 0 ? undefined : chunk
  }
  type Sink = ReadableStreamDefaultController<Uint8Array>
  type End = (sink: Sink) => void | Promise<void>
  const reply = (body: BodyInit | null | Uint8Array, properties?: Readonly<Record<string, unknown>>) =>
    response(plan, echo, body, properties)
  const stream = (pull: End): Promise<Response> =>
    reply(new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 }))
  const passOn = (sink: Sink, end: End): void | Promise<void> => {
    const chunk = next()
    if (chunk === undefined) return end(sink)
    sink.enqueue(chunk)
  }
  const pieces = (end: End): Promise<Response> => stream((sink) => passOn(sink, end))
  switch (delivery) {
    case 'chunks':
      return pieces((sink) => sink.close())
    case 'breaks':
      return pieces((sink) => sink.error(new TypeError(`terminated ${authorization}`)))
    case 'stops':
      return pieces(() => new Promise(() => {}))
    case 'drips':
      return stream(async (sink) => {
        await time.sleep(owner, 900)
        await passOn(sink, () => sink.close())
      })
    case 'endless':
      return stream((sink) => {
        taken += PIECE
        peak = Math.max(peak, used())
        sink.enqueue(noise)
      })
    case 'no body':
      return reply(null)
    case 'text only':
      return reply(null, { body: undefined, text: async () => new TextDecoder().decode(bytes) })
    case 'text that breaks':
      return reply(null, { body: undefined, text: () => Promise.reject(new TypeError(authorization)) })
    case 'texts for bytes': {
      const reader = { read: async () => ({ done: false, value: 'text' }), cancel: async () => {} }
      return reply(null, { body: { getReader: () => reader, cancel: async () => {} } })
    }
    case 'reader that throws': {
      const getReader = (): never => {
        throw new TypeError(authorization)
      }
      return reply(null, { body: { getReader } })
    }
    default:
      taken = bytes.length
      return reply(bytes)
  }
}

function thrown(plan: AnswerPlan, authorization: string): unknown {
  const kinds: readonly unknown[] = [
    new TypeError('fetch failed'),
    new TypeError('fetch failed', {
      cause: Object.assign(new Error(authorization), { code: 'ECONNREFUSED' }),
    }),
    Object.assign(new Error(authorization), { code: 'ECONNRESET', syscall: 'read', name: authorization }),
    new DOMException('aborted', 'AbortError'),
    new AggregateError([new Error(authorization)], authorization),
    authorization,
    undefined,
    null,
    { headers: { authorization } },
    new Proxy(new Error('x'), {
      get() {
        throw new Error(authorization)
      },
    }),
  ]
  return kinds[plan.template % kinds.length]
}

async function response(
  plan: AnswerPlan,
  echo: string,
  body: BodyInit | null | Uint8Array,
  properties: Readonly<Record<string, unknown>> = {},
): Promise<Response> {
  const headers = new Headers()
  for (const [name, value] of plan.headers) {
    try {
      headers.append(name, value.replaceAll(ECHO, echo))
    } catch {
      // Headers cannot contain it.
    }
  }
  const { status } = plan
  const bodiless = status === 204 || status === 205 || status === 304
  const possible = status >= 200 && status <= 599 && !(bodiless && body !== null)
  const made = new Response(body as BodyInit | null, possible ? { status, headers } : { headers })
  const changed = { ...properties, ...(possible ? {} : { status, ok: status >= 200 && status < 300 }) }
  for (const [name, value] of Object.entries(changed)) Object.defineProperty(made, name, { value })
  return made
}

function bodyOf(plan: AnswerPlan, suits: TemplateName, echo: string): Buffer {
  const template = TEMPLATES[plan.fitting ? suits : (TEMPLATE_NAMES[plan.template] ?? suits)]
  let text = JSON.stringify(mutated(template, plan.mutations))
    .replace(/"@@([^@"]{1,40})@@"/g, (marker, raw: string) => (raw === 'authorization' ? marker : raw))
    .replaceAll(ECHO, JSON.stringify(echo).slice(1, -1))
  let bytes: Buffer | undefined
  for (const { how, at } of plan.changes) {
    const changed = TEXT_CHANGES[how](text, at, echo)
    if (typeof changed === 'string') text = changed
    else bytes = changed
  }
  return bytes ?? Buffer.from(text)
}

function mutated(template: unknown, mutations: AnswerPlan['mutations']): unknown {
  if (mutations.length === 0) return template
  const top = { root: structuredClone(template) }
  for (const { at, how, value } of mutations) {
    const places: Place[] = []
    collect(top, places)
    const place = places[at % places.length]
    // Copy the value: a later change must not change the list of values.
    if (place !== undefined) MUTATIONS[how]?.(place.fields, place.key, structuredClone(VALUES[value]))
  }
  return top.root ?? null
}

interface Place {
  readonly fields: Fields
  readonly key: string
}

function collect(fields: Fields, places: Place[]): void {
  for (const key of Object.keys(fields)) {
    if (places.length >= 60) return
    places.push({ fields, key })
    const value = fields[key]
    if (isHolder(value)) collect(value, places)
  }
}
