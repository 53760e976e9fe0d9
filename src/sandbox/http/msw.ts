import { type HttpHandler, HttpResponse, http } from 'msw'
import type { Sandbox } from '../sandbox.ts'
import { messageOf, respond } from './fetch.ts'

/** Options of {@link sandboxHandlers}. */
export interface SandboxHandlersOptions {
  /** Base URL of the requests to handle. Default: the sandbox's `baseUrl`. */
  readonly baseUrl?: string
}

/**
 * Makes request handlers for msw's `setupServer` and `setupWorker` that respond from a sandbox.
 *
 * A refused or reset connection becomes `HttpResponse.error()`. That error has no details, so the
 * client cannot rule out a charge, even for a request that was never sent.
 *
 * @example
 * const server = setupServer(...sandboxHandlers(sandbox))
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
        // Without this line, msw would report an aborted request as a bug in this handler.
        if (request.signal.aborted) return HttpResponse.error()
        throw error
      }
    }),
  ]
}
