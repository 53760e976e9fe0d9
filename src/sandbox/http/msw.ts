import { type HttpHandler, HttpResponse, http } from 'msw'
import type { Sandbox } from '../sandbox.ts'
import { messageOf, respond } from './fetch.ts'

/** Options of {@link sandboxHandlers}. */
export interface SandboxHandlersOptions {
  /** Base URL of the requests to answer. Default: the sandbox's own. */
  readonly baseUrl?: string
}

/**
 * Request handlers for msw's `setupServer` and `setupWorker` that answer from a sandbox. Failures of the network
 * become `HttpResponse.error()`, which has no details: in Node, too, it looks like a failure in a browser.
 */
export function sandboxHandlers(sandbox: Sandbox, options: SandboxHandlersOptions = {}): HttpHandler[] {
  const baseUrl = (options.baseUrl ?? sandbox.baseUrl).replace(/\/+$/, '')
  return [
    http.all(`${baseUrl}/*`, async ({ request }) => {
      try {
        const message = await messageOf(request)
        const url = sandbox.baseUrl + message.url.slice(baseUrl.length)
        const reply = await sandbox.handle({ ...message, url })
        const { type } = reply.delivery
        if (type === 'drop' || type === 'refuse') return HttpResponse.error()
        return await respond(reply, request.signal, message.url)
      } catch (error) {
        // msw reports what a resolver throws as a mistake in the handlers; a caller who gave up is none.
        if (request.signal.aborted) return HttpResponse.error()
        throw error
      }
    }),
  ]
}
