/** The shop as it runs in production: the built page with strict headers, and the proxy at `/api`. */
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { extname, join } from 'node:path'
import { createShopProxy, type Upstream } from './proxy.ts'
import { ASK } from './visitors.ts'

/**
 * Allows scripts and styles only from this server, and forbids markup from strings, frames, and
 * forms that post elsewhere.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const HEADERS = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** A server for the page in `folder`, which is read once. It does not listen yet. */
export function createSite(folder: string, upstream: Upstream): Server {
  const files = new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [
        path.slice(folder.length).replaceAll('\\', '/').replace(/^\/?/, '/'),
        readFileSync(path),
      ]),
  )
  const proxy = createShopProxy(upstream)
  return createServer((request, response) => {
    const { url = '/' } = request
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value)
    if (url.startsWith('/api/')) {
      proxy(request, response).catch(console.error)
      return
    }
    if (upstream.apiKeyFor(request) === undefined) {
      response.writeHead(401, ASK).end()
      return
    }
    const [path = '/'] = url.split('?')
    const name = path === '/' ? '/index.html' : path
    const body = files.get(name)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (body === undefined || !isRead) {
      response.writeHead(isRead ? 404 : 405).end()
      return
    }
    response
      .writeHead(200, {
        'content-type': TYPES[extname(name)] ?? 'application/octet-stream',
        // The file names in assets/ change with their contents, so browsers may keep them for ever.
        'cache-control': name.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
      })
      .end(request.method === 'HEAD' ? undefined : body)
  })
}
