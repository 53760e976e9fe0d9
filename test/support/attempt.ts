import { undiciTransport } from 'customer-ordering-sdk/undici'
import { inject } from 'vitest'
import { type AttemptRequest, type AttemptResult, sendOver } from '../../src/http/attempt.ts'
import { kyTransport } from '../../src/http/ky-transport.ts'
import type { Transport } from '../../src/http/transport.ts'
import { platformRuntime, type Runtime } from '../../src/runtime.ts'

/**
 * Sends one request as the client does. By default, with real timers and the transport under test.
 */
export function attempt(
  url: string,
  changes: Partial<AttemptRequest> = {},
  {
    transport = transportUnderTest() ?? kyTransport(),
    runtime = platformRuntime,
  }: { transport?: Transport; runtime?: Runtime } = {},
): Promise<AttemptResult> {
  return sendOver(
    transport,
    runtime,
  )({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/json', 'idempotency-key': 'idem_1' },
    body: '{"a":1}',
    timeout: 10_000,
    maxBytes: 1024 * 1024,
    signal: undefined,
    isLate: undefined,
    ...changes,
  })
}

/** The options of a read, without a body. */
export const asRead: Partial<AttemptRequest> = { method: 'GET', headers: {}, body: undefined }

declare module 'vitest' {
  interface ProvidedContext {
    /** The transport of each project's tests. Undefined is the platform's fetch. */
    readonly transport: 'undici' | undefined
  }
}

let undici: Transport | undefined

/** The transport that this run tests. Undefined means the client's default. */
export function transportUnderTest(): Transport | undefined {
  if (inject('transport') !== 'undici') return undefined
  undici ??= undiciTransport()
  return undici
}
