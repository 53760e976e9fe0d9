/**
 * With SANDBOX_RECORDING=<file> every call of the tests is written to that file, one in a line. `tools/openapi` sends them
 * through a validating proxy.
 */
import { appendFileSync } from 'node:fs'
import type { SandboxOperation } from 'customer-ordering-sdk/sandbox'

export interface Exchange {
  readonly operation: SandboxOperation | null
  /** The answer is one that a fault rule made. */
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

/** Writes an exchange down if that was asked for. */
export function record(exchange: Exchange): void {
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(exchange)}\n`)
}
