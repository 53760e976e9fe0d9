/**
 * With SANDBOX_RECORDING=<file>, every call of the tests is appended to that file as one line.
 * `tools/packages/openapi` sends them through a validating proxy.
 */
import { appendFileSync } from 'node:fs'
import type { SandboxOperation } from 'customer-ordering-sdk/sandbox'

export interface Exchange {
  readonly operation: SandboxOperation | null
  /** True if a fault rule created the response. */
  readonly madeByFault: boolean
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  }
  readonly answer: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  }
}

const file = process.env['SANDBOX_RECORDING']

/** Records an exchange if requested. */
export function record(exchange: Exchange): void {
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(exchange)}\n`)
}
