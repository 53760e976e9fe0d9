/**
 * Packs the built package and installs it into an empty project, as a user would, once for all tests of this folder.
 */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { isBuilt, root } from '../../scripts/ensure-built.ts'
import { installOnce } from './install-once.ts'

const run = promisify(execFile)

declare module 'vitest' {
  interface ProvidedContext {
    /** Paths in the packed file. */
    readonly packedFiles: readonly string[]
    /** Project with the package and its dependencies, nothing else. */
    readonly consumer: string
    /** The same with the optional peers. */
    readonly consumerWithPeers: string
    /** Folder of test/package/versions as installed. */
    readonly versions: string
    /** Folder of test/package/runners as installed. */
    readonly runners: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!isBuilt()) throw new Error('dist is missing or older than src: npm run build')
  const directory = await mkdtemp(join(tmpdir(), 'customer-ordering-sdk-'))
  const [versions, runners] = await Promise.all([installOnce('versions'), installOnce('runners')])
  project.provide('versions', versions)
  project.provide('runners', runners)
  await packAndInstall(project, directory, versions)
  return () => rm(directory, { recursive: true, force: true })
}

async function packAndInstall(project: TestProject, directory: string, versions: string): Promise<void> {
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

  const consumerWithPeers = join(directory, 'consumer-with-peers')
  await cp(consumer, consumerWithPeers, { recursive: true, verbatimSymlinks: true })
  // The oldest major of undici, because later ones need a later Node than the package does.
  const peers = { msw: join(root, 'node_modules/msw'), undici: join(versions, 'node_modules/undici-7') }
  for (const [peer, path] of Object.entries(peers))
    await symlink(path, join(consumerWithPeers, 'node_modules', peer))
  project.provide('consumerWithPeers', consumerWithPeers)
}
