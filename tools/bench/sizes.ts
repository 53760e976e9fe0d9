import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const PROGRAMS: Readonly<Record<string, { readonly code: string; readonly folder: string }>> = {
  'this package': {
    code: "import { CustomerOrderingClient } from 'customer-ordering-sdk'; console.log(CustomerOrderingClient)",
    folder: '../..',
  },
  ky: { code: "import ky from 'ky'; console.log(ky)", folder: '../..' },
  'octokit request': {
    code: "import { request } from '@octokit/request'; console.log(request)",
    folder: '../packages/peers',
  },
  notion: {
    code: "import { Client } from '@notionhq/client'; console.log(Client)",
    folder: '../packages/peers',
  },
  axios: { code: "import axios from 'axios'; console.log(axios)", folder: '../packages/peers' },
  stripe: { code: "import Stripe from 'stripe'; console.log(Stripe)", folder: '../packages/peers' },
  openai: { code: "import OpenAI from 'openai'; console.log(OpenAI)", folder: '../packages/peers' },
}

/** Bytes of a browser bundle with a single import. */
export async function measureSizes(): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>()
  for (const [name, { code, folder }] of Object.entries(PROGRAMS)) {
    const { outputFiles } = await build({
      stdin: { contents: code, resolveDir: fileURLToPath(new URL(folder, import.meta.url)) },
      bundle: true,
      write: false,
      minify: true,
      format: 'esm',
      target: 'es2022',
      platform: 'browser',
      legalComments: 'none',
      logLevel: 'error',
    })
    sizes.set(name, gzipSync(outputFiles[0]?.contents ?? new Uint8Array(), { level: 9 }).length)
  }
  return sizes
}
