import type { IncomingMessage, ServerResponse } from 'node:http'
import { pageFiles } from '../page/files.ts'
import type { Sandbox } from '../sandbox.ts'
import { type ControlAnswer, createControl, refusal } from './control.ts'

/** The live page at `/` and the control API below `/__sandbox/`. */
export interface ControlServer {
  isFor(request: IncomingMessage): boolean
  /** `body` is null if it was larger than {@link MAX_CONTROL_BYTES}. */
  answer(request: IncomingMessage, response: ServerResponse, body: string | null): void
}

/** Large enough to upload a long state file. */
export const MAX_CONTROL_BYTES: number = 64 * 1024 * 1024

const PREFIX = '/__sandbox'

const POLICY = [
  "default-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

/**
 * `loopbackOnly` prevents DNS rebinding: otherwise, a web page could reach the control API through
 * a DNS name that points to this machine.
 */
export function createControlServer(
  sandbox: Sandbox,
  loopbackOnly: boolean,
  onChange: (method: string, path: string, status: number) => void,
): ControlServer {
  const control = createControl(sandbox)

  return {
    isFor: ({ url = '/' }) => /^\/(?:$|\?|__sandbox(?:$|[/?]))/.test(url),
    answer(request, response, body) {
      const { method = 'GET', url: target = '/' } = request
      const url = new URL(target, 'http://sandbox')
      const problem = reasonToRefuse(request, loopbackOnly)
      if (problem !== null) return sendJson(response, refusal(403, problem))
      const reads = method === 'GET' || method === 'HEAD'
      const file = pageFiles.get(url.pathname)
      if (reads && file !== undefined) {
        response.writeHead(200, { ...standardHeaders, 'content-type': file.contentType })
        response.end(file.text())
        return
      }
      if (body === null)
        return sendJson(response, refusal(413, 'nothing was changed: the body is larger than 64 MiB'))
      const answer = control({
        method: method === 'HEAD' ? 'GET' : method,
        path: url.pathname.slice(PREFIX.length) || '/',
        query: url.searchParams,
        body,
      })
      sendJson(response, answer)
      if (!reads) onChange(method, url.pathname, answer.status)
    },
  }
}

const standardHeaders: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': POLICY,
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

function sendJson(response: ServerResponse, { status, body, allow }: ControlAnswer): void {
  response.writeHead(status, {
    ...standardHeaders,
    'content-type': 'application/json',
    ...(allow !== undefined && { allow }),
  })
  response.end(`${JSON.stringify(body, null, 2)}\n`)
}

function reasonToRefuse({ headers, method }: IncomingMessage, loopbackOnly: boolean): string | null {
  const { host = '', origin } = headers
  if (loopbackOnly && !/^(?:(?:[\w-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i.test(host))
    return `the Host header must name a loopback host, such as localhost; got ${JSON.stringify(host)}`
  if (method !== 'GET' && method !== 'HEAD' && origin !== undefined && origin !== `http://${host}`)
    return `only pages from http://${host} may change the sandbox; the Origin is ${JSON.stringify(origin)}`
  return null
}
