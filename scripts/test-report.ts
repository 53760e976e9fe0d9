/** Reads what Vitest's JSON reporter wrote. */
import { globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from './ensure-built.ts'

interface TestFile {
  readonly name: string
  readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
}

interface Report {
  readonly success: boolean
  readonly testResults: readonly TestFile[]
}

/** What came of the tests of a run. */
export interface Counts {
  readonly passed: number
  readonly failed: number
  /** Titles of tests that were skipped. */
  readonly missing: readonly string[]
  /** What is wrong with the run beside that. */
  readonly complaints: readonly string[]
}

/** The reports in a folder. */
export function readReports(folder: string): readonly Report[] {
  return globSync(join(folder, '*.json')).map((path) => JSON.parse(readFileSync(path, 'utf8')))
}

/**
 * Counts the tests of reports. In CI a skipped test is a complaint, and so is, where `everyFile` must have run, a file of
 * tests without one: a suite that did not run must not count as green.
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
