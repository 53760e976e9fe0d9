import { fileURLToPath } from 'node:url'
import { bundlePages } from './bundle-pages.ts'
import { listen } from './listen.ts'

/** Bundles scripts of `pages/` from the source, and serves each with its own page. */
export async function serveSite(...scripts: readonly string[]) {
  const path = (name: string): string => fileURLToPath(new URL(`../pages/${name}.ts`, import.meta.url))
  const files = await bundlePages(Object.fromEntries(scripts.map((name) => [name, path(name)])))
  const { url: base, close } = await listen((request, response) => {
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
  return {
    /** Address of the page for a script of `pages/`. */
    pageOf: (script: string) => `${base}/${script}`,
    /** Address of the same page with an opaque origin, for which the browser stores nothing. */
    originlessPageOf: (script: string) => `${base}/${script}?originless`,
    close,
  }
}
export type Site = Awaited<ReturnType<typeof serveSite>>
