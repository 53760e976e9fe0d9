import type { IncomingMessage, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Plugin } from 'esbuild'
import { bundlePages } from './bundle-pages.ts'
import { clientFiles } from './client-files.ts'
import { listen } from './listen.ts'
import type { FileReport } from './page-tests.ts'

export interface PageReport {
  readonly files: readonly FileReport[]
  /** Violations of the page's policy, in words. */
  readonly violations: readonly string[]
  /** True if the browser knows Trusted Types. */
  readonly trustedTypes: boolean
}

export type Control = (question: unknown) => unknown

export interface RunOptions {
  readonly query?: Readonly<Record<string, string>>
  /** The only other origin that the page may call. */
  readonly service?: string
  readonly control?: Control
}

interface Run {
  readonly policy: string
  readonly control: Control
  readonly done: (report: PageReport) => void
  readonly failed: (reason: Error) => void
  heard: string
  /** Ends the run. Every request of the page postpones it. */
  readonly silence: NodeJS.Timeout
}

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Maximum silence of a page, in milliseconds. */
const PATIENCE = 120_000

/**
 * Allows scripts only from files of the site, no code or markup from strings, and no other address
 * than the service's.
 */
const policyFor = (service: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `connect-src 'self' ${service}`.trim(),
    // Browsers ask for an icon that no page mentions.
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')

/**
 * Bundles scripts of `pages/` from the source, with a small runner instead of Vitest, and serves a
 * page for each.
 */
export async function serveStrictSite(...pages: readonly string[]) {
  const scripts = await bundlePages(
    Object.fromEntries(['watch', ...pages].map((name) => [name, at(`../pages/${name}.ts`)])),
    { alias: { vitest: at('page-tests.ts'), 'node:events': at('page-listeners.ts') }, plugins: [testFiles] },
  )
  const runs = new Map<string, Run>()
  let last = 0

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://site')
    const script = scripts.get(pathname)
    if (script !== undefined) {
      response.writeHead(200, { 'content-type': 'text/javascript' }).end(script)
      return
    }
    const run = runs.get(searchParams.get('run') ?? '')
    if (run === undefined) {
      response.writeHead(404).end()
      return
    }
    run.heard = `${request.method} ${pathname}`
    run.silence.refresh()
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/html', 'content-security-policy': run.policy })
      response.end(
        `<!doctype html><title>${pathname}</title><script src="/watch.js"></script><script src="${pathname}.js"></script>`,
      )
      return
    }
    const told: unknown = await json(request)
    if (pathname === '/progress') run.heard = `the report on ${JSON.stringify(told).slice(0, 300)}`
    else if (pathname === '/failed') run.failed(new Error(`the page failed: ${String(told)}`))
    else if (pathname === '/done') run.done(told as PageReport)
    const reply = pathname === '/control' ? await run.control(told) : null
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply ?? null))
  }

  const { url: origin, close } = await listen((request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error))
    })
  })

  return {
    origin,
    /** Opens a page and waits for its report. `control` handles the page's requests meanwhile. */
    async run(
      page: string,
      open: (url: string) => Promise<void>,
      { query = {}, service = '', control = () => null }: RunOptions = {},
    ) {
      const id = String(++last)
      let silence: NodeJS.Timeout | undefined
      try {
        return await new Promise<PageReport>((done, failed) => {
          silence = setTimeout(
            () => failed(new Error(`the page was silent for ${PATIENCE} ms; last: ${run.heard}`)),
            PATIENCE,
          )
          const run: Run = { policy: policyFor(service), control, done, failed, heard: 'nothing', silence }
          runs.set(id, run)
          open(`${origin}/${page}?${new URLSearchParams({ ...query, run: id })}`).catch(failed)
        })
      } finally {
        clearTimeout(silence)
        runs.delete(id)
      }
    },
    close,
  }
}

export type StrictSite = Awaited<ReturnType<typeof serveStrictSite>>

const load = (file: string): string => `'${file}': () => require('./${file}')`

/** `virtual:client-tests` names the files of test/client that run in pages, each behind a function. */
const testFiles: Plugin = {
  name: 'test files',
  setup(build) {
    build.onResolve({ filter: /^virtual:client-tests$/ }, ({ path }) => ({ path, namespace: 'tests' }))
    build.onLoad({ filter: /.*/, namespace: 'tests' }, () => ({
      resolveDir: at('../../client'),
      contents: `export const files = { ${clientFiles.map(load).join(', ')} }`,
    }))
  },
}
