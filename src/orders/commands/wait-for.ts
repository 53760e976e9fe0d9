/** Polls one order. */
import { isCustomerOrderingError, TimeoutError } from '../../errors/classes.ts'
import type { CallSettings } from '../../http/call.ts'
import { Deadline, Interruption } from '../../http/deadline.ts'
import { abortedError, UNKNOWN_CALL } from '../../http/failures.ts'
import { type Reply, read } from '../../http/request.ts'
import type { ResponseInfo } from '../../response-info.ts'
import type { OrdersContext } from '../record/context.ts'
import { orderRead } from './look-up.ts'

const FIRST_PAUSE = 1000
const LONGEST_PAUSE = 30_000
/** Milliseconds for which a 404 may mean that the order is too new to be read. */
const LAG = 10_000

const UNMET = 'did not meet the condition'

/** @param timeout milliseconds of the whole wait */
export async function waitForOrder<T>(
  { connection, lifetime, parse }: OrdersContext<T>,
  orderId: string,
  until: (order: T) => boolean | Promise<boolean>,
  timeout: number,
  settings: CallSettings,
): Promise<{ readonly value: T; readonly info: ResponseInfo }> {
  const { runtime } = connection
  const order = orderRead('orders.waitFor', orderId, parse)
  const { endpoint, path } = order
  const deadline = new Deadline(runtime, timeout, settings.signal)
  let attempts = 0
  let what = 'could not be read'
  for (let step = FIRST_PAUSE; ; step = Math.min(LONGEST_PAUSE, step * 2)) {
    lifetime.check()
    const totalTimeout = Math.max(1, Math.min(settings.totalTimeout, deadline.remaining()))
    let seen: Reply<T> | undefined
    let cause: unknown
    try {
      seen = await read(connection, { ...order, settings: { ...settings, totalTimeout } })
    } catch (error) {
      if (!isCustomerOrderingError(error)) throw error
      attempts += error.attempts
      const isMissing = error.code === 'not_found'
      const isOver = deadline.remaining() <= 0 && error.code !== 'aborted'
      if (!isOver && !(isMissing && deadline.elapsed() < LAG)) throw error
      if (isMissing && what !== UNMET) what = 'was not found'
      cause = error
    }
    if (seen !== undefined) {
      const info = seen.info()
      attempts += info.attempts
      what = UNMET
      const isMet = await deadline.race(Promise.resolve(until(seen.value)))
      if (isMet && !(isMet instanceof Interruption))
        return { value: seen.value, info: { ...info, attempts, durationMs: deadline.elapsed() } }
    }
    const pause = step / 2 + (runtime.random() * step) / 2
    // Polls one second before the deadline, so that a change during a long pause is not missed.
    const remaining = deadline.remaining()
    const most = remaining > FIRST_PAUSE ? remaining - FIRST_PAUSE : remaining
    const interrupted = await deadline.sleep(Math.min(pause, most))
    if (interrupted?.why === 'aborted') {
      const reason: unknown = settings.signal?.reason
      throw abortedError({ ...UNKNOWN_CALL, endpoint, path, orderId, reason }, attempts)
    }
    if (deadline.remaining() <= 0)
      throw new TimeoutError(`orders.waitFor: the order ${what} in time. Waiting again is safe.`, {
        orderId,
        attempts,
        deadline: 'total',
        cause: settings.signal?.reason ?? cause,
      })
  }
}
