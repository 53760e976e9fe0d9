/** What those who add jobs and those who do them agree on. */

export const QUEUE = 'orders'

/** What is to be bought. The job's id is the order's reference. */
export interface OrderJob {
  readonly serviceId: string
  readonly target: string
  readonly quantity: number
}

/** Where the queue is: the environment variable `REDIS_URL`. */
export const redis = { url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379', maxRetriesPerRequest: null }
