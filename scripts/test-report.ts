/**
 * Reads what Vitest's JSON reporter wrote, and fails if a test failed, was skipped, or did not run at all:
 *
 *     node scripts/test-report.ts .tmp/test-results.json
 *
 * With `--count` it only prints the numbers of passed and of failed tests.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { root } from './ensure-built.ts'

interface Results {
  readonly success: boolean
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

const path = process.argv.at(-1) ?? ''
const results: Results | undefined = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined

if (process.argv.includes('--count')) {
  process.stdout.write(`${results?.numPassedTests ?? 0} ${results?.numFailedTests ?? 0}\n`)
} else {
  const complaints = results === undefined ? ['no test ran'] : complaintsAbout(results)
  for (const complaint of complaints) process.stdout.write(`${complaint}\n`)
  process.exitCode = complaints.length === 0 ? 0 : 1
}

function complaintsAbout({ success, testResults }: Results): readonly string[] {
  const ran = new Map(testResults.map(({ name, ...file }) => [relative(root, name), file]))
  const files = globSync(['test/**/*.test.ts', 'test/**/*.test-d.ts'], {
    cwd: root,
    exclude: ['**/node_modules/**'],
  })
  const missing = files.filter((file) => (ran.get(file)?.assertionResults.length ?? 0) === 0)
  const others = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status !== 'passed')
      .map(({ status, fullName }) => `${status}: ${relative(root, name)}: ${fullName}`),
  )
  return [
    ...missing.map((file) => `did not run: ${file}`),
    ...others,
    ...(success ? [] : ['Vitest reports a failure']),
  ]
}
