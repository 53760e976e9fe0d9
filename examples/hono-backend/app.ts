import { type CustomerOrderingClient, isCustomerOrderingError, type OrderRecord } from 'customer-ordering-sdk'
import { type Context, Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { type RequestIdVariables, requestId } from 'hono/request-id'
import { validator } from 'hono/validator'
import { answerOf, type ErrorAnswer, ordered, remembered } from './answer.ts'

interface Env {
  Variables: RequestIdVariables
}

/** Writes one line to the log. */
export type Log = (line: Readonly<Record<string, unknown>>) => void

/**
 * Creates the routes. The reference in the path is the shop's own, so a repeated `PUT` buys once.
 */
export function createApp(client: CustomerOrderingClient, log: Log) {
  return new Hono<Env>()
    .use(requestId())
    .get('/services', paging, async (c) => {
      const { items } = await client.services.list(c.req.valid('query'), read(c))
      return c.json(items.map(({ productId, amount, currency }) => ({ productId, amount, currency })))
    })
    .get('/balance', async (c) => {
      const { amount, currency } = await client.balance.retrieve(read(c))
      return c.json({ amount, currency })
    })
    .put('/orders/:reference', newOrder, async (c) => {
      const metadata = { externalOrderId: c.req.param('reference') }
      // Do not pass the request's signal: a customer who closes the page has not cancelled the
      // order, and recovery does not send an aborted order again.
      const order = await client.orders.create({ ...c.req.valid('json'), metadata }, traced(c))
      return c.json(ordered(order), 200)
    })
    .get('/orders/:reference', async (c) => {
      const record = await find(client, c.req.param('reference'))
      if (record === undefined) throw new HTTPException(404, { message: 'there is no such order' })
      // The record shows the order as it was placed. Only the service knows its current status.
      const id = record.state === 'created' ? record.order?.id : undefined
      if (id === undefined) return send(c, remembered(record))
      return await client.orders.retrieve(id, read(c)).then(
        (order) => c.json(ordered(order), 200),
        (error: unknown) => {
          // The order is paid, even if the service cannot show it now.
          if (!isCustomerOrderingError(error) || error.code === 'aborted') throw error
          return send(c, remembered(record))
        },
      )
    })
    .onError((error, c) => {
      const line = { requestId: c.get('requestId'), method: c.req.method, path: c.req.path }
      if (error instanceof HTTPException)
        return c.json({ state: 'refused', reason: error.message }, error.status)
      if (!isCustomerOrderingError(error)) {
        log({ ...line, error: error.name })
        return c.json({ state: 'failed' }, 500)
      }
      // Log the details that support needs. The response must not contain the whole error.
      const { code, charged, attempts, supportReference } = error
      log({ ...line, code, charged, attempts, ...supportReference, serviceRequestId: error.requestId })
      return send(c, answerOf(error))
    })
}

/** The type of the routes, for Hono's typed client in a page: `hc<App>(url)`. */
export type App = ReturnType<typeof createApp>

async function find(
  client: CustomerOrderingClient,
  externalOrderId: string,
): Promise<OrderRecord | undefined> {
  for await (const record of client.orders.remembered({ externalOrderId })) return record
  return undefined
}

function send(c: Context<Env>, { status, body, retryAfter }: ErrorAnswer) {
  if (retryAfter !== undefined) c.header('Retry-After', String(Math.ceil(retryAfter / 1000)))
  return c.json(body, status)
}

/** Sends the id of the customer's request to the service, so that both logs contain it. */
function traced(c: Context<Env>) {
  return { headers: { 'X-Request-Id': c.get('requestId') } }
}

/** Options for a read, which stops when the caller disconnects. */
function read(c: Context<Env>) {
  return { ...traced(c), signal: c.req.raw.signal }
}

const paging = validator('query', (query) => ({
  limit: Number(query['limit'] ?? 50),
  offset: Number(query['offset'] ?? 0),
}))

/**
 * Reads these fields and no others, because the client sends every field that it is given.
 * `create()` checks their values.
 */
const newOrder = validator('json', (body: unknown) => {
  const { serviceId, target, quantity }: Record<string, unknown> = Object(body)
  if (typeof serviceId !== 'string' || typeof target !== 'string' || typeof quantity !== 'number')
    throw new HTTPException(400, { message: 'serviceId, target and quantity are required' })
  return { serviceId, target, quantity }
})
