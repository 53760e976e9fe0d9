import './platform-fetch.ts'
import { createRequire } from 'node:module'
import { CustomerOrderingClient, type StandardSchemaV1, type Transport } from 'customer-ordering-sdk'
import { undiciTransport } from 'customer-ordering-sdk/undici'
import ky from 'ky'
import * as z from 'zod/mini'
import { ITEM_ID } from './service.ts'

/** A client that sends requests to the service and returns parsed responses. */
export interface Contender {
  readonly name: string
  get(): Promise<unknown>
  list(): Promise<unknown>
  post(): Promise<unknown>
  /** Reads a page of 1,000 rows. Only some contenders are compared with it. */
  longList?(): Promise<unknown>
}

const ITEM = `/v1/orders/${ITEM_ID}`
const LIST = '/v1/orders?limit=50'
const LONG_LIST = '/v1/orders?limit=1000'
/** The body of an order. */
export const orderBody = (externalOrderId: string) => ({
  serviceId: 'svc_standard',
  target: '@someone',
  quantity: 100,
  metadata: { externalOrderId },
})
const BODY = orderBody('invoice-1')
export const KEY = 'sk_test_benchmark'

/** Raw `fetch` and JSON, the baseline of every comparison. */
export const BASELINE = 'raw fetch'

function rawFetch(url: string, name: string): Contender {
  const authorization = `Bearer ${KEY}`
  const read = async (path: string, init: RequestInit = {}): Promise<unknown> => {
    const response = await fetch(url + path, { ...init, headers: { authorization, ...init.headers } })
    return await response.json()
  }
  return { name, ...requestsBy(read) }
}

/** The requests of every contender, sent with a function that has the parameters of `fetch`. */
function requestsBy(read: (path: string, init?: RequestInit) => Promise<unknown>) {
  return {
    get: () => read(ITEM),
    list: () => read(LIST),
    longList: () => read(LONG_LIST),
    post: () =>
      read('/v1/orders', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(BODY),
      }),
  }
}

function kyDefaults(url: string): Contender {
  const client = ky.create({ headers: { authorization: `Bearer ${KEY}` } })
  return {
    name: 'ky, defaults',
    get: () => client.get(url + ITEM).json(),
    list: () => client.get(url + LIST).json(),
    longList: () => client.get(url + LONG_LIST).json(),
    post: () => client.post(`${url}/v1/orders`, { json: BODY }).json(),
  }
}

/** Name of {@link kyOneAttempt}, which is shown for information and is not a rival. */
export const KY_ALONE = 'ky, one attempt'

/**
 * Calls ky as src/http/ky-transport.ts does, with an abort controller and a timer, and uses nothing
 * else of this package.
 */
function kyOneAttempt(url: string): Contender {
  const authorization = `Bearer ${KEY}`
  const read = async (path: string, init: RequestInit = {}): Promise<unknown> => {
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(), 30_000)
    const headers = { authorization, ...init.headers }
    const send = () => fetch(url + path, { ...init, headers, redirect: 'manual', signal: controller.signal })
    const method = init.method ?? 'GET'
    const once = {
      method,
      headers: {},
      retry: 0,
      timeout: false,
      throwHttpErrors: false,
      fetch: send,
    } as const
    try {
      const response = await ky(url + path, once)
      return JSON.parse(await response.text())
    } finally {
      clearTimeout(timer)
    }
  }
  return { name: KY_ALONE, ...requestsBy(read) }
}

/** The fields that this package checks in the response to a POST. */
export const orderSchema: StandardSchemaV1 = z.looseObject({
  id: z.string(),
  status: z.string(),
  amount: z.number(),
})

/** This package, which checks every response. */
function sdk(url: string, name: string, transport?: Transport): Contender {
  const client = new CustomerOrderingClient({ baseUrl: url, apiKey: KEY, transport })
  return {
    name,
    get: () => client.orders.retrieve(ITEM_ID),
    list: () => client.orders.list({ limit: 50 }),
    longList: () => client.orders.list({ limit: 1_000 }),
    post: () => client.request({ method: 'POST', path: '/v1/orders', body: BODY, schema: orderSchema }),
  }
}

/**
 * Clients of other services that send to this service. `npx node tools/programs/install.ts tools/packages` installs them.
 */
function peerClients(url: string) {
  const require = createRequire(new URL('../packages/peers/package.json', import.meta.url))
  const { hostname, port } = new URL(url)
  const Stripe = require('stripe')
  const { OpenAI } = require('openai')
  const { CursorPage } = require('openai/pagination')
  const { Client, iteratePaginatedAPI } = require('@notionhq/client')
  return {
    stripe: new Stripe(KEY, {
      host: hostname,
      port,
      protocol: 'http',
      maxNetworkRetries: 0,
      telemetry: false,
    }),
    openai: new OpenAI({ apiKey: KEY, baseURL: url, maxRetries: 0 }),
    CursorPage,
    axios: require('axios').create({ baseURL: url, headers: { authorization: `Bearer ${KEY}` } }),
    notion: new Client({ auth: KEY, baseUrl: url, retry: false }),
    iteratePaginatedAPI,
  }
}

/**
 * How the other clients walk over a list of 2,000 rows, 50 per page. None reads ahead, so each
 * reads one page at a time.
 */
export function peerWalks(url: string): Readonly<Record<string, () => AsyncIterable<unknown>>> {
  const { stripe, openai, CursorPage, notion, iteratePaginatedAPI } = peerClients(url)
  async function* walk(read: (address: string) => Promise<{ readonly data: readonly unknown[] }>) {
    for (let offset = 0; ; ) {
      const { data } = await read(`${url}/v1/orders?limit=50&offset=${offset}`)
      yield* data
      offset += data.length
      if (data.length < 50 || offset >= 2_000) return
    }
  }
  const headers = { authorization: `Bearer ${KEY}` }
  return {
    'a loop over fetch': () => walk(async (address) => await (await fetch(address, { headers })).json()),
    'a loop over ky': () => walk((address) => ky.get(address, { headers }).json()),
    stripe: () => stripe.customers.list({ limit: 50 }),
    openai: () => openai.getAPIList('/v1/files', CursorPage, { query: { limit: 50 } }),
    notion: () =>
      iteratePaginatedAPI(
        (query: object) => notion.request({ path: 'pages', method: 'get', query: { ...query } }),
        { page_size: 50 },
      ),
  }
}

/** The other clients, with single requests. */
function peers(url: string): Contender[] {
  const { stripe, openai, axios, notion } = peerClients(url)
  return [
    {
      name: 'stripe',
      get: () => stripe.customers.retrieve('cus_1'),
      list: () => stripe.customers.list({ limit: 50 }),
      post: () => stripe.customers.create({ name: BODY.target, metadata: BODY.metadata }),
    },
    {
      name: 'openai',
      get: () => openai.get(ITEM),
      list: () => openai.get(LIST),
      post: () => openai.post('/v1/orders', { body: BODY }),
    },
    {
      name: 'axios',
      get: () => axios.get(ITEM),
      list: () => axios.get(LIST),
      post: () => axios.post('/v1/orders', BODY),
    },
    {
      name: 'notion',
      get: () => notion.request({ path: `orders/${ITEM_ID}`, method: 'get' }),
      list: () => notion.request({ path: 'orders', method: 'get', query: { limit: '50' } }),
      post: () => notion.request({ path: 'orders', method: 'post', body: BODY }),
    },
  ]
}

async function octokit(url: string): Promise<Contender> {
  // The package has no CommonJS build, and the benchmark does not need its types.
  const path = new URL('../packages/node_modules/@octokit/request/dist-bundle/index.js', import.meta.url).href
  const { request } = await import(path)
  const client = request.defaults({ baseUrl: url, headers: { authorization: `Bearer ${KEY}` } })
  return {
    name: 'octokit request',
    get: () => client('GET /v1/orders/{id}', { id: ITEM_ID }),
    list: () => client('GET /v1/orders', { limit: 50 }),
    post: () => client('POST /v1/orders', BODY),
  }
}

/** Raw `fetch`, this package and ky, which need no packages of tools/packages. */
export function ownContenders(url: string): readonly Contender[] {
  return [
    rawFetch(url, BASELINE),
    sdk(url, 'this package'),
    sdk(url, 'this package, undici', undiciTransport()),
    kyDefaults(url),
    kyOneAttempt(url),
  ]
}

/**
 * All contenders, with the baseline twice. The difference between the two baselines is the noise of
 * the run.
 */
export async function contenders(url: string): Promise<Contender[]> {
  const [baseline, ...others] = ownContenders(url)
  if (baseline === undefined) throw new Error('no baseline')
  return [baseline, rawFetch(url, `${BASELINE}, again`), ...others, ...peers(url), await octokit(url)]
}
