/**
 * Lets a seeded bug replace an export of a module of `src`, by reference and not by its text. The
 * plugins add a few lines to each module while it is loaded. Module bindings are live, so every
 * importer calls the replacement.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Plugin as EsbuildPlugin } from 'esbuild'
import type { Plugin as VitePlugin } from 'vite'

const SOURCE = fileURLToPath(new URL('../../../src/', import.meta.url))
const EXPORTED = /^export (?:async )?(?:function\*?|class) (\w+)/gm

/** The module, with a setter for each exported function and class. */
function withSeams(code: string): string {
  const names = [...code.matchAll(EXPORTED)].map(([, name]) => name)
  const entries = names.map((name) => `[${name}, (next) => { ${name} = next }]`)
  return `${code}
;{
  const seams = (globalThis[Symbol.for('customer-ordering-sdk.seams')] ??= new Map())
  for (const [original, assign] of [${entries.join(', ')}]) seams.set(original, assign)
}`
}

export function seamsForVite(): VitePlugin {
  return {
    name: 'seams',
    enforce: 'pre',
    transform: (code, id) => (isSource(id) ? { code: withSeams(code), map: null } : undefined),
  }
}

export const seamsForEsbuild: EsbuildPlugin = {
  name: 'seams',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.ts$/ }, ({ path }) =>
      isSource(path)
        ? { contents: `// @ts-nocheck\n${withSeams(readFileSync(path, 'utf8'))}`, loader: 'ts' }
        : undefined,
    ),
}

function isSource(path: string): boolean {
  return path.startsWith(SOURCE) && path.endsWith('.ts')
}
