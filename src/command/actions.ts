import type { CustomerOrderingClient } from '../client.ts'
import { StoreError } from '../errors/classes.ts'
import { formatAmount } from '../money.ts'
import type { OrderRecord } from '../orders/record.ts'
import { EXIT, type Exit, plain, print, type Row, type Terminal, time, UsageError } from './terminal.ts'

export interface Flags {
  readonly sqlite?: string | undefined
  readonly postgres?: string | undefined
  readonly redis?: string | undefined
  readonly account?: string | undefined
  readonly server?: string | undefined
  readonly remember?: string | undefined
  readonly 'allow-insecure-http'?: boolean | undefined
  readonly 'safe-retry-window'?: string | undefined
  readonly key?: string | undefined
  readonly as?: string | undefined
  readonly 'order-id'?: string | undefined
  readonly 'take-over'?: boolean | undefined
  readonly since?: string | undefined
  readonly json?: boolean | undefined
  readonly yes?: boolean | undefined
  readonly version?: boolean | undefined
  readonly help?: boolean | undefined
}

export interface Task {
  readonly client: CustomerOrderingClient
  readonly terminal: Terminal
  readonly flags: Flags
  /** The order's `externalOrderId`. */
  readonly reference: string | undefined
}

export interface Action {
  readonly about: string
  readonly ownFlags: readonly string[]
  readonly needsStore: boolean
  readonly sendsRequests: boolean
  readonly namesOrder: boolean
  /** Returns undefined if the user need not confirm the action, because it cannot cost money. */
  readonly question?: (
    client: CustomerOrderingClient,
    flags: Flags,
  ) => Promise<string | undefined> | string | undefined
  run(task: Task): Promise<Exit>
}

const ofOrder = { ownFlags: ['key'], needsStore: true, namesOrder: true }
const ofStore = { ownFlags: [], needsStore: true, namesOrder: false }
const ofService = { ownFlags: [], needsStore: false, sendsRequests: true, namesOrder: false }

export const ACTIONS: Readonly<Record<string, Action>> = {
  unresolved: {
    ...ofStore,
    about: 'list orders without a known outcome; exit code 3 if there are any',
    sendsRequests: false,
    run: async ({ client, terminal, flags }) =>
      attention(await print(terminal, flags.json === true, client.orders.unresolved(), rowOf)),
  },
  show: {
    ...ofOrder,
    about: 'show the record of one order: show REFERENCE',
    sendsRequests: false,
    run: async ({ client, terminal, flags, reference }) => {
      const records = await client.orders.remembered(nameOf(flags, reference))
      for (const record of records)
        terminal.out(flags.json ? `${JSON.stringify(record)}\n` : `${linesOf(record)}\n`)
      if (records.length > 0) return EXIT.done
      terminal.err(
        'customer-ordering-sdk: The store has no record of this order. ' +
          'Check the reference or key, --account and --server.\n',
      )
      return EXIT.failed
    },
  },
  recover: {
    ...ofStore,
    about: 'settle open orders under the same keys; exit code 3 if some need attention or stay open',
    ownFlags: ['take-over'],
    sendsRequests: true,
    question: async (client) => {
      let open = 0
      try {
        for await (const _record of client.orders.unresolved()) open++
      } catch (error) {
        // unresolved() returns all other rows before it throws for unreadable ones, and the other
        // rows can still be recovered.
        if (!(error instanceof StoreError)) throw error
      }
      if (open === 0) return undefined
      return (
        `recover tries to settle ${open} open order${open === 1 ? '' : 's'}. ` +
        'It sends an order again only if that is safe, and charges each order at most once.'
      )
    },
    run: async ({ client, terminal, flags }) => {
      let left = 0
      const outcomes = client.orders.recover({ takeOver: flags['take-over'] === true })
      await print(
        terminal,
        flags.json === true,
        outcomes,
        ({ outcome, record, order, reason, error }) => ({
          outcome,
          ...rowOf(record),
          order: order?.id ?? record.order?.id,
          reason: reason ?? error?.code,
        }),
        ({ outcome }) => {
          if (outcome !== 'created' && outcome !== 'rejected') left++
        },
      )
      return attention(left)
    },
  },
  resolve: {
    ...ofOrder,
    about: 'settle one order by hand: resolve REFERENCE --as created --order-id ID, or --as abandoned',
    ownFlags: ['key', 'as', 'order-id'],
    sendsRequests: true,
    question: (_client, { as }) =>
      as === 'abandoned'
        ? 'If the service did create this order, the next call with its reference or key ' +
          'can charge the wallet a second time.'
        : undefined,
    run: async ({ client, terminal, flags, reference }) => {
      const { as, 'order-id': orderId } = flags
      if (as !== 'created' && as !== 'abandoned') throw new UsageError('--as must be created or abandoned.')
      if ((as === 'created') !== (orderId !== undefined))
        throw new UsageError('--as created requires --order-id ID; --as abandoned does not accept it.')
      const record = await client.orders.resolve(
        nameOf(flags, reference),
        orderId === undefined ? { as: 'abandoned' } : { as: 'created', orderId },
      )
      terminal.out(flags.json ? `${JSON.stringify(record)}\n` : `${linesOf(record)}\n`)
      return EXIT.done
    },
  },
  forget: {
    ...ofOrder,
    about: 'remove a settled order from the store: forget REFERENCE',
    sendsRequests: false,
    question: () => 'Once this order is forgotten, the next call with its reference or key may buy it again.',
    run: async ({ client, terminal, flags, reference }) => {
      const forgotten = await client.orders.forget(nameOf(flags, reference))
      if (flags.json) terminal.out(`${JSON.stringify({ forgotten })}\n`)
      else terminal.out(forgotten ? 'forgotten\n' : 'not found: the store has no record of this order\n')
      return EXIT.done
    },
  },
  reconcile: {
    ...ofStore,
    about: 'compare the store with the service; exit code 3 if they differ or an order is still open',
    ownFlags: ['since'],
    sendsRequests: true,
    run: async ({ client, terminal, flags }) => {
      let differences = 0
      const since = flags.since === undefined ? 0 : Date.parse(flags.since)
      if (Number.isNaN(since)) throw new UsageError('--since must be a time, such as 2026-01-31T12:00:00Z.')
      await print(
        terminal,
        flags.json === true,
        client.orders.reconcile({ since }),
        ({ kind, record, order }) => ({
          kind,
          reference: record?.externalOrderId,
          state: record?.state,
          order: order?.id ?? record?.order?.id,
          amount: order?.amount ?? record?.order?.amount,
          remembered: record?.order?.amount,
        }),
        ({ kind, record }) => {
          // A matched record may still be open, and must then be settled.
          if (kind !== 'matched' || record?.state === 'open') differences++
        },
      )
      return attention(differences)
    },
  },
  balance: {
    ...ofService,
    about: 'show the balance of the wallet',
    run: async ({ client, terminal, flags }) => {
      const balance = await client.balance.retrieve()
      terminal.out(flags.json ? `${JSON.stringify(balance)}\n` : `${plain(formatAmount(balance))}\n`)
      return EXIT.done
    },
  },
  services: {
    ...ofService,
    about: 'list the services that can be ordered',
    run: async ({ client, terminal, flags }) => {
      await print(terminal, flags.json === true, client.services.list(), (service) => ({
        service: service.productId,
        price: formatAmount(service),
        min: service.minQuantity,
        max: service.maxQuantity,
        step: service.stepQuantity,
      }))
      return EXIT.done
    },
  },
}

function attention(count: number): Exit {
  return count === 0 ? EXIT.done : EXIT.needsAttention
}

function nameOf(flags: Flags, reference: string | undefined) {
  return flags.key === undefined ? { externalOrderId: reference ?? '' } : { idempotencyKey: flags.key }
}

function rowOf(record: OrderRecord): Row {
  return {
    reference: record.externalOrderId,
    key: record.key,
    state: record.state,
    ambiguous: record.ambiguous ? 'yes' : 'no',
    attempts: record.attempts,
    sent: time(record.firstSentAt),
    recorded: time(record.createdAt),
  }
}

function linesOf(record: OrderRecord): string {
  const { order, rejection } = record
  const lines = {
    ...rowOf(record),
    order: order?.id,
    status: order?.status,
    amount: order?.amount,
    rejection: rejection && [rejection.kind, rejection.status, rejection.code].filter(Boolean).join(' '),
    'busy until': time(record.busyUntil),
  }
  return Object.entries(lines)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => `${name.padEnd(12)}${plain(String(value))}`)
    .join('\n')
}
