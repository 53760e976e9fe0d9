import { redact } from './redact.ts'
import type { ResponseHeaders } from './transport.ts'

/** Headers that services and gateways use for a request id. */
export const REQUEST_ID: readonly string[] = [
  'x-request-id',
  'request-id',
  'x-correlation-id',
  'x-amzn-requestid',
  'cf-ray',
]

/** The request id of a response, from the first of the usual headers that has one. */
export function requestIdOf(headers: ResponseHeaders, secrets: Iterable<string>): string | undefined {
  for (const name of REQUEST_ID) {
    const value = headers.get(name)
    if (value !== null && /^[\x21-\x7e]{1,200}$/.test(value)) return redact(value, secrets)
  }
  return undefined
}
