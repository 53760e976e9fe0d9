// Orders with a global dispatcher of undici 6 whose interceptor sends every request twice, and prints
// what the error says of the wallet after only the second one failed to connect.
import { request } from 'node:http'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { order } from './order.mjs'

const { Agent, setGlobalDispatcher } = (await import(`${process.env.PEER}/index.js`)).default
const sandbox = createSandbox()
const server = await serveSandbox(sandbox)

const first = ({ origin, path, method, headers, body }) =>
  new Promise((resolve, reject) => {
    const { host } = new URL(origin)
    const list = Array.isArray(headers) ? headers : Object.entries(headers).flat()
    const chunks = []
    const sent = request(new URL(path, origin), { method, headers: ['host', host, ...list] }, (response) => {
      response.resume().on('end', resolve)
    }).on('error', reject)
    const write = async () => {
      for await (const chunk of typeof body === 'string' ? [body] : (body ?? [])) chunks.push(chunk)
      sent.end(Buffer.concat(chunks.map((chunk) => Buffer.from(chunk))))
    }
    write().catch(reject)
  })
const resend = () => (options, handler) => {
  const error = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' })
  const failed = () => (handler.onError ? handler.onError(error) : handler.onResponseError(null, error))
  first(options).then(failed, failed)
  return true
}
setGlobalDispatcher(new Agent({ interceptors: { Agent: [resend] } }))

const client = new CustomerOrderingClient({ baseUrl: server.url, apiKey: sandbox.apiKey, maxRetries: 0 })
const { code, charged } = await client.orders.create(order('twice')).catch((error) => error)
sandbox.expectChargedOnce('twice')
await server.close()
console.log(JSON.stringify({ code, charged }))
