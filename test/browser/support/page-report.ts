/** Communication between a page and the test that opened it. */
import { type FileReport, runFile } from './page-tests.ts'

async function tell(path: string, what: unknown): Promise<unknown> {
  const response = await fetch(`${path}${location.search}`, { method: 'POST', body: JSON.stringify(what) })
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`)
  return await response.json()
}

/** Sends a request to the test that opened the page. */
export async function ask(question: unknown): Promise<unknown> {
  return await tell('/control', question)
}

/** Runs tests file by file, and reports the results and the policy violations of that time. */
export async function runAndReport(files: Readonly<Record<string, () => void>>): Promise<void> {
  const reports: FileReport[] = []
  for (const [file, define] of Object.entries(files)) {
    const report = await runFile(file, define)
    reports.push(report)
    await tell('/progress', report)
  }
  // The browser reports violations in separate tasks, so wait for them.
  await new Promise((resolve) => setTimeout(resolve, 50))
  await tell('/done', {
    files: reports,
    violations: window.violations,
    trustedTypes: 'trustedTypes' in window,
  })
}
