import { fileURLToPath, pathToFileURL } from 'node:url'
import { root } from '../../../tools/build/ensure-built.ts'
import { inThreads, type RunOptions, type Summary } from '../../support/seeds.ts'
import { seamsForEsbuild } from '../crash/seams.ts'
import { type Count, noCounts } from './batch.ts'
import { type Bundle, bundleOf } from './bundle.ts'

const BATCH = new URL('./batch.ts', import.meta.url)

export async function bundle(): Promise<Bundle> {
  return await bundleOf('simulation', { entryPoints: [fileURLToPath(BATCH)] })
}

/**
 * Bundles the simulation, or another test program, with seams. The bug of the thread, or the one
 * that the bundle's `sow` inserts, applies to the whole program.
 */
export async function bundleWithSeams(program: URL = BATCH): Promise<Bundle> {
  const parts = [new URL('../crash/sow-in-thread.ts', import.meta.url), program]
  const contents = parts.map((url) => `export * from ${JSON.stringify(fileURLToPath(url))}`).join('\n')
  return await bundleOf('simulation', { stdin: { contents, resolveDir: root }, plugins: [seamsForEsbuild] })
}

export async function withBug<Program>(
  name: string,
  program: URL,
  use: (program: Program) => Promise<void>,
): Promise<void> {
  const { file, remove } = await bundleWithSeams(program)
  try {
    const loaded: Program & typeof import('../crash/seeded-bugs.ts') = await import(pathToFileURL(file).href)
    loaded.sow(name)
    await use(loaded)
  } finally {
    remove()
  }
}

export async function runSeeds({ file }: Bundle, options: RunOptions<Count>): Promise<Summary<Count>> {
  return await inThreads(file, noCounts(), options)
}
