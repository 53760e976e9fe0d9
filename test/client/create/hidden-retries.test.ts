import { describe, expect } from 'vitest'
import { failure, Lab } from '../../support/lab.ts'
import { it } from '../../support/lab-test.ts'

const MINUTE = 60_000

/** Sends a request again if its response is lost, as fetch-retry and a service worker may. */
const retrying =
  ({ sandbox }: Lab): typeof fetch =>
  async (input, init) => {
    const request = new Request(input, init)
    return await sandbox.fetch(request.clone()).catch(() => sandbox.fetch(request))
  }

/** Only the response to the second request arrives: a refusal, after the order was charged. */
async function refusedAfterCharge(status: number): Promise<Lab> {
  const lab = new Lab({ behaviour: { keyLifetime: 20 * MINUTE } })
  lab.fault({ type: 'commitThenDrop' })
  lab.fault({ type: 'status', status, code: 'REFUSED' })
  expect(
    await failure(lab.client({ fetch: retrying(lab), maxRetries: 0 }).orders.create(REQUEST)),
  ).toMatchObject({
    status,
  })
  lab.charged()
  return lab
}

const REQUEST = { serviceId: 'svc_standard', target: '@a', quantity: 10, metadata: { externalOrderId: 'r1' } }

describe.each([401, 402, 429])('a fetch that hides a charge behind a %i', (status) => {
  it('the order is looked up, and not bought again, once its key may be forgotten', async () => {
    const lab = await refusedAfterCharge(status)
    lab.runtime.jump(25 * MINUTE)
    const order = await lab.client({ fetch: retrying(lab) }).orders.create(REQUEST)
    expect(order.id).toBe(lab.charged())
  })

  it('another refusal does not restart the window of the key', async () => {
    const lab = await refusedAfterCharge(status)
    lab.runtime.jump(15 * MINUTE)
    lab.fault({ type: 'status', status, code: 'REFUSED' })
    const client = lab.client({ fetch: retrying(lab), maxRetries: 0 })
    await failure(client.orders.create(REQUEST))
    lab.runtime.jump(15 * MINUTE)
    const order = await client.orders.create(REQUEST)
    expect(order.id).toBe(lab.charged())
  })
})

it('a key that may have bought behind a refusal is kept if it belongs to another payload', async () => {
  const lab = await refusedAfterCharge(422)
  const changed = { ...REQUEST, metadata: { ...REQUEST.metadata, note: 'again' } }
  const client = lab.shared({ fetch: retrying(lab) })
  expect(await failure(client.orders.create(changed))).toMatchObject({
    code: 'idempotency_conflict',
    charged: 'unknown',
  })
  lab.charged()
})
