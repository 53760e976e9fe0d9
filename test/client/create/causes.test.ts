import { responseInfo } from 'customer-ordering-sdk'
import { expect } from 'vitest'
import { it } from '../../support/history.ts'
import { failure, order } from '../../support/lab.ts'

/** The text of the bug's error must stay hidden: it may quote the request. */
const SECRET = 'https://user:hunter2@proxy.example/?token=s3cret\n    at secret (https://x:y@z:1:2)'

function brokenFetch(): never {
  throw new TypeError(`cannot connect to ${SECRET}`)
}

it("an error names a bug in the caller's fetch, with its stack in the cause but without its text", async (lab) => {
  const client = lab.client({ fetch: async () => brokenFetch(), maxRetries: 0 })
  const error = await failure(client.orders.create(order('r1')))
  expect(error).toMatchObject({ code: 'connection', charged: 'unknown' })
  const cause = error.cause as Error
  expect(cause.name).toBe('TypeError')
  expect(cause.stack).toMatch(/^TypeError\n +at brokenFetch .*causes\.test\.ts:\d+:\d+\)/)
  expect(`${error.stack}${error.message}${cause.stack}${cause.message}`).not.toMatch(/hunter2|s3cret|x:y@z/)
})

const B = '\n    at b (/b.ts:3:4)'
it.each([
  ['a stack without its message', 'TypeError: other\n    at a (file:///a.ts:1:2)', ''],
  ['places with a password', `TypeError: m\n    at a (https://u:p@h/a.ts:1:2)${B}`, 'at b'],
  ['places with a query', `TypeError: m\n    at a (https://h/a.ts?key=x:1:2)${B}`, 'at b'],
  ['a stack that is none', 7, ''],
])('an error with %s shows only safe details', async (lab, _what, stack, kept) => {
  const thrown = Object.assign(new TypeError('m'), { stack })
  const client = lab.client({ fetch: () => Promise.reject(thrown), maxRetries: 0 })
  const shown = ((await failure(client.balance.retrieve())).cause as Error).stack ?? ''
  if (kept !== '') expect(shown.split('\n').slice(1).join().trim()).toMatch(new RegExp(`^${kept} `))
  expect(shown).not.toMatch(/u:p|key=x|file:\/\/\/a/)
})

it('the request id of a later error is not told of the response that proved the charge', async (lab) => {
  const fetch: typeof globalThis.fetch = async (...request) => {
    await lab.sandbox.fetch(...request)
    const [status, id] = lab.posts.length === 1 ? [201, 'req-1'] : [503, 'req-2']
    return new Response('{', { status, headers: { 'x-request-id': id } })
  }
  const error = await failure(lab.client({ fetch }).orders.create(order('r1')))
  expect(error).toMatchObject({ code: 'invalid_response', charged: 'yes', status: 201 })
  expect(error.requestId).toBeUndefined()
})

it('a call tells its own attempts of an order that another call has settled meanwhile', async (lab) => {
  lab.fault({ type: 'stall', commit: true }, 1, 'createOrder')
  const { ending } = await lab.begin(() => lab.create(order('r1'), { timeout: 5000, maxRetries: 0 }))
  await lab.shared().orders.recover({ takeOver: true })
  expect(responseInfo(await ending)).toMatchObject({ attempts: 1, replayed: true })
})
