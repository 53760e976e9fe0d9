import type { RetryEvent } from 'customer-ordering-sdk'
import { expect } from 'vitest'
import { it, sameRequest } from '../../support/history.ts'
import { order } from '../../support/lab.ts'

it.each([true, false])(
  'a call waits 15 s at most for another claim, then claims the order (charged: %s)',
  async (lab, charged) => {
    await lab.dies((orders) => orders.create(order('r1')), { charged })
    const began = lab.runtime.now()
    const { id } = await lab.elsewhere().orders.create(order('r1'))
    expect(id).toBe(lab.charged())
    expect(lab.runtime.now() - began).toBe(15_000)
    sameRequest(lab)
  },
)

it('a claim lasts for a window and ten minutes at most, however long its call may take', async (lab) => {
  await lab.dies((orders) => orders.create(order('r1'), { totalTimeout: Number.MAX_SAFE_INTEGER }))
  const { firstSentAt = 0, busyUntil } = (await lab.record('ref:r1')) ?? {}
  expect(busyUntil).toBe(firstSentAt + 30 * 60_000)
  lab.runtime.jump(36 * 60_000)
  await lab.orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
})

it('a waiting call reads the record after 50 ms, then at doubled intervals of one second at most', async (lab) => {
  await lab.dies((orders) => orders.create(order('r1')))
  const began = lab.runtime.now()
  const reads: number[] = []
  const waiting = lab.elsewhere({}, (operation) => {
    if (operation === 'get') reads.push(lab.runtime.now() - began)
    return undefined
  })
  await waiting.orders.create(order('r1'))
  expect(reads.slice(0, 8)).toEqual([0, 50, 150, 350, 750, 1550, 2550, 3550])
  expect(reads).toContain(15_000)
})

it('hooks and logger are told once when the wait for another claim begins', async (lab) => {
  await lab.dies((orders) => orders.create(order('r1')))
  const retries: RetryEvent[] = []
  const lines: string[] = []
  const log = (line: string): void => void lines.push(line)
  const logger = { debug() {}, info: log, warn: log, error: log }
  const hooks = { onRetry: (event: RetryEvent) => void retries.push(event) }
  await lab.elsewhere({ hooks, logger, logLevel: 'info' }).orders.create(order('r1'))
  const idempotencyKey = lab.posts[0]?.key
  expect(retries).toMatchObject([
    { reason: 'claimed', attempt: 0, delayMs: 15_000, operation: 'orders.create', idempotencyKey },
  ])
  // A healthy peer is normal.
  expect(lines).toEqual([])
})

it("if another call takes over a live call's claim, both calls return the same order", async (lab) => {
  const slow = lab.process()
  lab.fault({ type: 'delay', ms: 25_000 }, 1, 'createOrder')
  const { ending } = await lab.begin(() => slow.client.orders.create(order('r1')))
  const { id } = await lab.elsewhere().orders.create(order('r1'))
  expect((await ending).id).toBe(id)
  expect(id).toBe(lab.charged())
})
