import type { RetryEvent } from 'customer-ordering-sdk'
import { describe, expect } from 'vitest'
import { failure, Lab, order } from '../../support/lab.ts'
import { it } from '../../support/lab-test.ts'

/** A process that claims an order, sends it, and dies or stalls. */
async function claimed(lab: Lab, commit: boolean): Promise<ReturnType<Lab['process']>> {
  const process = lab.process()
  lab.fault({ type: 'stall', commit }, 1, 'createOrder')
  await lab.begin(() => process.client.orders.create(order('r1')))
  return process
}

describe("another process's claim", () => {
  it.each([true, false])(
    'is waited for 15 s and no more, then the order is claimed (charged: %s)',
    async (commit) => {
      const lab = new Lab()
      const process = await claimed(lab, commit)
      process.kill()
      const began = lab.runtime.now()
      const { id } = await lab.elsewhere().orders.create(order('r1'))
      expect(id).toBe(lab.charged())
      expect(lab.runtime.now() - began).toBeGreaterThanOrEqual(15_000)
      expect(lab.runtime.now() - began).toBeLessThan(16_000)
      expect(new Set(lab.posts.map(({ key, body }) => `${key} ${body}`)).size).toBe(1)
    },
  )

  it('is told to the hooks and to the logger when the wait begins, once', async (lab) => {
    const process = await claimed(lab, true)
    process.kill()
    const retries: RetryEvent[] = []
    const lines: string[] = []
    const logger = { debug() {}, info: (line: string) => void lines.push(line), warn() {}, error() {} }
    const hooks = { onRetry: (event: RetryEvent) => void retries.push(event) }
    await lab.elsewhere({ hooks, logger, logLevel: 'info' }).orders.create(order('r1'))
    expect(retries).toMatchObject([
      { reason: 'claimed', attempt: 0, delayMs: 15_000, operation: 'orders.create' },
    ])
    expect(lines).toHaveLength(1)
  })

  it('leaves its own result to a call that is waited for and ends in time', async (lab) => {
    lab.fault({ type: 'delay', ms: 10_000 }, 1, 'createOrder')
    const slow = lab.process()
    const { ending } = await lab.begin(() => slow.client.orders.create(order('r1')))
    const { id } = await lab.elsewhere().orders.create(order('r1'))
    expect((await ending).id).toBe(id)
    expect(lab.posts).toHaveLength(1)
  })

  it('may be taken from a call that is still alive: both hear of the one order', async (lab) => {
    const slow = lab.process()
    lab.fault({ type: 'delay', ms: 25_000 }, 1, 'createOrder')
    const { ending } = await lab.begin(() => slow.client.orders.create(order('r1')))
    const { id } = await lab.elsewhere().orders.create(order('r1'))
    expect((await ending).id).toBe(id)
    expect(id).toBe(lab.charged())
  })

  it("ends the wait of a call whose own time is shorter, which does not know of the other's money", async (lab) => {
    const process = await claimed(lab, true)
    process.kill()
    const began = lab.runtime.now()
    const error = await failure(lab.elsewhere({ totalTimeout: 5000 }).orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'timeout', charged: 'unknown' })
    expect(lab.runtime.now() - began).toBeLessThanOrEqual(6000)
    lab.sandbox.expectChargedOnce('r1')
  })
})
