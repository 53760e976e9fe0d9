import { defined } from '../defined.ts'
import type { ResponseInfo } from '../response-info.ts'
import { answerOf } from './attempt.ts'
import type { Trail } from './call.ts'
import { redact } from './redact.ts'
import { requestIdOf } from './request-id.ts'
import type { ResponseHeaders } from './transport.ts'

/** What errors and results repeat of the last answer of a call. */
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
 * What follows is made when somebody asks, which is seldom, by functions that hold nothing else of the call, its body
 * least of all. Not by accessors of object literals: V8 takes such an object for a live one until the next full garbage
 * collection, so that all of them are copied into the old generation (measured with Node 24).
 */

/** What came with the last answer of a call. */
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

/** The headers of the last answer of a call. */
export function headersLater({ secrets, last }: Trail): () => Headers {
  const answer = answerOf(last)
  return answer === undefined ? noHeaders : answerHeaders(answer.headers, secrets)
}

function answerHeaders(headers: ResponseHeaders, secrets: Iterable<string>): () => Headers {
  return () => cleaned(headers, secrets)
}

/** The headers where there was no answer. */
export function noHeaders(): Headers {
  return new Headers()
}

/** What errors and results repeat of an answer: what is missing there must not come out of a polluted `Object.prototype`. */
export function answerFacts(
  info: Pick<ResponseInfo, 'status' | 'requestId'>,
): Pick<ResponseInfo, 'status' | 'requestId'> {
  return defined({
    status: Object.hasOwn(info, 'status') ? info.status : undefined,
    requestId: Object.hasOwn(info, 'requestId') ? info.requestId : undefined,
  })
}

/** The headers of an answer; a cleaned copy if the server sent an API key back. */
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
