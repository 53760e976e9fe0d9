/**
 * Adds jobs to the queue. A job's id is the reference of its order, so adding a job twice results
 * in one job and one order.
 */
import { Queue } from 'bullmq'
import { type OrderJob, QUEUE, redis } from './queue.ts'

export async function enqueue(orders: ReadonlyMap<string, OrderJob>): Promise<void> {
  const queue = new Queue<OrderJob, string>(QUEUE, { connection: redis })
  await queue.addBulk(
    [...orders].map(([reference, data]) => ({
      name: 'order',
      data,
      opts: {
        // A job id must not contain a colon: BullMQ rejects it.
        jobId: reference,
        // Any number of retries is safe: each retry requests the same order.
        attempts: 50,
        backoff: { type: 'fixed', delay: 250 },
      },
    })),
  )
  await queue.close()
}
