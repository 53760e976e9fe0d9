import { createUndiciFetch, type UndiciFetch } from 'customer-ordering-sdk/undici'
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** What the tests of a project send with; nothing is the platform's fetch. */
    readonly transport: 'undici' | undefined
  }
}

let undici: UndiciFetch | undefined

/** The fetch that this run of the tests is about; nothing for the platform's own, which the client finds by itself. */
export function fetchUnderTest(): typeof fetch | undefined {
  if (inject('transport') !== 'undici') return undefined
  undici ??= createUndiciFetch()
  return undici
}
