import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Runs a program. Resolves with what it printed, and rejects with that if it fails. */
export const run = promisify(execFile)

/** The exit code of a program and what it printed, even if it failed. */
export const endOf = (running: ReturnType<typeof run>) =>
  running.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  )
