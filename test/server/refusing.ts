import { createServer } from 'node:net'
import type { AttemptResult } from '../../src/http/attempt.ts'
import { listening } from '../support/raw-server.ts'

/** An address without a listener: a port that was free a moment ago. */
export async function refusing(): Promise<string> {
  const server = createServer()
  const port = await listening(server)
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}

/** The attempt's verdict on whether anything was sent, or the kind of another outcome. */
export const unsentOf = (result: AttemptResult): unknown =>
  result.kind === 'failed' ? result.unsent : result.kind
