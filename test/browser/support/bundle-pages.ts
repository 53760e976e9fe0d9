import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'

const outdir = fileURLToPath(new URL('../pages', import.meta.url))

/**
 * Bundles scripts for pages, from the source.
 *
 * @param scripts paths by name
 * @returns the bundles by the path that they are served under, `/name.js`
 */
export async function bundlePages(
  scripts: Readonly<Record<string, string>>,
  options: Pick<BuildOptions, 'alias' | 'plugins'> = {},
): Promise<ReadonlyMap<string, string>> {
  const { outputFiles } = await build({
    ...options,
    entryPoints: scripts,
    outdir,
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    tsconfig: fileURLToPath(new URL('../../../tsconfig.test.json', import.meta.url)),
  })
  return new Map(outputFiles.map(({ path, text }) => [path.slice(outdir.length), text]))
}
