import './platform-fetch.ts'
import { CustomerOrderingClient, type Transport } from 'customer-ordering-sdk'
import { undiciTransport } from 'customer-ordering-sdk/undici'
import ky from 'ky'
import { Agent, request } from 'undici'
import { ITEM_ID, KEY, orderBody } from './orders.ts'

/** A client that sends requests to the service and returns parsed responses. */
export interface Contender {
  readonly name: string
  get(): Promise<unknown>
  list(): Promise<unknown>
  /** The others send a body without remembering it. */
  create(): Promise<unknown>
}

const ITEM = `/v1/orders/${ITEM_ID}`
const LIST = '/v1/orders?limit=50'
const authorization = `Bearer ${KEY}`
const JSON_HEADERS = { authorization, 'content-type': 'application/json' }

/** The baseline of every comparison. */
export const BASELINE = 'raw `fetch`'

function rawFetch(url: string, name: string): Contender {
  const read = async (path: string, init: RequestInit = { headers: { authorization } }): Promise<unknown> =>
    await (await fetch(url + path, init)).json()
  return {
    name,
    get: () => read(ITEM),
    list: () => read(LIST),
    create: () =>
      read('/v1/orders', { method: 'POST', headers: JSON_HEADERS, body: JSON.stringify(orderBody()) }),
  }
}

function kyDefaults(url: string): Contender {
  const client = ky.create({ headers: { authorization } })
  return {
    name: 'ky with its defaults',
    get: () => client.get(url + ITEM).json(),
    list: () => client.get(url + LIST).json(),
    create: () => client.post(`${url}/v1/orders`, { json: orderBody() }).json(),
  }
}

function rawUndici(url: string): Contender {
  const dispatcher = new Agent()
  const read = async (path: string, body?: string): Promise<unknown> => {
    const sent = body === undefined ? { headers: { authorization } } : { headers: JSON_HEADERS, body }
    const method = body === undefined ? 'GET' : 'POST'
    return await (await request(url + path, { ...sent, method, dispatcher })).body.json()
  }
  return {
    name: 'raw undici',
    get: () => read(ITEM),
    list: () => read(LIST),
    create: () => read('/v1/orders', JSON.stringify(orderBody())),
  }
}

function sdk(url: string, name: string, transport?: Transport): Contender {
  const client = new CustomerOrderingClient({ baseUrl: url, apiKey: KEY, account: 'bench', transport })
  return {
    name,
    get: () => client.orders.retrieve(ITEM_ID),
    list: () => client.orders.list({ limit: 50 }),
    create: () => client.orders.create(orderBody()),
  }
}

/** Raw `fetch` twice: the difference between the two is the noise of the run. */
export function contenders(url: string): readonly Contender[] {
  return [
    rawFetch(url, BASELINE),
    rawFetch(url, `${BASELINE}, again`),
    kyDefaults(url),
    sdk(url, 'this package'),
    rawUndici(url),
    sdk(url, 'this package over undici', undiciTransport()),
  ]
}
