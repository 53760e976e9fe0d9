/**
 * Serves the built page and its proxy: `npm run build && npm start`. Environment variables
 * configure it. Those without a default are required.
 *
 * CUSTOMER_ORDERING_BASE_URL, CUSTOMER_ORDERING_API_KEY: the service, and the key of the wallet
 * that pays. SHOP_ORIGIN: the origin that visitors see in the address bar, such as
 * https://shop.example.com. Separate several with commas. SHOP_PASSWORD: the password of all
 * visitors, until you replace `visitors.ts`. PORT (default 8080), HOST (default 127.0.0.1): where
 * this server listens. Put an HTTPS server in front of it.
 */
import { fileURLToPath } from 'node:url'
import { createSite } from './site.ts'
import { whoKnows } from './visitors.ts'

const { env } = process
const origins = required('SHOP_ORIGIN').split(',').map(originOf)
const site = createSite(fileURLToPath(new URL('../dist', import.meta.url)), {
  baseUrl: required('CUSTOMER_ORDERING_BASE_URL'),
  origins: () => origins,
  apiKeyFor: whoKnows(required('SHOP_PASSWORD'), required('CUSTOMER_ORDERING_API_KEY')),
})
const host = env['HOST'] ?? '127.0.0.1'
const port = Number(env['PORT'] ?? 8080)
site.listen(port, host, () => console.log(`Listening at http://${host}:${port} for ${env['SHOP_ORIGIN']}`))

function required(name: string): string {
  return env[name] || stop(`The environment variable ${name} is missing.`)
}

function originOf(address: string): string {
  const url = URL.parse(address.trim())
  return url && /^https?:$/.test(url.protocol)
    ? url.origin
    : stop(`SHOP_ORIGIN must be an http or https address (got ${address}).`)
}

function stop(reason: string): never {
  console.error(reason)
  process.exit(2)
}
