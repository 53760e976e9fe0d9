/**
 * Serves the built page and its proxy: `npm run build && npm start`.
 *
 * CUSTOMER_ORDERING_BASE_URL and CUSTOMER_ORDERING_API_KEY say where orders go and who pays; PORT (default 8080) and HOST
 * (default 127.0.0.1) where the shop listens. Browsers want https for anything but this machine: put it in front.
 */
import { fileURLToPath } from 'node:url'
import { createSite } from './site.ts'
import { isThisMachine } from './visitors.ts'

const { env } = process
const baseUrl = required('CUSTOMER_ORDERING_BASE_URL')
const apiKey = required('CUSTOMER_ORDERING_API_KEY')

const site = createSite(fileURLToPath(new URL('../dist', import.meta.url)), {
  baseUrl,
  apiKeyFor: (request) => (isThisMachine(request) ? apiKey : undefined),
})
const host = env['HOST'] ?? '127.0.0.1'
const port = Number(env['PORT'] ?? 8080)
site.listen(port, host, () => console.log(`The shop is at http://${host}:${port}`))

function required(name: string): string {
  const value = env[name]
  if (value) return value
  console.error(`The environment variable ${name} is missing.`)
  process.exit(2)
}
