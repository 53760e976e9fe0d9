/** The queue that the enqueuing program and the workers share. */

export const QUEUE = 'orders'

/** The order to place. The job's id is the order's reference. */
export interface OrderJob {
  readonly serviceId: string
  readonly target: string
  readonly quantity: number
}

/** The Redis server of the queue, from the environment variable `REDIS_URL`. */
export const redis = { url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379', maxRetriesPerRequest: null }
