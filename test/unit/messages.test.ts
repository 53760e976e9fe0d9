/**
 * The only test of the words of errors: a person reviews `messages.txt` after a change
 * (`npx vitest run --project unit messages -u`). Other tests check codes, fields and `charged`.
 */
import { aesGcm, CustomerOrderingClient, formatAmount } from 'customer-ordering-sdk'
import { afterEach, expect, test, vi } from 'vitest'
import { CustomerOrderingError } from '../../src/errors/classes.ts'
import { STATUSES } from '../../src/errors/statuses.ts'
import type { AttemptResult, BodyProblem } from '../../src/http/attempt.ts'
import { noTrail } from '../../src/http/call.ts'
import { type CallContext, errorOf, UNKNOWN_CALL } from '../../src/http/failures.ts'
import type { Unsent } from '../../src/http/transport.ts'
import type { ClientOptions } from '../../src/options.ts'
import { SENDING } from '../../src/orders/record/context.ts'
import { unusableError } from '../../src/orders/record/record.ts'
import { anonymousOrder, Lab, order } from '../support/lab.ts'
import { on, storeOver } from '../support/stores.ts'

const MINUTE = 60_000

const answer = (status: number, body: unknown = {}, problem?: BodyProblem): AttemptResult => ({
  kind: 'answer',
  status,
  headers: new Headers(),
  text: JSON.stringify(body),
  ...(problem && { problem }),
})
const failed = (unsent: false | Unsent, code: string): AttemptResult => ({
  kind: 'failed',
  unsent,
  closed: false,
  detail: { name: 'TypeError', code },
})
const redirect = (status: number): AttemptResult => ({ kind: 'redirect', status, headers: new Headers() })
/** A status of each row, one without a row, and one of a server that failed. */
const ANSWERED = [
  ...new Map(Object.entries(STATUSES).map(([status, row]) => [row, Number(status)])).values(),
  ...[418, 503],
]

/** What one attempt may end with. */
const ATTEMPTS: Readonly<Record<string, AttemptResult>> = {
  ...Object.fromEntries(ANSWERED.map((status) => [String(status), answer(status)])),
  'a code of the service': answer(402, { code: 'NO_FUNDS' }),
  'another payload': answer(409, { code: 'IDEMPOTENCY_CONFLICT' }),
  'in progress': answer(409, { code: 'IDEMPOTENCY_IN_PROGRESS' }),
  'a page of HTML': { ...answer(404), text: '<!doctype html>' } as AttemptResult,
  'a redirect': redirect(307),
  'a redirect without a status': redirect(0),
  'a body that is cut off': answer(200, {}, 'cut'),
  'a body that is late': answer(200, {}, 'timeout'),
  'a body that is too large': answer(200, {}, 'too_large'),
  'a body that cannot be decompressed': answer(200, {}, 'undecodable'),
  'no response': failed(false, 'ECONNRESET'),
  'no TLS': failed(false, 'ERR_SSL_WRONG_VERSION_NUMBER'),
  'no connection': failed('unreachable', 'ECONNREFUSED'),
  'an untrusted certificate': failed('certificate', 'CERT_HAS_EXPIRED'),
  'a blocked port': failed('unreachable', 'BAD_PORT'),
  'a late connection': failed('late', 'LATE'),
  'a closed transport': failed('transport_closed', 'UND_ERR_CLOSED'),
  'a timeout': { kind: 'timeout' },
  'an abort': { kind: 'aborted' },
}

function fail(last: AttemptResult, known: Partial<CallContext> = {}, outOfTime = false): Error {
  const trail = { ...noTrail(outOfTime), attempts: 2, last }
  const context = { ...UNKNOWN_CALL, endpoint: SENDING.create, path: '/v1/orders', ...known }
  return errorOf({ end: outOfTime ? 'deadline' : 'stopped', trail }, context)
}

/** Their sentences about the wallet stand for those of all others. */
const IN_FULL = ['402', 'another payload', 'no connection']
const attempts = Object.entries(ATTEMPTS).flatMap(([name, result]) =>
  (IN_FULL.includes(name) ? ([undefined, 'no', 'unknown', 'yes'] as const) : (['no'] as const)).map(
    (charged) => [
      `${name}; charged: ${charged ?? 'no order'}`,
      () => Promise.reject(fail(result, charged && { charged })),
    ],
  ),
)
const CUSTOM = { operation: 'request', method: 'PUT' }
const READ = { operation: 'orders.resolve', method: 'GET', missing: 'order' } as const

const OTHERS: Readonly<Record<string, (lab: Lab) => unknown>> = {
  'no time for a retry': () => Promise.reject(fail(answer(503), {}, true)),
  'a custom request; charged: unknown': () =>
    Promise.reject(fail({ kind: 'timeout' }, { endpoint: CUSTOM, path: '/v1/x', charged: 'unknown' })),
  'a read of an order; charged: unknown': () =>
    Promise.reject(fail(answer(404), { endpoint: READ, path: '/v1/orders/o1', charged: 'unknown' })),

  // Orders.
  'another call is placing the same nameless order': async (lab) => {
    lab.fault({ type: 'stall', commit: true })
    await lab.begin(() => lab.create(anonymousOrder()))
    await lab.create(anonymousOrder())
  },
  'another payload for a charged reference': async (lab) => {
    await lab.create()
    await lab.create(order('r1', { quantity: 20 }))
  },
  'another payload for a reference in doubt': async (lab) => {
    await lab.doubted()
    await lab.create(order('r1', { quantity: 20 }))
  },
  'another key for a refused reference': async (lab) => {
    await lab.refused()
    await lab.create(order('r1'), { idempotencyKey: 'other' })
  },
  'an order past its window': async (lab) => {
    await lab.doubted('drop')
    lab.runtime.jump(21 * MINUTE)
    await lab.create()
  },
  'an order that another API key sent': async (lab) => {
    await lab.doubted('drop')
    await lab.client({ apiKey: 'sk_another_key_of_this_shop' }).orders.create(order('r1'))
  },
  'an unreadable order': async (lab) => {
    const fetch = async () => Response.json({ id: 7 }, { status: 201 })
    await lab.client({ fetch, maxRetries: 0 }).orders.create(order('r1'))
  },
  'a store that cannot be read': (lab) => lab.elsewhere({}, () => 'rejects').orders.create(order('r1')),
  'a store that cannot be written': (lab) =>
    lab.elsewhere({}, on('insert', 'rejects')).orders.create(order('r1')),
  'a store that cannot be written after the charge': async (lab) => {
    const fetch = async () => Response.json({}, { status: 402 })
    await lab.elsewhere({ fetch }, on('update', 'rejects')).orders.create(order('r1'))
  },
  'a row that cannot be read': async (lab) => {
    await lab.create()
    await lab.tamper('ref:r1', { state: 7 })
    await lab.create()
  },
  'a row of a newer version': () => Promise.reject(unusableError('newer_version')),
  'a row that a codec does not decrypt in time': () => Promise.reject(unusableError('unanswered')),
  'an order without a service': (lab) => lab.create({ target: 't', quantity: 1 } as never),
  'a reference with a space at its end': (lab) => lab.create(order('r1 ')),
  'a field with a typing error': (lab) => lab.create(order('r1', { quantiy: 2 } as object)),
  'an option in place of a field': (lab) => lab.create(order('r1', { idempotencyKey: 'k' } as object)),
  'a quantity that is a string': (lab) => lab.create(order('r1', { quantity: '1' } as object)),
  ...Object.fromEntries(
    [1.5, 0, Number.NaN, 10n].map((quantity) => [
      `the quantity ${quantity}`,
      (lab: Lab) => lab.create(order('r1', { quantity: quantity as number })),
    ]),
  ),
  'a blank target': (lab) => lab.create(order('r1', { target: ' ' })),
  'a blank reference': (lab) => lab.create(order(' ')),
  'metadata that is a string': (lab) => lab.create(order('r1', { metadata: 'inv-1' } as object)),
  'a row that is none': async (lab) => {
    throw (await lab.orders.createMany(['x' as never])).failures[0]?.error
  },
  'a row without a name': async (lab) => {
    throw (await lab.orders.createMany([anonymousOrder()])).failures[0]?.error
  },
  'a row with a key next to its fields': async (lab) => {
    const row = { ...order('r1'), idempotencyKey: 'k' }
    throw (await lab.orders.createMany([row])).failures[0]?.error
  },
  'an order above 256 KiB': (lab) => lab.create(order('r1', { target: 'x'.repeat(300_000) })),

  // Recovery.
  'resolve() without a record': (lab) => lab.orders.resolve({ externalOrderId: 'none' }, { as: 'abandoned' }),
  'resolve() while a call may run': async (lab) => {
    lab.fault({ type: 'stall', commit: true })
    await lab.begin(() => lab.create())
    await lab.orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
  },
  'resolve() with the id of another order': async (lab) => {
    await lab.create(order('r2', { quantity: 20 }))
    await lab.doubted('drop')
    await lab.orders.resolve({ externalOrderId: 'r1' }, { as: 'created', orderId: lab.charged('r2') })
  },
  'forget() of a name that is none': (lab) => lab.orders.forget('m' as never),
  'forget() in a store that cannot be written': async (lab) => {
    await lab.create()
    await lab.elsewhere({}, on('update', 'rejects')).orders.forget({ externalOrderId: 'r1' })
  },
  'forget() of an open order': async (lab) => {
    await lab.doubted()
    await lab.orders.forget({ externalOrderId: 'r1' })
  },
  'waitFor() of an order that never comes': (lab) =>
    lab.orders.waitFor('ord_1', { until: () => true, timeout: MINUTE }),
  'waitFor() of an order that cannot be read': (lab) => {
    lab.fault({ type: 'stall' }, 'always')
    return lab.orders.waitFor('ord_1', { until: () => true, timeout: MINUTE })
  },
  'waitFor() of an order that does not change': async (lab) => {
    const { id } = await lab.create()
    await lab.orders.waitFor(id, { until: () => false, timeout: MINUTE })
  },

  'recover() that finds a list from a cache': async (lab) => {
    await lab.doubted()
    lab.runtime.jump(60 * MINUTE)
    const fetch = async () => new Response('[]', { headers: { age: '30' } })
    throw (await lab.client({ fetch }).orders.recover()).needsAttention[0]?.error
  },
  'recover() that finds an endless list': async (lab) => {
    await lab.doubted()
    lab.runtime.jump(60 * MINUTE)
    const rows = Array.from({ length: 20_000 }, (_, row) => ({ id: `o${row}`, status: 'done', amount: 1 }))
    lab.fault({ type: 'mutateList', change: () => rows }, 'always', 'listOrders')
    throw (await lab.orders.recover()).needsAttention[0]?.error
  },
  'recover() of no order at a time': (lab) => lab.orders.recover({ concurrency: 0 }),
  'remembered() by two names': (lab) =>
    lab.orders.remembered({ externalOrderId: 'r1', idempotencyKey: 'k' } as never),
  'remembered() of a store that hangs': async (lab) =>
    await lab.elsewhere({ totalTimeout: 700 }, () => 'hangs').orders.remembered({ externalOrderId: 'r1' }),

  // Lists and reads.
  'a schema that throws': async (lab) => {
    const validate = () => {
      throw new Error('a bug of the caller')
    }
    const balance = { '~standard': { version: 1, vendor: 'test', validate } } as const
    await lab.client({ schemas: { balance } }).balance.retrieve()
  },
  'a limit that is none': (lab) => lab.orders.list({ limit: 0 }),
  ...Object.fromEntries(
    ['a/b', '..', 'a\ud800', 'a\n', '', 7].map((id) => [
      `an order id ${JSON.stringify(id)}`,
      (lab: Lab) => lab.orders.retrieve(id as string),
    ]),
  ),
  'a list of a service that ignores offset': (lab) => {
    lab.sandbox.configure({ ignoreOffset: true, maxLimit: 2 })
    for (let count = 0; count < 3; count++) lab.sandbox.addOrder()
    return lab.orders.list().toArray({ max: 10 })
  },
  'a list without a cap': (lab) => lab.orders.list().toArray({} as never),
  'a response with the wrong fields': (lab) =>
    lab.client({ fetch: async () => Response.json({ amount: 'x' }) }).balance.retrieve(),
  'a list that is written as JSON': (lab) => JSON.stringify(lab.orders.list()),
  'a run that is used twice': async (lab) => {
    const run = lab.orders.recover()
    await run
    await run[Symbol.asyncIterator]().next()
  },
  'a closed client': async (lab) => {
    const client = lab.client()
    await client.close()
    await client.balance.retrieve()
  },

  // Options.
  'no address': (lab) => lab.client({ baseUrl: '' }),
  'an address with a path': (lab) => lab.client({ baseUrl: 'https://api.example.com/v1' }),
  'no address, also not in the environment': () => new CustomerOrderingClient({ apiKey: 'k' }),
  'an address over http': (lab) => lab.client({ baseUrl: 'http://sandbox:4010' }),
  'options that are none': () => new CustomerOrderingClient('https://api.example.com' as never),
  'no API key, also not in the environment': () =>
    new CustomerOrderingClient({ baseUrl: 'https://a.example' }),
  "an API key with the word 'Bearer'": (lab) => lab.client({ apiKey: 'Bearer s3cret' }),
  'an API key without characters': (lab) => lab.client({ apiKey: '' }),
  'a window without room for one attempt': (lab) => lab.client({ safeRetryWindow: 59_999 }),
  'retention within the window': (lab) => lab.client({ retention: { created: 1 } }),
  'a transport together with fetch': (lab) =>
    lab.client({ transport: { send: () => Promise.reject(new Error('unused')) } }),
  'waitFor() with a status': (lab) => lab.orders.waitFor('ord_1', { status: 'done' } as never),
  'a call option among the parameters': (lab) => lab.orders.list({ signal: AbortSignal.abort() } as never),
  'a durable store without an account': (lab) =>
    lab.unlabelled({ store: storeOver(lab.rows, { durability: 'server' }) }),
  'an option with a typing error': (lab) => lab.client({ acount: 'x' } as ClientOptions),
  ...Object.fromEntries(
    ['maxNetworkRetries', 'httpAgent', 'apiVersion', 'stripeAccount', 'defaultQuery', 'idempotencyKey'].map(
      (name) => [`the option ${name}`, (lab: Lab) => lab.client({ [name]: 2 } as ClientOptions)],
    ),
  ),
  'a client option for one call': (lab) => lab.create(order('r1'), { apiKey: 'k' } as object),
  'a page of another SDK': (lab) => lab.orders.list({ page: 2 } as object),
  'the product in place of a service': (lab) =>
    lab.create({ productId: 'p', target: 't', quantity: 1 } as never),
  ...Object.fromEntries(
    ['autoPagingToArray', 'autoPagingEach', 'withResponse'].map((name) => [
      `a list that is used as in another SDK: ${name}`,
      (lab: Lab) => Object(lab.orders.list())[name](),
    ]),
  ),
  ...Object.fromEntries(
    ['get', 'cancel'].map((name) => [`orders.${name}()`, (lab: Lab) => Object(lab.orders)[name]()]),
  ),
  'a time that is none': (lab) => lab.client({ timeout: -1 }),
  'a call option that is none': (lab) => lab.client().balance.retrieve({ retries: 1 } as object),
  'a key of the codec that is too short': () => aesGcm(new Uint8Array(16)),
  'an amount with a fraction': () => formatAmount({ amount: 1.5, currency: 'EUR' }),
  'a currency that is none': () => formatAmount({ amount: 1, currency: 'EURO' }),
  'a locale that is none': () => formatAmount({ amount: 1, currency: 'EUR' }, 'de_DE'),
}

async function messageOf(situation: (lab: Lab) => unknown): Promise<string> {
  try {
    await situation(new Lab())
  } catch (error) {
    if (error instanceof CustomerOrderingError) return `${error.name} (${error.charged}): ${error.message}`
    throw error
  }
  throw new Error('nothing was thrown')
}

afterEach(() => vi.unstubAllEnvs())

test('the messages of all errors are those that a person has reviewed', async () => {
  for (const name of ['BASE_URL', 'API_KEY']) vi.stubEnv(`CUSTOMER_ORDERING_${name}`, undefined)
  const lines: string[] = []
  for (const [title, situation] of [...attempts, ...Object.entries(OTHERS)] as [string, () => unknown][])
    lines.push(
      `${title} → ${await messageOf(situation).catch((error: unknown) => {
        throw new Error(title, { cause: error })
      })}`,
    )
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('messages.txt')
})
