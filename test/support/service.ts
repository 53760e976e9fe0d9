import type { ClientOptions, CustomerOrderingClient } from 'customer-ordering-sdk'
import type { Sandbox, SandboxOptions } from 'customer-ordering-sdk/sandbox'
import { Lab } from './lab.ts'
import type { FakeRuntime } from './runtime.ts'

/** A client of a sandbox, with one automatic clock. */
export interface Service {
  readonly sandbox: Sandbox
  readonly runtime: FakeRuntime
  readonly client: CustomerOrderingClient
  /** Another client of the same sandbox, with the same clock. */
  connect(options?: ClientOptions): CustomerOrderingClient
}

export function service(
  options: ClientOptions = {},
  sandboxOptions: SandboxOptions = {},
  given?: FakeRuntime,
): Service {
  const lab = new Lab(sandboxOptions, given)
  const { sandbox, runtime } = lab
  const connect = (changes: ClientOptions = {}): CustomerOrderingClient =>
    lab.client({ ...options, ...changes })
  return { sandbox, runtime, client: connect(), connect }
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
