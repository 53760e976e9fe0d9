import type { Server } from 'node:http'
import tls from 'node:tls'
import { onTestFinished } from 'vitest'
import type { AttemptResult } from '../../src/http/attempt.ts'
import { AUTHORITY } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { listening } from '../support/raw-server.ts'

/** An address without a listener: a port that was free a moment ago. */
export const refusing = async (): Promise<string> => `http://127.0.0.1:${await freePort()}`

/** Serves until the test ends, and returns the host with its port. */
export async function serving(server: Server): Promise<string> {
  const port = await listening(server)
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return `127.0.0.1:${port}`
}

/** Lets this process trust the tests' authority until the test ends. */
export function trustAuthority(): void {
  const before = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...before, AUTHORITY])
  onTestFinished(() => tls.setDefaultCACertificates(before))
}

/** The attempt's verdict on whether anything was sent, or the kind of another outcome. */
export const unsentOf = (result: AttemptResult): unknown =>
  result.kind === 'failed' ? result.unsent : result.kind
