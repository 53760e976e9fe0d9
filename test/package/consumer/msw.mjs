// Orders with the msw in the folder that PEER names, and prints the outcome.
import { registerHooks } from 'node:module'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { order } from './order.mjs'

// A package can import itself by its name.
const parentURL = `file://${process.env.PEER}/package.json`
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier, /^msw($|\/)/.test(specifier) ? { ...context, parentURL } : context),
})
const { sandboxHandlers } = await import('customer-ordering-sdk/msw')
const { setupServer } = await import('msw/node')

const sandbox = createSandbox()
const baseUrl = 'https://api.example.com'
const server = setupServer(...sandboxHandlers(sandbox, { baseUrl }))
server.listen({ onUnhandledRequest: 'error' })
const client = new CustomerOrderingClient({ baseUrl, apiKey: sandbox.apiKey })
sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
const { amount } = await client.orders.create(order('lost'))
sandbox.expectChargedOnce('lost')
const listed = (await client.orders.list().toArray({ max: 5 })).length
const refused = await client.orders.retrieve('none').catch(({ code }) => code)
server.close()
console.log(JSON.stringify({ amount, listed, refused }))
