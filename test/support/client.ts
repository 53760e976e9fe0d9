import { type ClientOptions, CustomerOrderingClient, type Schemas } from 'customer-ordering-sdk'
import { type FakeRuntime, fakeRuntime } from './runtime.ts'

export const BASE_URL = 'https://api.example.com'
export const API_KEY = 'sk_test_5ecretAPIkey'

export interface TestClient<S extends Schemas> {
  readonly client: CustomerOrderingClient<S>
  readonly runtime: FakeRuntime
  readonly requests: SentRequest[]
  /** Number of requests that ended because their signal fired. */
  aborted(): number
}

/** A client whose fetch is a function, with automatic time. */
export function clientOver<S extends Schemas = Schemas>(
  answer: (request: SentRequest, count: number) => Answer | Promise<Answer>,
  options: ClientOptions<S> = {},
  runtime: FakeRuntime = fakeRuntime({ auto: true }),
): TestClient<S> {
  const { fetch, requests, aborted } = fakeFetch(answer)
  const client = new CustomerOrderingClient<S>(
    {
      baseUrl: BASE_URL,
      apiKey: API_KEY,
      dangerouslyAllowBrowser: true,
      fetch,
      ...options,
    } as ClientOptions<S>,
    runtime,
  )
  return { client, runtime, requests, aborted }
}

/** A request as the fake server received it. */
export interface SentRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Headers
  readonly body: string
}

/**
 * A fake server's response: a Response, JSON data for a 200, or `hang` to wait until the caller
 * aborts.
 */
export type Answer = Response | object | typeof hang

export const hang = Symbol('hang')

/** A fetch that calls a function with the request. It obeys its signal, as a real one does. */
export function fakeFetch(answer: (request: SentRequest, count: number) => Answer | Promise<Answer>): {
  readonly fetch: typeof fetch
  readonly requests: SentRequest[]
  readonly aborted: () => number
} {
  const requests: SentRequest[] = []
  let aborted = 0
  const fake = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init)
    const { method, headers, signal } = request
    const sent = { method, url: new URL(request.url), headers, body: await request.text() }
    requests.push(sent)
    const interrupted = new Promise<never>((_resolve, reject) => {
      const stop = (): void => {
        aborted++
        reject(signal.reason)
      }
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop, { once: true })
    })
    const pending = Promise.resolve(answer(sent, requests.length)).then((found) =>
      found === hang ? new Promise<never>(() => {}) : found,
    )
    const found = await Promise.race([pending, interrupted])
    return found instanceof Response ? found : json(found)
  }
  return { fetch: fake, requests, aborted: () => aborted }
}

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  })
}

/** An error of the service in its simplest form. */
export function problem(status: number, code = `E${status}`, headers: Record<string, string> = {}): Response {
  return json({ code, message: `status ${status}` }, status, headers)
}
