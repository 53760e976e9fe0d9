import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Runs a program. Resolves with what it printed, and rejects with that if it fails. */
export const run = promisify(execFile)
