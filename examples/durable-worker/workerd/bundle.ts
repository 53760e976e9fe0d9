import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** Bundles a worker as one module, as wrangler does. `entry` is a file in this example's folder. */
export async function bundle(
  entry: string,
): Promise<{ readonly type: 'ESModule'; readonly path: string; readonly contents: string }> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(`../${entry}`, import.meta.url))],
    bundle: true,
    format: 'esm',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:workers'],
    write: false,
    // The package is a link to the project, so esbuild treats its files as this program's own and
    // warns about them.
    logOverride: { 'ignored-bare-import': 'silent' },
  })
  return { type: 'ESModule', path: 'worker.mjs', contents: outputFiles[0]?.text ?? '' }
}
