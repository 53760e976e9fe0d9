/** Runs before each file of tests where a bug is provided; an empty name stands for none. */
import { inject } from 'vitest'
import { sow } from './seeded-bugs.ts'

declare module 'vitest' {
  interface ProvidedContext {
    readonly bug: string
  }
}

const name = inject('bug')
if (name !== '') sow(name)
