import { type AttemptRequest, type AttemptResult, createTransport } from '../../src/http/transport.ts'
import { platformRuntime, type Runtime } from '../../src/runtime.ts'
import { fetchUnderTest } from './fetch-under-test.ts'

/** Sends one request as the client would, with real timers and the fetch under test unless others are given. */
export function attempt(
  url: string,
  changes: Partial<AttemptRequest> = {},
  {
    fetch = fetchUnderTest(),
    runtime = platformRuntime,
  }: { fetch?: typeof globalThis.fetch; runtime?: Runtime } = {},
): Promise<AttemptResult> {
  return createTransport({ fetch, runtime })({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/json', 'idempotency-key': 'idem_1' },
    body: '{"a":1}',
    timeout: 10_000,
    maxBytes: 1024 * 1024,
    ...changes,
  })
}

/** A read: no body, and nothing that belongs to one. */
export const asRead: Partial<AttemptRequest> = { method: 'GET', headers: {}, body: undefined }
