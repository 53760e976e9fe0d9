import { expect, it } from 'vitest'
import { concurrently } from '../../../../src/orders/commands/concurrently.ts'
import { all } from '../../../support/calls.ts'

it('results that are undefined and arrive at the same time do not stop the run', async () => {
  const items = Array.from({ length: 20 }, (_, index) => index)
  let done = 0
  const results = concurrently(items, {
    concurrency: 8,
    // As the responses of a database that arrive in one packet.
    work: () => new Promise<undefined>((resolve) => setImmediate(() => resolve(void done++))),
    signal: undefined,
    aborted: () => new Error('aborted'),
    stop: undefined,
  })
  expect(await all(results)).toHaveLength(20)
  expect(done).toBe(20)
})
