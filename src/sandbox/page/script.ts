import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'

/**
 * The build replaces this module with the bundled script (tools/build/built-page.ts), so the published
 * package needs no bundler.
 */
export function pageScript(): string {
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(new URL('browser/main.ts', import.meta.url))],
    bundle: true,
    write: false,
    format: 'iife',
    target: 'es2022',
    minify: true,
    // Ignore the tsconfig of this repository: its settings are for a library.
    tsconfigRaw: {},
  })
  return outputFiles[0]?.text ?? ''
}
