import { bare, defined } from '../defined.ts'
import type { ResponseInfo } from '../response-info.ts'
import { answerOf } from './attempt.ts'
import type { Trail } from './call.ts'
import { redact, requestIdOf } from './redact.ts'
import type { ResponseHeaders } from './transport.ts'

/** Fields of a response that both errors and results contain. */
type AnswerFacts = Pick<ResponseInfo, 'status' | 'requestId'>

/**
 * The fields of a call without a response. The object has no prototype, so a polluted
 * `Object.prototype` adds no field.
 */
const NO_ANSWER: { readonly status: undefined; readonly headers: undefined } = /* @__PURE__ */ bare({
  status: undefined,
  headers: undefined,
})

/** Returns the status and request id of a call's last response. */
export function factsOf({ secrets, last }: Trail): AnswerFacts {
  const { status, headers } = answerOf(last) ?? NO_ANSWER
  return defined({ status, requestId: headers && requestIdOf(headers, secrets) })
}

// The functions that infoLater() and headersLater() return hold no reference to the response body,
// which can be large. Object literals with getters would hold one: V8 keeps such literals alive
// until the next full garbage collection (measured with Node 24).

/** Returns a function that creates the response info of a call. */
export function infoLater({ attempts, secrets, last }: Trail, durationMs: number): () => ResponseInfo {
  const { status, headers } = answerOf(last) ?? NO_ANSWER
  return () => ({
    ...defined({ status, requestId: headers && requestIdOf(headers, secrets) }),
    attempts,
    durationMs,
    headers: cleaned(headers, secrets),
  })
}

/** Returns a function that creates the headers of a call's last response. */
export function headersLater({ secrets, last }: Trail): () => Headers {
  const { headers } = answerOf(last) ?? NO_ANSWER
  return () => cleaned(headers, secrets)
}

/** Returns the empty headers of a call without a response. */
export function noHeaders(): Headers {
  return new Headers()
}

/**
 * Returns the status and request id of a response info. Does not read an absent field from a
 * polluted `Object.prototype`.
 */
export function answerFacts(info: AnswerFacts): AnswerFacts {
  const { status, requestId } = bare(info)
  return defined({ status, requestId })
}

/** Returns the headers of a response, as a redacted copy if the server echoed an API key. */
function cleaned(headers: ResponseHeaders | undefined, secrets: Iterable<string>): Headers {
  const clean: [string, string][] = []
  let found = false
  headers?.forEach((value, name) => {
    const text = redact(value, secrets)
    found ||= text !== value
    clean.push([name, text])
  })
  return headers instanceof Headers && !found ? headers : new Headers(clean)
}
