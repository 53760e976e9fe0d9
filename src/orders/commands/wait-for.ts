import { ownValue } from '../../defined.ts'
import { isCustomerOrderingError, TimeoutError } from '../../errors/classes.ts'
import { type CallSettings, type Connection, type Endpoint, noTrail } from '../../http/call.ts'
import { Deadline, Interruption } from '../../http/deadline.ts'
import { errorOf, UNKNOWN_CALL } from '../../http/failures.ts'
import { READ_ITEM, type Reply, read } from '../../http/request.ts'
import type { ResponseInfo } from '../../response-info.ts'
import type { Parse } from '../../schemas/shape.ts'

export interface Wait<T> {
  readonly endpoint: Endpoint
  readonly path: string
  readonly orderId: string
  readonly parse: Parse<T>
  readonly until: (order: T) => boolean | Promise<boolean>
  /** Milliseconds. */
  readonly timeout: number
  readonly settings: CallSettings
}

const FIRST_PAUSE = 1000
const LONGEST_PAUSE = 30_000
/** Milliseconds for which a 404 may mean that the order is too new to be read. */
const LAG = 10_000

export async function waitForOrder<T>(
  connection: Connection,
  wait: Wait<T>,
): Promise<{ readonly value: T; readonly info: ResponseInfo }> {
  const { runtime } = connection
  const { endpoint, path, orderId, settings } = wait
  const deadline = new Deadline(runtime, wait.timeout, settings.signal)
  let attempts = 0
  let step = FIRST_PAUSE
  let status: unknown
  let found = false
  for (;;) {
    const left = deadline.remaining()
    let seen: Reply<T> | undefined
    let seenStatus: unknown
    let cause: unknown
    try {
      seen = await read<T>(connection, {
        ...READ_ITEM,
        endpoint,
        path,
        settings: { ...settings, totalTimeout: Math.max(1, Math.min(settings.totalTimeout, left)) },
        parse: (body) => {
          // The caller's own schema may remove the status from the order.
          seenStatus = ownValue(body, 'status')
          return wait.parse(body)
        },
      })
      attempts += seen.info().attempts
    } catch (error) {
      if (!isCustomerOrderingError(error)) throw error
      attempts += error.attempts
      const timedOut = deadline.remaining() <= 0 && error.code !== 'aborted'
      const tooNew = error.code === 'not_found' && deadline.elapsed() < LAG
      if (!timedOut && !tooNew) throw error
      cause = error
    }
    if (seen !== undefined) {
      found = true
      const content = await deadline.race(Promise.resolve(wait.until(seen.value)))
      if (content && !(content instanceof Interruption)) {
        return { value: seen.value, info: { ...seen.info(), attempts, durationMs: deadline.elapsed() } }
      }
      if (seenStatus !== status) step = FIRST_PAUSE
      status = seenStatus
    }
    // If the pause would last until the deadline, poll one second before the deadline instead, so
    // that a change during a long pause is not missed.
    const pause = step / 2 + (runtime.random() * step) / 2
    const remaining = deadline.remaining()
    const interrupted = await deadline.sleep(
      pause < remaining ? pause : remaining > FIRST_PAUSE ? remaining - FIRST_PAUSE : remaining,
    )
    step = Math.min(LONGEST_PAUSE, step * 2)
    if (interrupted?.why === 'aborted') {
      const trail = { ...noTrail(true), attempts }
      const reason: unknown = settings.signal?.reason
      throw errorOf({ end: 'aborted', trail }, { ...UNKNOWN_CALL, endpoint, path, orderId, reason })
    }
    if (interrupted !== undefined || deadline.remaining() <= 0) {
      const missing = isCustomerOrderingError(cause) && cause.code === 'not_found'
      const what = found ? 'did not meet the condition' : missing ? 'was not found' : 'could not be read'
      throw new TimeoutError(
        `orders.waitFor: the order ${what} within ${wait.timeout} ms. Waiting again is safe.`,
        { orderId, attempts, deadline: 'total', cause },
      )
    }
  }
}
