import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { bundlePages } from './bundle-pages.ts'
import { listen } from './listen.ts'

/** Serves the pages of the tests on a loopback address, which browsers treat as secure. */
export interface Site {
  /** Address of the page for a script of `pages/`. */
  pageOf(script: string): string
  /** Address of the same page with an opaque origin, for which the browser stores nothing. */
  originlessPageOf(script: string): string
  close(): Promise<void>
}

/** A service behind the site, which adds the API key to forwarded requests. */
export interface Behind {
  readonly path: `/${string}`
  readonly baseUrl: string
  readonly apiKey: string
}

/** Bundles scripts of `pages/` from the source, and serves each with its own page. */
export async function serveSite(...scripts: readonly string[]): Promise<Site> {
  const path = (name: string): string => fileURLToPath(new URL(`../pages/${name}.ts`, import.meta.url))
  return await serveScripts(Object.fromEntries(scripts.map((name) => [name, path(name)])))
}

/** The same for a script in another folder. */
export async function serveScript(name: string, path: string, behind: Behind): Promise<Site> {
  return await serveScripts({ [name]: path }, behind)
}

/** @param scripts paths by name */
async function serveScripts(scripts: Readonly<Record<string, string>>, behind?: Behind): Promise<Site> {
  const files = await bundlePages(scripts)
  const { url: base, close } = await listen((request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://site')
    const script = files.get(pathname)
    const name = pathname.slice(1)
    if (behind !== undefined && pathname.startsWith(behind.path)) {
      passOn(behind, pathname.slice(behind.path.length) + search, request).then(
        async (answer) => {
          const headers = { 'content-type': answer.headers.get('content-type') ?? '' }
          response.writeHead(answer.status, headers).end(await answer.text())
        },
        // A lost response is lost to the page, too.
        () => request.socket.destroy(),
      )
    } else if (script !== undefined) {
      response.writeHead(200, { 'content-type': 'text/javascript' }).end(script)
    } else if (Object.hasOwn(scripts, name)) {
      const headers = search === '?originless' ? { 'content-security-policy': 'sandbox allow-scripts' } : {}
      response
        .writeHead(200, { 'content-type': 'text/html', ...headers })
        .end(`<!doctype html><title>${name}</title><script src="/${name}.js"></script>`)
    } else {
      response.writeHead(404).end()
    }
  })
  return {
    pageOf: (script) => `${base}/${script}`,
    originlessPageOf: (script) => `${base}/${script}?originless`,
    close,
  }
}

async function passOn(
  { baseUrl, apiKey }: Behind,
  path: string,
  request: IncomingMessage,
): Promise<Response> {
  const headers = new Headers({ authorization: `Bearer ${apiKey}` })
  for (const name of ['accept', 'content-type', 'idempotency-key']) {
    const value = request.headers[name]
    if (typeof value === 'string') headers.set(name, value)
  }
  const { method = 'GET' } = request
  const body = method === 'GET' ? null : await text(request)
  return await fetch(baseUrl + path, { method, headers, body })
}
