import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { defineConfig, type Plugin, type ViteDevServer } from 'vite'
import { createShopProxy, type Upstream } from './server/proxy.ts'
import { createShopSandbox } from './server/sandbox.ts'
import { isThisMachine } from './server/visitors.ts'

/**
 * The same proxy as in production, at the address of the development server. It forwards to
 * CUSTOMER_ORDERING_BASE_URL or, by default, to its own sandbox, whose live page can inject faults.
 */
function proxy(): Plugin {
  return {
    name: 'proxy',
    apply: 'serve',
    async configureServer(server) {
      const { baseUrl, apiKey } = await serviceOf(server)
      const apiKeyFor: Upstream['apiKeyFor'] = (request) => (isThisMachine(request) ? apiKey : undefined)
      // The addresses are known once the server listens.
      const origins = () => (server.resolvedUrls?.local ?? []).map((address) => new URL(address).origin)
      server.middlewares.use('/api', createShopProxy({ baseUrl, origins, apiKeyFor }))
    },
  }
}

async function serviceOf({
  config,
  httpServer,
}: ViteDevServer): Promise<{ readonly baseUrl: string; readonly apiKey: string }> {
  const { CUSTOMER_ORDERING_BASE_URL: baseUrl, CUSTOMER_ORDERING_API_KEY: apiKey } = process.env
  if (baseUrl !== undefined && apiKey !== undefined) {
    config.logger.info(`Orders go to ${baseUrl}`)
    return { baseUrl, apiKey }
  }
  const sandbox = createShopSandbox()
  const service = await serveSandbox(sandbox, { control: 'loopback' })
  httpServer?.once('close', () => void service.close())
  config.logger.info(`Orders go to a sandbox. Watch it, and make it fail, at ${service.url}`)
  return { baseUrl: service.url, apiKey: sandbox.apiKey }
}

export default defineConfig({
  plugins: [proxy()],
  build: {
    target: 'es2023',
    // The policy of the page allows neither inlined files nor the polyfill.
    assetsInlineLimit: 0,
    modulePreload: false,
    rolldownOptions: {
      input: ['index.html', 'react.html'],
      onLog: (level, log, show) => {
        // Ignore "use client" directives, which only matter to frameworks that render on a server.
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') show(level, log)
      },
    },
  },
})
