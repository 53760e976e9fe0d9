import { isCustomerOrderingError } from 'customer-ordering-sdk'
import { describe, expect, it } from 'vitest'
import { errorOf } from '../../support/calls.ts'
import { failure, Lab, order } from '../../support/lab.ts'

describe("a bug in the caller's fetch", () => {
  /** The text of the bug's error must stay hidden: it may quote the request. */
  const SECRET = 'https://user:hunter2@proxy.example/?token=s3cret\n    at secret (https://x:y@z:1:2)'

  function brokenFetch(): never {
    throw new TypeError(`cannot connect to ${SECRET}`)
  }

  it("an error names a bug in the caller's fetch, with its stack in the cause but without its text", async () => {
    const lab = new Lab()
    const client = lab.client({ fetch: async () => brokenFetch(), maxRetries: 0 })
    const error = await failure(client.orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'connection', charged: 'unknown' })
    const cause = error.cause as Error
    expect(cause.name).toBe('TypeError')
    expect(cause.stack).toMatch(/^TypeError\n +at brokenFetch .*messages\.test\.ts:\d+:\d+\)/)
    expect(`${error.stack}${error.message}${cause.stack}${cause.message}`).not.toMatch(/hunter2|s3cret|x:y@z/)
  })

  it.each([
    ['a stack without its message', { stack: 'TypeError: other\n    at a (file:///a.ts:1:2)' }, ''],
    [
      'places with a password',
      { stack: 'TypeError: m\n    at a (https://u:p@h/a.ts:1:2)\n    at b (/b.ts:3:4)' },
      'at b',
    ],
    [
      'places with a query',
      { stack: 'TypeError: m\n    at a (https://h/a.ts?key=x:1:2)\n    at b (/b.ts:3:4)' },
      'at b',
    ],
    ['a stack that is none', { stack: 7 }, ''],
  ])('an error with %s shows only safe details', async (_what, changes, kept) => {
    const lab = new Lab()
    const thrown = Object.assign(new TypeError('m'), changes)
    const client = lab.client({ fetch: () => Promise.reject(thrown), maxRetries: 0 })
    const error: unknown = await errorOf(client.balance.retrieve())
    if (!isCustomerOrderingError(error)) throw error
    const stack = (error.cause as Error).stack ?? ''
    if (kept !== '') expect(stack.split('\n').slice(1).join().trim()).toMatch(new RegExp(`^${kept} `))
    expect(stack).not.toMatch(/u:p|key=x|file:\/\/\/a/)
  })
})
