import type { TestProject } from 'vitest/node'
import { installVersions } from '../../package/install-versions.ts'

export default async function setup(project: TestProject): Promise<void> {
  project.provide('versions', await installVersions())
}
