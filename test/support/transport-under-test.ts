import type { Transport } from 'customer-ordering-sdk'
import { undiciTransport } from 'customer-ordering-sdk/undici'
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** The transport of each project's tests. Undefined is the platform's fetch. */
    readonly transport: 'undici' | undefined
  }
}

let undici: Transport | undefined

/** The transport that this run tests. Undefined means the client's default. */
export function transportUnderTest(): Transport | undefined {
  if (inject('transport') !== 'undici') return undefined
  undici ??= undiciTransport()
  return undici
}
