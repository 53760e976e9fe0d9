/** Inserts the bug of a worker thread before the program that follows in the same bundle. */
import { workerData } from 'node:worker_threads'
import { sow } from './seeded-bugs.ts'

if (workerData?.bug !== undefined) sow(workerData.bug)

export { sow }
