import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { builtPage } from '../../../tools/build/built-page.ts'
import { root } from '../../../tools/build/ensure-built.ts'
import { engines, nodeBinary } from '../../package/node-versions.ts'
import { AUTHORITY } from '../../support/certificates.ts'
import { run } from '../../support/run.ts'
import type { CellResult } from './run-cell.ts'

/** The output of a process that ran the matrix. */
export interface MatrixResult {
  readonly version: string
  readonly results: readonly CellResult[]
  readonly unhandled: readonly string[]
}

/**
 * Runs the matrix on one version of Node. It is bundled, because the oldest versions cannot read
 * TypeScript.
 */
export async function runMatrix(version: string): Promise<MatrixResult> {
  // Undici 8 requires a later Node than the package.
  const undici = version.startsWith('22')
    ? join(engines, 'node_modules/undici-7')
    : join(root, 'node_modules/undici')
  const folder = join(root, '.tmp/network')
  await mkdir(folder, { recursive: true })
  const authority = join(folder, 'authority.pem')
  await writeFile(authority, AUTHORITY)
  const program = join(folder, `matrix-${process.pid}-${++programs}.mjs`)
  await build({
    entryPoints: [join(root, 'test/harness/network/processes/matrix.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    external: ['msw'],
    plugins: [builtPage],
    alias: { undici, ...Object.fromEntries(PUBLIC.map(([name, path]) => [name, join(root, 'src', path)])) },
    banner: {
      // Node makes its own dispatcher first: the package undici would become the global one.
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url); new Request('http://localhost')",
    },
    logLevel: 'error',
  })
  const { stdout } = await run(nodeBinary(version), [program], {
    env: { ...process.env, NODE_OPTIONS: '', NODE_EXTRA_CA_CERTS: authority },
    maxBuffer: 2 ** 26,
  })
  return JSON.parse(stdout)
}

let programs = 0

const PUBLIC = [
  ['customer-ordering-sdk', 'index.ts'],
  ['customer-ordering-sdk/sandbox/server', 'sandbox/http/server.ts'],
  ['customer-ordering-sdk/sandbox', 'sandbox/index.ts'],
  ['customer-ordering-sdk/undici', 'undici/index.ts'],
] as const
