/**
 * Runs files of tests in one Vitest, as often as the parent asks, each time with another bug in the source, and tells what
 * speaks against the run as proof that a test noticed the bug; nothing if it is one.
 */
import { join } from 'node:path'
import { createVitest, type TestModule } from 'vitest/node'
import { root } from '../../../../scripts/ensure-built.ts'

/** What the parent asks for. Without a name of a bug the source only has seams, and every test has to pass. */
export interface Trial {
  readonly number: number
  readonly bug: string
  /** Below `test`, without their endings. */
  readonly files: readonly string[]
}

const pathOf = (file: string): string => join(root, `test/${file}.test.ts`)

process.env['SEEDED_BUG'] = ''
const vitest = await createVitest('test', { root, watch: false, bail: 1, reporters: [{}] })

async function run({ bug, files }: Trial): Promise<string> {
  for (const project of vitest.projects) project.provide('bug', bug)
  const found = await vitest.globTestSpecifications(files.map(pathOf))
  // Without those that run the same file over another transport.
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
  // A bug that does not even load, or names what is not there, proves nothing about the tests.
  if (modules.some((module) => module.errors().length > 0)) return `no test ran\n${output}`
  if (failed.length === 0) return `no test notices it (${unhandled} errors outside of tests)`
  return /ReferenceError|SyntaxError|Cannot find module|Transform failed/.test(output)
    ? `it breaks the program\n${output}`
    : ''
}

// One after the other: a run has the whole of Vitest.
let last = Promise.resolve()
process.on('message', (trial: Trial) => {
  last = last.then(async () => {
    process.send?.({ number: trial.number, objection: await run(trial) })
  })
})
process.on('disconnect', () => void last.then(() => vitest.close()).then(() => process.exit()))
