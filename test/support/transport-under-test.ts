import type { Transport } from 'customer-ordering-sdk'
import { undiciTransport } from 'customer-ordering-sdk/undici'
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** What the tests of a project send with; nothing is the platform's fetch. */
    readonly transport: 'undici' | undefined
  }
}

let undici: Transport | undefined

/** The transport that this run of the tests is about; nothing for the client's own choice. */
export function transportUnderTest(): Transport | undefined {
  if (inject('transport') !== 'undici') return undefined
  undici ??= undiciTransport()
  return undici
}
