import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
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

/** Bundles scripts of `pages/` from the source and serves each with a page of its own. */
export async function serveSite(...scripts: readonly string[]): Promise<Site> {
  const { outputFiles } = await build({
    entryPoints: scripts.map((name) => `${folder}${name}.ts`),
    outdir: folder,
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    tsconfig,
  })
  const files = new Map(outputFiles.map(({ path, text }) => [path.slice(folder.length - 1), text]))
  const server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://site')
    const script = files.get(pathname)
    const name = pathname.slice(1)
    if (script !== undefined) {
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
