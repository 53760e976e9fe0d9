import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'

/**
 * The page's script: browser/main.ts and its imports, as one string. The build replaces this module
 * with the string itself (scripts/built-page.ts), so the package needs no bundler. When run
 * from source, this function bundles the page at each call.
 */
export function pageScript(): string {
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(new URL('browser/main.ts', import.meta.url))],
    bundle: true,
    write: false,
    format: 'iife',
    target: 'es2022',
    minify: true,
    // Ignore the package's tsconfig, which is for a library.
    tsconfigRaw: {},
  })
  return outputFiles[0]?.text ?? ''
}
