/** Installs other versions of Node and of compilers, and a project with the optional peers. */
import { cp, mkdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { root } from '../../tools/build/ensure-built.ts'
import { install } from '../../tools/programs/install.ts'
import { engines } from './node-versions.ts'
import setupPackage from './setup.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Project with the package, its dependencies and the optional peers. */
    readonly consumerWithPeers: string
  }
}

/** The drivers of stores, with their types. */
const DRIVERS =
  'pg @types/pg postgres @electric-sql/pglite mysql2 redis ioredis @cloudflare/workers-types'.split(' ')

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  install('test/engines')
  const tearDown = await setupPackage(project)
  const consumer = project.getProvidedContext().consumer
  const consumerWithPeers = join(dirname(consumer), 'consumer-with-peers')
  await cp(consumer, consumerWithPeers, { recursive: true, verbatimSymlinks: true })
  // The oldest version in the package's range. Later versions of undici need a later Node than the
  // package.
  const peers = {
    '@opentelemetry/api': join(engines, 'node_modules/opentelemetry-api-1.3'),
    msw: join(root, 'node_modules/msw'),
    undici: join(engines, 'node_modules/undici-7'),
    ...Object.fromEntries(DRIVERS.map((name) => [name, join(engines, 'node_modules', name)])),
  }
  for (const [peer, path] of Object.entries(peers)) {
    const place = join(consumerWithPeers, 'node_modules', peer)
    await mkdir(dirname(place), { recursive: true })
    await symlink(path, place)
  }
  project.provide('consumerWithPeers', consumerWithPeers)
  return tearDown
}
