/** The unchanged files of test/client. */
import { files } from 'virtual:client-tests'
import { runAndReport } from '../support/page-report.ts'
import { provideTurns } from '../support/page-turns.ts'

provideTurns()

const only = new URLSearchParams(location.search).get('only')
void runAndReport(
  Object.fromEntries(Object.entries(files).filter(([file]) => only === null || file === only)),
)
