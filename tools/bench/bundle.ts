/** Size of a browser bundle with a single import. */
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { root } from '../build/ensure-built.ts'
import { table } from './compare.ts'

async function kilobytes(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    legalComments: 'none',
    logLevel: 'error',
  })
  return (gzipSync(outputFiles[0]?.contents ?? new Uint8Array(), { level: 9 }).length / 1000).toFixed(1)
}

const client =
  "import { CustomerOrderingClient } from 'customer-ordering-sdk'; console.log(CustomerOrderingClient)"
const error = "import { TimeoutError } from 'customer-ordering-sdk'; console.log(TimeoutError)"
process.stdout.write(`Minified by esbuild and compressed by gzip, with all dependencies.

${table(
  ['in a browser', 'kB'],
  [
    ['this package, the whole client', await kilobytes(client)],
    ['this package, one error class', await kilobytes(error)],
    ['ky', await kilobytes("import ky from 'ky'; console.log(ky)")],
  ],
)}`)
