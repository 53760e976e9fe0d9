/** Runs before each test file that gets a bug. An empty name means none. */
import { inject } from 'vitest'
import { sow } from './seeded-bugs.ts'

declare module 'vitest' {
  interface ProvidedContext {
    readonly bug: string
  }
}

const name = inject('bug')
if (name !== '') sow(name)
