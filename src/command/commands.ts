/** The commands: what each one is called, reads and prints. */

import type { EchoedField, Resolution } from '../call-options.ts'
import type { CustomerOrderingClient } from '../client.ts'
import { StoreError, UnresolvedOrderError } from '../errors/classes.ts'
import { PERSON_SKEW } from '../orders/protocol/keys.ts'
import { echoOf } from '../orders/protocol/outcome.ts'
import { cellsOf, moneyOf, nameOf, orderLine, stateOf } from './cells.ts'
import { type Flags, type OptionName, wholeNumber } from './options.ts'
import { type Line, type Shape, time } from './print.ts'
import { Failure, UsageError } from './terminal.ts'

export interface Task {
  readonly client: CustomerOrderingClient
  readonly flags: Flags
  /** The order's `externalOrderId`, or its id for `orders get`. */
  readonly name: string
  readonly signal: AbortSignal
}

export interface Command extends Shape {
  readonly about: string
  readonly argument?: 'REFERENCE' | 'ID'
  readonly options: readonly OptionName[]
  readonly store: boolean
  readonly sends: boolean
  /** Resolves to undefined if the action cannot cost money, so that nobody need confirm it. */
  question?(task: Task): Promise<string | undefined>
  run(task: Task): AsyncIterable<Line>
}

const STORE: readonly OptionName[] = ['store', 'account', 'server', 'remember', 'safe-retry-window']
const NO_RECORD =
  'The store has no record of this order. Check REFERENCE (its externalOrderId) or --key, --account and --server.'
const ADOPTED =
  'The store had no record of this REFERENCE, so the order was adopted under it. ' +
  'If that is a typing error, undo it with forget.'
const CHANGED =
  'Another call changed the record of this order, so it was not forgotten. ' +
  'Check the order with show, then run forget again.'
const UNRESOLVED = [20, 8, 34]
const ORDERS = [24, 10, 8, 24, 16, 8]

const ofStore = { store: true, sends: false, options: STORE }
const ofOrder = {
  store: true,
  argument: 'REFERENCE',
  options: [...STORE, 'key'],
  nothing: NO_RECORD,
} as const
const ofService = { store: false, sends: true, options: [] }

export const COMMANDS: Readonly<Record<string, Command>> = {
  unresolved: {
    ...ofStore,
    about: 'list orders without a known outcome',
    widths: UNRESOLVED,
    run: ({ client }) =>
      each(client.orders.unresolved(), (record) => ({
        value: record,
        cells: {
          'first sent': time(record.firstSentAt),
          attempts: record.attempts,
          state: stateOf(record),
          externalOrderId: nameOf(record),
        },
        attention: true,
      })),
  },
  show: {
    ...ofOrder,
    about: 'show what the store remembers of one order',
    sends: false,
    run: ({ client, ...task }) =>
      each(client.orders.remembered(orderOf(task)), (record) => ({ value: record, cells: cellsOf(record) })),
  },
  recover: {
    ...ofStore,
    about: 'settle open orders under the same keys',
    options: [...STORE, 'take-over'],
    sends: true,
    widths: [15, 19, 24],
    question: async ({ client }) => {
      const open = await countOf(client)
      if (open === 0) return undefined
      return (
        `recover tries to settle ${open} open order${open === 1 ? '' : 's'}. ` +
        'It sends an order again only if that is safe, and charges each order at most once.'
      )
    },
    run: ({ client, flags, signal }) =>
      each(client.orders.recover({ takeOver: flags['take-over'] === true, signal }), (result) => {
        const { outcome, record, order, reason, error } = result
        const unreadable = outcome === 'created' && order === undefined
        return {
          value: result,
          kind: unreadable ? 'created (unreadable)' : outcome,
          cells: {
            outcome,
            reason: reason ?? error?.code,
            orderId: order?.id ?? record.order?.id ?? error?.orderId,
            externalOrderId: nameOf(record),
          },
          // The message names the fields that differ, or says why the list could not be read.
          note: outcome === 'needs_attention' ? error && adviceOf(error) : undefined,
          attention: unreadable || (outcome !== 'created' && outcome !== 'rejected'),
        }
      }),
  },
  resolve: {
    ...ofOrder,
    about: 'settle one order by hand, as created with an id, or as abandoned',
    options: [...ofOrder.options, 'as', 'order-id', 'despite'],
    sends: true,
    question: async ({ flags }) =>
      resolutionOf(flags).as === 'abandoned'
        ? 'If the service did create this order, the next call with its reference or key ' +
          'can charge the wallet a second time.'
        : undefined,
    async *run({ client, flags, signal, name }) {
      const order = orderOf({ flags, name })
      const isNew = flags.key === undefined && (await client.orders.remembered(order)).length === 0
      const record = await client.orders
        .resolve(order, resolutionOf(flags), { signal })
        .catch((error: unknown) => withTime(error, client, order))
      yield { value: record, cells: cellsOf(record), note: isNew ? ADOPTED : undefined }
    },
  },
  forget: {
    ...ofOrder,
    about: 'remove a settled order, or a paid one that cannot be read, from the store',
    sends: false,
    question: async () =>
      'Once this order is forgotten, the next call with its reference or key may buy it again.',
    async *run({ client, ...task }) {
      const name = orderOf(task)
      const forgotten = await client.orders.forget(name)
      if (forgotten) yield { value: { forgotten }, cells: { forgotten: Object.values(name).join('') } }
      // forget() also returns false if another call changed the record at the same time.
      else if ((await client.orders.remembered(name)).length > 0) throw new Failure(CHANGED)
    },
  },
  reconcile: {
    ...ofStore,
    about: 'compare the store with the service, and print what does not match',
    options: [...STORE, 'since', 'all'],
    sends: true,
    widths: [14, 12, 12, 8, 8, 24],
    run: ({ client, flags, signal }) =>
      each(client.orders.reconcile({ since: sinceOf(flags) }, { signal }), (result) => {
        const { kind, record, order } = result
        return {
          value: result,
          kind,
          cells: {
            result: kind,
            amount: order?.amount,
            remembered: record?.order?.amount,
            state: record?.state,
            differs: result.kind === 'doubtful' ? result.differs.join(',') : undefined,
            orderId: order?.id ?? record?.order?.id,
            externalOrderId: record ? nameOf(record) : order && echoOf(order).externalOrderId,
          },
          attention: kind !== 'matched',
          hidden: kind === 'matched' && flags.all !== true,
        }
      }),
  },
  'orders list': {
    ...ofService,
    about: "list the service's orders",
    options: ['limit', 'source-system'],
    widths: ORDERS,
    run: ({ client, flags, signal }) =>
      each(
        client.orders.list({ sourceSystem: flags['source-system'] }, { signal }),
        orderLine,
        wholeNumber(flags, 'limit'),
      ),
  },
  'orders get': {
    ...ofService,
    about: 'read one order from the service',
    argument: 'ID',
    async *run({ client, signal, name }) {
      yield orderLine(await client.orders.retrieve(name, { signal }))
    },
  },
  services: {
    ...ofService,
    about: 'list the services that can be ordered',
    widths: [30, 16, 10, 10],
    run: ({ client, signal }) =>
      each(client.services.list({}, { signal }), (service) => ({
        value: service,
        cells: {
          serviceId: service.productId,
          price: moneyOf(service),
          min: service.minQuantity,
          max: service.maxQuantity,
          step: service.stepQuantity,
        },
      })),
  },
  balance: {
    ...ofService,
    about: 'show the balance of the wallet',
    async *run({ client, signal }) {
      const balance = await client.balance.retrieve({ signal })
      yield { value: balance, cells: { balance: moneyOf(balance) } }
    },
  },
}

async function* each<T>(
  items: AsyncIterable<T>,
  lineOf: (item: T) => Line,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<Line> {
  let count = 0
  if (limit > 0)
    for await (const item of items) {
      yield lineOf(item)
      if (++count >= limit) return
    }
}

/** A program would call create() or recover() again; a person has just done that. */
function adviceOf({ message }: Error): string {
  return message.replace(
    /Call create\(\) again with the same arguments, or run orders\.recover\(\)\.|Run orders\.recover\(\)\. If the order stays unresolved, settle it with orders\.resolve\(\)\./,
    'Find out whether the order exists, then settle it with resolve.',
  )
}

/** Adds to "may still be running" when that call must have ended. */
async function withTime(
  error: unknown,
  client: CustomerOrderingClient,
  name: ReturnType<typeof orderOf>,
): Promise<never> {
  if (!(error instanceof UnresolvedOrderError)) throw error
  const [record] = await client.orders.remembered(name)
  const { busyUntil } = record ?? {}
  if (busyUntil === undefined) throw error
  throw new Failure(`${error.message} That is after ${time(busyUntil + PERSON_SKEW)}.`)
}

async function countOf(client: CustomerOrderingClient): Promise<number> {
  let open = 0
  try {
    for await (const _record of client.orders.unresolved()) open++
  } catch (error) {
    // unresolved() returns all other rows before it throws for unreadable ones, and the other rows
    // can still be recovered.
    if (!(error instanceof StoreError)) throw error
  }
  return open
}

function orderOf({ flags, name }: Pick<Task, 'flags' | 'name'>) {
  return flags.key === undefined ? { externalOrderId: name } : { idempotencyKey: flags.key }
}

function resolutionOf({ as, 'order-id': orderId, despite }: Flags): Resolution {
  if (as !== 'created' && as !== 'abandoned') throw new UsageError('--as must be created or abandoned.')
  if (despite !== undefined && as !== 'created') throw new UsageError('--despite is only for --as created.')
  if (as === 'created' && orderId !== undefined)
    // The cast is safe: the client rejects other names before it sends anything.
    return { as, orderId, despite: (despite?.split(',') ?? []) as EchoedField[] }
  if (as === 'abandoned' && orderId === undefined) return { as }
  throw new UsageError('--as created requires --order-id ID; --as abandoned does not accept it.')
}

function sinceOf({ since }: Flags): number {
  // Date.parse() takes any text with a number for a time.
  const time = since === undefined ? 0 : /^\d{4}-/.test(since) ? Date.parse(since) : Number.NaN
  if (Number.isNaN(time)) throw new UsageError('--since must be a time, such as 2026-01-31T12:00:00Z.')
  return time
}
