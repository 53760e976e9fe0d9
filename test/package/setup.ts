/**
 * Packs the built package and installs it into an empty project, as a user would. Runs once for all
 * tests of this folder.
 */
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { isBuilt, root } from '../../tools/build/ensure-built.ts'
import { run } from '../support/run.ts'

declare module 'vitest' {
  interface ProvidedContext {
    readonly packedFiles: readonly string[]
    /** Project with only the package and its dependencies. */
    readonly consumer: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!isBuilt()) throw new Error('dist is missing or older than src: npm run build')
  const directory = await mkdtemp(join(tmpdir(), 'customer-ordering-sdk-'))
  await packAndInstall(project, directory)
  return () => rm(directory, { recursive: true, force: true })
}

async function packAndInstall(project: TestProject, directory: string): Promise<void> {
  const flags = ['--json', '--ignore-scripts', '--pack-destination', directory]
  const { stdout } = await run('npm', ['pack', ...flags], { cwd: root })
  const [{ filename, files }] = JSON.parse(stdout)
  project.provide(
    'packedFiles',
    files.map(({ path }: { readonly path: string }) => path),
  )

  const consumer = join(directory, 'consumer')
  await mkdir(consumer)
  await writeFile(join(consumer, 'package.json'), '{ "name": "consumer", "private": true }')
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
  await run('npm', ['install', ...quiet, join(directory, filename)], { cwd: consumer })
  await cp(join(root, 'test/package/consumer'), consumer, { recursive: true })
  project.provide('consumer', consumer)
}
