/** The tests that need no socket, no build and no database, for Stryker. */
import { matchesGlob, relative } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { project } from '../../../vitest.config.ts'

/** Globs below `test`, from `run.ts`. */
const tests: readonly string[] = JSON.parse(process.env['MUTATION_TESTS'] ?? '[]')

class AsListed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number =>
      tests.findIndex((glob) => matchesGlob(relative('test', moduleId), glob))
    return files.sort((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: AsListed },
    projects: ['unit', 'property', 'client', 'proxy'].map((name) =>
      project(name, {
        include: tests.filter((path) => path.startsWith(`${name}/`)).map((path) => `test/${path}`),
        testTimeout: 30_000,
        // Each mutant gets its own worker, in which all files of a project share the modules.
        isolate: false,
      }),
    ),
  },
})
