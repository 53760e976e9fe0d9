import { type ClientOptions, CustomerOrderingClient, type Schemas } from 'customer-ordering-sdk'
import type { Sandbox } from 'customer-ordering-sdk/sandbox'
import { type Answer, fakeFetch, type SentRequest } from './fake-fetch.ts'
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

export function clientOf(sandbox: Sandbox, options: ClientOptions = {}): CustomerOrderingClient {
  const { baseUrl, apiKey, fetch } = sandbox
  return new CustomerOrderingClient(
    { baseUrl, apiKey, dangerouslyAllowBrowser: true, fetch, ...options },
    fakeRuntime({ auto: true }),
  )
}
