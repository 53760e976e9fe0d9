import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type BuildOptions, build } from 'esbuild'
import { root } from '../../../tools/build/ensure-built.ts'

/** A program as one file. Call `remove` when it is no longer needed. */
export interface Bundle {
  readonly file: string
  remove(): void
}

let bundles = 0

/** Bundles a test program, so that its threads and processes start in a third of the time. */
export async function bundleOf(name: string, options: BuildOptions): Promise<Bundle> {
  const folder = join(root, '.tmp')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${name}-${process.pid}-${++bundles}.mjs`)
  await build({
    outfile: file,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    logLevel: 'silent',
    // Keep side effects: the programs do their work when they are loaded, although package.json
    // declares none.
    ignoreAnnotations: true,
    ...options,
  })
  return { file, remove: () => rmSync(file, { force: true }) }
}
