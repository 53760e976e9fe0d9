/** Installs other versions of Node and of compilers, and a project with the optional peers. */
import { cp, mkdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { root } from '../../tools/build/ensure-built.ts'
import { installVersions } from './install-versions.ts'
import setupPackage from './setup.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Project with the package, its dependencies and the optional peers. */
    readonly consumerWithPeers: string
    /** Folder of the installed test/package/versions. */
    readonly versions: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const versions = await installVersions()
  project.provide('versions', versions)
  const tearDown = await setupPackage(project)
  const consumer = project.getProvidedContext().consumer
  const consumerWithPeers = join(dirname(consumer), 'consumer-with-peers')
  await cp(consumer, consumerWithPeers, { recursive: true, verbatimSymlinks: true })
  // The oldest version in the package's range. Later versions of undici need a later Node than the
  // package.
  const peers = {
    '@opentelemetry/api': join(versions, 'node_modules/opentelemetry-api-1.3'),
    msw: join(root, 'node_modules/msw'),
    undici: join(versions, 'node_modules/undici-7'),
  }
  for (const [peer, path] of Object.entries(peers)) {
    const place = join(consumerWithPeers, 'node_modules', peer)
    await mkdir(dirname(place), { recursive: true })
    await symlink(path, place)
  }
  project.provide('consumerWithPeers', consumerWithPeers)
  return tearDown
}
