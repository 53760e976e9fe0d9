/** Prism as a validating proxy for the OpenAPI description. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('../node_modules/.bin/prism', import.meta.url))
const description = fileURLToPath(new URL('../../../openapi/customer-ordering.yaml', import.meta.url))

export interface Prism {
  readonly url: string
  stop(): void
}

/** Starts Prism on a free port in front of a server. */
export async function startPrism(upstream: string, ...flags: readonly string[]): Promise<Prism> {
  const proxy = spawn(process.execPath, [program, 'proxy', description, upstream, '--port', '0', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface(proxy.stdout)) {
    const [, url] = /listening on (http:\S+)/.exec(line) ?? []
    if (url === undefined) continue
    proxy.stdout.resume()
    return { url, stop: () => proxy.kill() }
  }
  throw new Error('Prism did not start')
}

/** The violations that Prism found, unless it was started with `--errors`. */
export function violationsOf(response: Response): readonly { readonly location: readonly string[] }[] {
  return JSON.parse(response.headers.get('sl-violations') ?? '[]')
}
