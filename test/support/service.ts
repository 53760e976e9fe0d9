import { type ClientOptions, CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox, type Sandbox, type SandboxOptions } from 'customer-ordering-sdk/sandbox'
import { type FakeRuntime, fakeRuntime } from './runtime.ts'

/** A client of a sandbox, on one clock that moves by itself. */
export interface Service {
  readonly sandbox: Sandbox
  readonly runtime: FakeRuntime
  readonly client: CustomerOrderingClient
  /** Another client of the same sandbox, on the same clock. */
  connect(options?: ClientOptions): CustomerOrderingClient
  /** Time at which each request was sent, milliseconds from the start. */
  readonly sentAt: number[]
}

/** Makes a sandbox and a client of it. */
export function service(
  options: ClientOptions = {},
  sandboxOptions: SandboxOptions = {},
  runtime: FakeRuntime = fakeRuntime({ auto: true }),
): Service {
  const sandbox = createSandbox({
    now: runtime.now,
    sleep: (milliseconds) =>
      new Promise((resolve) => {
        runtime.setTimer(resolve, milliseconds)
      }),
    ...sandboxOptions,
  })
  const sentAt: number[] = []
  const fetch: typeof globalThis.fetch = (input, init) => {
    sentAt.push(runtime.monotonic())
    return sandbox.fetch(input, init)
  }
  const connect = (changes: ClientOptions = {}): CustomerOrderingClient =>
    new CustomerOrderingClient(
      {
        baseUrl: sandbox.baseUrl,
        apiKey: sandbox.apiKey,
        dangerouslyAllowBrowser: true,
        account: 'shop',
        fetch,
        ...options,
        ...changes,
      },
      runtime,
    )
  return { sandbox, runtime, client: connect(), connect, sentAt }
}

/** The error of a call that must fail. */
export async function errorOf(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    (value) => {
      throw new Error(`the call succeeded: ${JSON.stringify(value)}`)
    },
    (error: unknown) => error,
  )
}
