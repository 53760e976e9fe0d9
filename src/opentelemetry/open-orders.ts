import { diag, type MeterProvider, metrics } from '@opentelemetry/api'
import { SCOPE } from './conventions.ts'

/** The part of a client that {@link observeOpenOrders} reads. */
export interface UnresolvedOrders {
  /** The client's orders. */
  readonly orders: {
    unresolved(): AsyncIterable<{ readonly createdAt: number; readonly firstSentAt?: number }>
  }
}

/** Options of {@link observeOpenOrders}. */
export interface ObserveOptions {
  /** Creates the metrics. Default: the provider registered for the process before this call. */
  readonly meterProvider?: MeterProvider | undefined
  /** Returns the current time in milliseconds since 1970. Tests can set it. Default `Date.now`. */
  readonly now?: (() => number) | undefined
}

const MINUTE = 60_000

/** By default, a call ends within 2 minutes, and its safe-retry window within 20. */
const AGES: readonly (readonly [age: string, below: number])[] = [
  ['2m', 2 * MINUTE],
  ['20m', 20 * MINUTE],
  ['1h', 60 * MINUTE],
  ['1d', 1440 * MINUTE],
  ['older', Number.POSITIVE_INFINITY],
]

/**
 * Reports how many orders in the client's store are open, by age, and the age of the oldest open
 * order.
 *
 * An order is open until its outcome is known. Run `recover()` for old open orders; a person must
 * settle those that remain open.
 *
 * Each collection of metrics reads every open order from the store and sends nothing. Observe each
 * store in only one process, because every observer reports all open orders of the store. If the
 * store cannot be read, the metric `ordering.store.readable` is 0: set an alert for that value.
 *
 * @returns a function that stops the reports; call it before `client.close()`
 * @example
 * const stop = observeOpenOrders(client)
 */
export function observeOpenOrders(client: UnresolvedOrders, options: ObserveOptions = {}): () => void {
  const { meterProvider = metrics, now = Date.now } = options
  const meter = meterProvider.getMeter(SCOPE)
  const count = meter.createObservableGauge('ordering.open_orders', {
    description:
      'Orders without a known outcome, by age: under 2 minutes, 20 minutes, 1 hour, 1 day, or older',
  })
  const oldest = meter.createObservableGauge('ordering.oldest_open_order.age', {
    description: 'Age of the oldest order without a known outcome; 0 if there is none',
    unit: 's',
  })
  const readable = meter.createObservableGauge('ordering.store.readable', {
    description: '1 if the open orders could be read; if 0, the other numbers may be stale',
  })
  const gauges = [count, oldest, readable]
  const observe: Parameters<typeof meter.addBatchObservableCallback>[0] = async (result) => {
    const counts = new Map(AGES.map(([age]) => [age, 0]))
    let most = 0
    try {
      for await (const { createdAt, firstSentAt } of client.orders.unresolved()) {
        // The record may be older than its open order: the next call for a refused order reuses it. If the
        // clock of the machine that wrote the record is ahead, the difference is negative.
        const age = Math.max(0, now() - (firstSentAt || createdAt))
        const [name = ''] = AGES.find(([, below]) => age < below) ?? []
        counts.set(name, (counts.get(name) ?? 0) + 1)
        most = Math.max(most, age)
      }
    } catch (error) {
      // If this callback threw, exporters would repeat the last numbers that it reported.
      result.observe(readable, 0)
      diag.error(
        'customer-ordering-sdk: the open orders could not be read, so their metrics are stale.',
        error,
      )
      return
    }
    result.observe(readable, 1)
    // Reports zeros, too: if a series ended, an alert on it could stay active.
    for (const [age, number] of counts) result.observe(count, number, { 'ordering.age': age })
    result.observe(oldest, most / 1000)
  }
  meter.addBatchObservableCallback(observe, gauges)
  return () => meter.removeBatchObservableCallback(observe, gauges)
}
