/** Adds jobs to the queue. The id of a job is the reference of its order, so adding it twice is one job, and one order. */
import { Queue } from 'bullmq'
import { type OrderJob, QUEUE, redis } from './queue.ts'

export async function enqueue(orders: ReadonlyMap<string, OrderJob>): Promise<void> {
  const queue = new Queue<OrderJob, string>(QUEUE, { connection: redis })
  await queue.addBulk(
    [...orders].map(([reference, data]) => ({
      name: 'order',
      data,
      opts: {
        // No colon in it: BullMQ refuses that.
        jobId: reference,
        // Trying again is safe, however often: it is the same order each time.
        attempts: 50,
        backoff: { type: 'fixed', delay: 250 },
      },
    })),
  )
  await queue.close()
}
