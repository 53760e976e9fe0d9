import {
  createSandbox,
  createTestClock,
  type Sandbox,
  type SandboxOptions,
} from 'customer-ordering-sdk/sandbox'
import { complaintAbout } from './description.ts'

/** A body that the default catalogue accepts; costs 500. */
export const validBody = {
  serviceId: 'svc_standard',
  target: '@ada',
  quantity: 2,
  metadata: { externalOrderId: 'shop-1' },
} as const

/** A create request for any fetch. A string is sent unchanged. */
export const orderInit = (
  apiKey: string,
  key = 'k',
  body: unknown = validBody,
): RequestInit & { readonly headers: Record<string, string> } => ({
  method: 'POST',
  headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', 'idempotency-key': key },
  body: typeof body === 'string' ? body : JSON.stringify(body),
})

export interface Answered {
  readonly status: number
  readonly headers: Headers
  /** The parsed JSON, or the text. */
  readonly body: unknown
}

/** Gives each request a number, which identifies it in the log. */
const MARK = 'x-call'
const calls = new WeakMap<Sandbox, number>()

/**
 * Plain HTTP calls to a sandbox, without the client. Every response is checked against the OpenAPI
 * description, except those that fault rules create.
 */
export function caller(sandbox: Sandbox, apiKey: string | null = sandbox.apiKey) {
  const authorization: Record<string, string> = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }
  const send = async (path: string, init: RequestInit = {}): Promise<Answered> => {
    const number = (calls.get(sandbox) ?? 0) + 1
    calls.set(sandbox, number)
    const call = String(number)
    const headers = { ...authorization, ...init.headers, [MARK]: call }
    const response = await sandbox.fetch(sandbox.baseUrl + path, { ...init, headers })
    const text = await response.text()
    const json = response.headers.get('content-type')?.includes('json') === true && text !== ''
    const answer: Answered = {
      status: response.status,
      headers: response.headers,
      body: json ? (JSON.parse(text) as unknown) : text,
    }
    const request = sandbox.requests.findLast((entry) => entry.headers[MARK] === call)
    // The log may have been shortened or cleared meanwhile.
    if (request === undefined) return answer
    const complaint = complaintAbout(sandbox, request, answer)
    if (complaint !== null) throw new Error(`not as the OpenAPI description says: ${complaint}`)
    return answer
  }
  const order = (key: string | null, body: unknown = validBody, init: RequestInit = {}) =>
    send('/v1/orders', {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...init,
      headers: {
        'content-type': 'application/json',
        ...(key !== null && { 'idempotency-key': key }),
        ...init.headers,
      },
    })
  /** The statuses of these orders, sent one after another: a key, or a key and a body. */
  const statuses = async (...orders: (string | readonly [string | null, unknown])[]) => {
    const answers: number[] = []
    for (const each of orders) {
      const [key, body] = typeof each === 'string' ? [each] : each
      answers.push((await order(key, body)).status)
    }
    return answers
  }
  return { send, get: (path: string) => send(path), order, statuses }
}

/** The package's test clock, which tests move by hand, with the number of waits. */
export function manualClock(start?: number) {
  const { now, pass: advance, runtime } = createTestClock(start)
  let sleepers = 0
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    sleepers++
    return new Promise<void>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const cancel = runtime.setTimer(resolve, ms)
      signal?.addEventListener('abort', () => {
        cancel()
        reject(signal.reason)
      })
    }).finally(() => sleepers--)
  }
  return { options: { now, sleep }, now, advance, sleepers: () => sleepers }
}

/** A sandbox with a manual clock, and calls of its personal customer. */
export function scene(options: SandboxOptions = {}) {
  const clock = manualClock()
  const sandbox = createSandbox({ ...clock.options, ...options })
  return { clock, sandbox, api: caller(sandbox) }
}

/** Lets all pending work run without time passing. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Waits, without a fixed time, for an event outside this process's microtasks. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await settled()
}
