/**
 * Runs test files in one Vitest, once for each request of the parent, each time with another bug in
 * the source. Reports why the run does not prove that a test detected the bug, or nothing if it
 * does.
 */
import { join } from 'node:path'
import { createVitest, type TestModule } from 'vitest/node'
import { root } from '../../../../tools/build/ensure-built.ts'

/** The parent's request. Without a bug's name, the source has only seams, and every test must pass. */
export interface Trial {
  readonly number: number
  readonly bug: string
  /** Below `test`, without extensions. */
  readonly files: readonly string[]
}

const pathOf = (file: string): string => join(root, `test/${file}.test.ts`)

process.env['SEEDED_BUG'] = ''
const vitest = await createVitest('test', { root, watch: false, bail: 1, reporters: [{}] })

async function run({ bug, files }: Trial): Promise<string> {
  for (const project of vitest.projects) project.provide('bug', bug)
  const found = await vitest.globTestSpecifications(files.map(pathOf))
  // Exclude projects that run the same file with another transport.
  const own = found.filter(({ project, moduleId }) =>
    moduleId.startsWith(join(root, `test/${project.name}/`)),
  )
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(own)
  const ran = testModules.filter(({ moduleId }) => own.some((each) => each.moduleId === moduleId))
  return bug === '' ? broken(ran, files.length) : objectionTo(ran, unhandledErrors.length)
}

const failuresIn = (modules: readonly TestModule[]): string =>
  modules
    .flatMap((module) => [
      ...module.errors(),
      ...[...module.children.allTests('failed')].flatMap((test) => test.result().errors ?? []),
    ])
    .map(({ stack, message }) => stack ?? message)
    .join('\n')

function broken(modules: readonly TestModule[], count: number): string {
  const passed = modules.length === count && modules.every((module) => module.state() === 'passed')
  return passed ? '' : `${modules.length} of ${count} files ran\n${failuresIn(modules)}`
}

function objectionTo(modules: readonly TestModule[], unhandled: number): string {
  const failed = modules.flatMap(({ children }) => [...children.allTests('failed')])
  const output = failuresIn(modules)
  // A bug that does not load, or that names something missing, proves nothing about the tests.
  if (modules.some((module) => module.errors().length > 0)) return `no test ran\n${output}`
  if (failed.length === 0) return `no test notices it (${unhandled} errors outside of tests)`
  return /ReferenceError|SyntaxError|Cannot find module|Transform failed/.test(output)
    ? `it breaks the program\n${output}`
    : ''
}

// Run one after the other, because a run needs the whole Vitest.
let last = Promise.resolve()
process.on('message', (trial: Trial) => {
  last = last.then(async () => {
    process.send?.({ number: trial.number, objection: await run(trial) })
  })
})
process.on('disconnect', () => void last.then(() => vitest.close()).then(() => process.exit()))
