import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { defineConfig, type Plugin } from 'vite'
import { passOn, type Upstream } from './server/proxy.ts'
import { createShopSandbox } from './server/sandbox.ts'
import { isThisMachine } from './server/visitors.ts'

/**
 * The same proxy as in production, at the address of the development server. It leads to CUSTOMER_ORDERING_BASE_URL, or,
 * without that, to a sandbox of its own, whose live page can make things go wrong.
 */
function proxy(): Plugin {
  return {
    name: 'proxy',
    apply: 'serve',
    async configureServer({ middlewares, config, httpServer }) {
      const upstream = await upstreamOf(
        (line) => config.logger.info(line),
        (stop) => httpServer?.once('close', stop),
      )
      middlewares.use('/api', (request, response) => passOn(upstream, request.url ?? '/', request, response))
    },
  }
}

async function upstreamOf(log: (line: string) => void, atEnd: (stop: () => void) => void): Promise<Upstream> {
  const { CUSTOMER_ORDERING_BASE_URL: baseUrl, CUSTOMER_ORDERING_API_KEY: key } = process.env
  if (baseUrl !== undefined && key !== undefined) {
    log(`Orders go to ${baseUrl}`)
    return { baseUrl, apiKeyFor: (request) => (isThisMachine(request) ? key : undefined) }
  }
  const sandbox = createShopSandbox()
  const server = await serveSandbox(sandbox, { control: 'loopback' })
  atEnd(() => void server.close())
  log(`Orders go to a sandbox. Watch it, and make it fail, at ${server.url}`)
  return {
    baseUrl: server.url,
    apiKeyFor: (request) => (isThisMachine(request) ? sandbox.apiKey : undefined),
  }
}

export default defineConfig({
  plugins: [proxy()],
  build: {
    target: 'es2023',
    // The policy of the page allows neither inlined files nor the polyfill.
    assetsInlineLimit: 0,
    modulePreload: false,
  },
})
