// Orders with the undici in the folder that PEER names, and prints the outcome.
import { registerHooks } from 'node:module'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { order } from './order.mjs'

const peer = new URL(`file://${process.env.PEER}/index.js`).href
registerHooks({
  resolve: (specifier, context, next) => next(specifier === 'undici' ? peer : specifier, context),
})
const { undiciTransport } = await import('customer-ordering-sdk/undici')

const sandbox = createSandbox()
const server = await serveSandbox(sandbox)
const transport = undiciTransport()
const proxied = undiciTransport({ proxy: 'environment' })
const open = (baseUrl, used = transport) =>
  new CustomerOrderingClient({ baseUrl, apiKey: sandbox.apiKey, transport: used, maxRetries: 1 })
const client = open(server.url)
const codeOf = (call) => call.then(String, ({ code, charged }) => `${code} ${charged}`)

sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
const { amount } = await client.orders.create(order('lost'))
sandbox.expectChargedOnce('lost')
const { currency } = await open(server.url, proxied).balance.retrieve()
const refused = await codeOf(client.orders.retrieve('none'))
// Aborts calls while their responses are in transit.
sandbox.faults.add({ match: { operation: 'retrieveBalance' }, action: { type: 'stall' } })
const aborted = await codeOf(client.balance.retrieve({ signal: AbortSignal.timeout(200) }))
// Simulates a machine that sleeps between the check before a send and the send.
const late = undiciTransport()
const sleeper = { ...late, send: (sent) => late.send({ ...sent, isLate: () => true }) }
const held = await codeOf(open(server.url, sleeper).orders.create(order('late')))
sandbox.expectNotCharged('late')
await server.close()
const unsent = await codeOf(open('http://127.0.0.1:1').orders.create(order('nobody')))
for (const used of [transport, proxied, late]) await used.close()
const closed = await codeOf(client.balance.retrieve())
console.log(JSON.stringify({ amount, currency, refused, aborted, held, unsent, closed }))
