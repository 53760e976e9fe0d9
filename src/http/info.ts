import { defined } from '../defined.ts'
import type { ResponseInfo } from '../response-info.ts'
import { answerOf } from './attempt.ts'
import type { Trail } from './call.ts'
import { redact } from './redact.ts'
import { requestIdOf } from './request-id.ts'
import type { ResponseHeaders } from './transport.ts'

/** Fields of the last response that errors and results repeat. */
export function factsOf({ secrets, last }: Trail): Pick<ResponseInfo, 'status' | 'requestId'> {
  const answer = answerOf(last)
  return answer === undefined ? {} : factsOfAnswer(answer.status, answer.headers, secrets)
}

function factsOfAnswer(
  status: number,
  headers: ResponseHeaders,
  secrets: Iterable<string>,
): Pick<ResponseInfo, 'status' | 'requestId'> {
  return { status, ...defined({ requestId: requestIdOf(headers, secrets) }) }
}

/*
 * Makes the response info on first use, which is rare, with functions that hold nothing else of the
 * call, least of all its body. Accessors of object literals would not do: V8 keeps such objects
 * alive until the next full garbage collection and copies them to the old generation (measured with
 * Node 24).
 */

/** What came with the last response of a call. */
export function infoLater({ attempts, secrets, last }: Trail, durationMs: number): () => ResponseInfo {
  const answer = answerOf(last)
  return answer === undefined
    ? () => ({ attempts, durationMs, headers: noHeaders() })
    : answerInfo(answer.status, answer.headers, attempts, durationMs, secrets)
}

function answerInfo(
  status: number,
  headers: ResponseHeaders,
  attempts: number,
  durationMs: number,
  secrets: Iterable<string>,
): () => ResponseInfo {
  return () => ({
    ...factsOfAnswer(status, headers, secrets),
    attempts,
    durationMs,
    headers: cleaned(headers, secrets),
  })
}

/** The headers of the last response of a call. */
export function headersLater({ secrets, last }: Trail): () => Headers {
  const answer = answerOf(last)
  return answer === undefined ? noHeaders : answerHeaders(answer.headers, secrets)
}

function answerHeaders(headers: ResponseHeaders, secrets: Iterable<string>): () => Headers {
  return () => cleaned(headers, secrets)
}

/** The headers of a call without a response. */
export function noHeaders(): Headers {
  return new Headers()
}

/**
 * Fields of a response that errors and results repeat. A missing one must not be read from a
 * polluted `Object.prototype`.
 */
export function answerFacts(
  info: Pick<ResponseInfo, 'status' | 'requestId'>,
): Pick<ResponseInfo, 'status' | 'requestId'> {
  return defined({
    status: Object.hasOwn(info, 'status') ? info.status : undefined,
    requestId: Object.hasOwn(info, 'requestId') ? info.requestId : undefined,
  })
}

/** The headers of a response, as a redacted copy if the server echoed an API key. */
function cleaned(headers: ResponseHeaders, secrets: Iterable<string>): Headers {
  const clean: [string, string][] = []
  let found = false
  headers.forEach((value, name) => {
    const text = redact(value, secrets)
    found ||= text !== value
    clean.push([name, text])
  })
  return headers instanceof Headers && !found ? headers : new Headers(clean)
}
