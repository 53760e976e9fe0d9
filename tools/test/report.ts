/** Reads the reports of Vitest's JSON reporter. */
import { globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from '../build/ensure-built.ts'

interface TestFile {
  readonly name: string
  readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
}

interface Report {
  readonly success: boolean
  readonly testResults: readonly TestFile[]
}

/** The results of a test run. */
export interface Counts {
  readonly passed: number
  readonly failed: number
  /** Titles of tests that were skipped. */
  readonly missing: readonly string[]
  /** Problems of the run other than failed tests. */
  readonly complaints: readonly string[]
}

/** The reports in a folder. */
export function readReports(folder: string): readonly Report[] {
  return globSync(join(folder, '*.json')).map((path) => JSON.parse(readFileSync(path, 'utf8')))
}

/**
 * Counts the tests of reports. In CI, a skipped test is a problem. With `everyFile`, so is a test
 * file that did not run: a suite that did not run must not count as passed.
 */
export function countsOf(reports: readonly Report[], everyFile: boolean): Counts {
  const files = reports.flatMap(({ testResults }) => testResults)
  const tests = files.flatMap(({ assertionResults }) => assertionResults)
  const count = (wanted: string): number => tests.filter(({ status }) => status === wanted).length
  const missing = tests
    .filter(({ status }) => status !== 'passed' && status !== 'failed')
    .map(({ fullName }) => fullName)
  const complaints = [
    ...(reports.every(({ success }) => success) && tests.length > 0 ? [] : ['Vitest reports a failure']),
    ...(everyFile ? filesWithout(files).map((file) => `did not run: ${file}`) : []),
    ...(process.env['CI'] === 'true' ? missing.map((title) => `skipped: ${title}`) : []),
  ]
  return { passed: count('passed'), failed: count('failed'), missing, complaints }
}

function filesWithout(ran: readonly TestFile[]): readonly string[] {
  const withTests = new Set(
    ran.flatMap(({ name, assertionResults }) => (assertionResults.length > 0 ? relative(root, name) : [])),
  )
  const all = globSync(['test/**/*.test.ts', 'test/**/*.test-d.ts'], {
    cwd: root,
    exclude: ['**/node_modules/**'],
  })
  return all.filter((file) => !withTests.has(file))
}
