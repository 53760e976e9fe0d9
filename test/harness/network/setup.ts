import type { TestProject } from 'vitest/node'
import { installOnce } from '../../package/install-once.ts'

/** Installs the other versions of Node. */
export default async function setup(project: TestProject): Promise<void> {
  project.provide('versions', await installOnce('versions'))
}
