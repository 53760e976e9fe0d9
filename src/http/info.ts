import { bare, defined } from '../defined.ts'
import type { ResponseInfo } from '../response-info.ts'
import { answerOf } from './attempt.ts'
import type { Trail } from './call.ts'
import { redact, requestIdOf } from './redact.ts'
import type { ResponseHeaders } from './transport.ts'

type AnswerFacts = Pick<ResponseInfo, 'status' | 'requestId'>

const NO_ANSWER = { status: undefined, headers: undefined } as const

export function factsOf({ secrets, last }: Trail): AnswerFacts {
  const { status, headers } = answerOf(last) ?? NO_ANSWER
  return defined({ status, requestId: headers && requestIdOf(headers, secrets) })
}

// infoLater() and headersLater() return functions that do not refer to the response body. Objects
// with getters would keep large bodies in memory: V8 frees such objects only in a full garbage
// collection (measured with Node 24).

export function infoLater({ attempts, secrets, last }: Trail, durationMs: number): () => ResponseInfo {
  const { status, headers } = answerOf(last) ?? NO_ANSWER
  return () => ({
    ...defined({ status, requestId: headers && requestIdOf(headers, secrets) }),
    attempts,
    durationMs,
    headers: redacted(headers, secrets),
  })
}

export function headersLater({ secrets, last }: Trail): () => Headers {
  const { headers } = answerOf(last) ?? NO_ANSWER
  return () => redacted(headers, secrets)
}

export function noHeaders(): Headers {
  return new Headers()
}

export function answerFacts(info: AnswerFacts): AnswerFacts {
  const { status, requestId } = bare(info)
  return defined({ status, requestId })
}

function redacted(headers: ResponseHeaders | undefined, secrets: Iterable<string>): Headers {
  const clean: [string, string][] = []
  let found = false
  headers?.forEach((value, name) => {
    const text = redact(value, secrets)
    found ||= text !== value
    clean.push([name, text])
  })
  return headers instanceof Headers && !found ? headers : new Headers(clean)
}
