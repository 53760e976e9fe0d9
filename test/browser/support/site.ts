import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** Pages of the tests, served on a loopback address, which browsers take for secure. */
export interface Site {
  /** Address of the page of a script of `pages/`. */
  pageOf(script: string): string
  /** Address of the same page without an origin of its own, so that the browser lets it store nothing. */
  originlessPageOf(script: string): string
  close(): Promise<void>
}

const folder = fileURLToPath(new URL('../pages/', import.meta.url))
const tsconfig = fileURLToPath(new URL('../../../tsconfig.test.json', import.meta.url))

/** A service behind the site, which adds the API key to what it passes on. */
export interface Behind {
  readonly path: `/${string}`
  readonly baseUrl: string
  readonly apiKey: string
}

/** Bundles scripts of `pages/` from the source and serves each with a page of its own. */
export async function serveSite(...scripts: readonly string[]): Promise<Site> {
  return await serveScripts(
    scripts,
    scripts.map((name) => `${folder}${name}.ts`),
  )
}

/** The same for a script that is somewhere else. */
export async function serveScript(name: string, path: string, behind: Behind): Promise<Site> {
  return await serveScripts([name], [path], behind)
}

async function serveScripts(
  scripts: readonly string[],
  paths: readonly string[],
  behind?: Behind,
): Promise<Site> {
  const { outputFiles } = await build({
    entryPoints: paths.map((path, index) => ({ in: path, out: scripts[index] ?? '' })),
    outdir: folder,
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    tsconfig,
  })
  const files = new Map(outputFiles.map((file) => [file.path.slice(folder.length - 1), file.text]))
  const server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://site')
    const script = files.get(pathname)
    const name = pathname.slice(1)
    if (behind !== undefined && pathname.startsWith(behind.path)) {
      passOn(behind, pathname.slice(behind.path.length) + search, request).then(
        async (answer) => {
          const headers = { 'content-type': answer.headers.get('content-type') ?? '' }
          response.writeHead(answer.status, headers).end(await answer.text())
        },
        // A lost answer is lost to the page, too.
        () => request.socket.destroy(),
      )
    } else if (script !== undefined) {
      response.writeHead(200, { 'content-type': 'text/javascript' }).end(script)
    } else if (scripts.includes(name)) {
      const headers = search === '?originless' ? { 'content-security-policy': 'sandbox allow-scripts' } : {}
      response
        .writeHead(200, { 'content-type': 'text/html', ...headers })
        .end(`<!doctype html><title>${name}</title><script src="/${name}.js"></script>`)
    } else {
      response.writeHead(404).end()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    pageOf: (script) => `${base}/${script}`,
    originlessPageOf: (script) => `${base}/${script}?originless`,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
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
