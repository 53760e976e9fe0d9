/** The orders that this browser remembers, newest first. Sends no request. */
import type { CustomerOrderingClient, OrderRecord } from 'customer-ordering-sdk'
import { byId, make, show } from './dom.ts'
import { noteOf } from './draft.ts'
import { amountOf } from './order-panel.ts'
import { formatNumber } from './words.ts'

const DAYS = 30
const MOST = 20

/** @param needsAttention tells whether only a person can find out the outcome of an order */
export async function showOrders(
  client: CustomerOrderingClient,
  needsAttention: (reference: string | undefined) => boolean,
): Promise<void> {
  const records: OrderRecord[] = []
  for await (const record of client.orders.remembered({ since: Date.now() - DAYS * 86_400_000 }))
    if (record.state !== 'rejected') records.push(record)
  records.sort((one, other) => other.createdAt - one.createdAt)
  const items = records.slice(0, MOST).map((record) => item(record, needsAttention(record.externalOrderId)))
  byId('orders', HTMLUListElement).replaceChildren(...items)
  show(byId('orders-note', HTMLElement), items.length === 0 ? 'None yet.' : '')
}

function item({ externalOrderId, state, order, createdAt }: OrderRecord, attention: boolean): HTMLElement {
  const note = noteOf(externalOrderId)
  const what = note ? `${formatNumber(note.quantity)} × ${note.title} for ${note.target}` : 'An order'
  const when = new Date(createdAt)
  const time = make(
    'time',
    '',
    when.toLocaleString(navigator.language, { dateStyle: 'medium', timeStyle: 'short' }),
  )
  time.dateTime = when.toISOString()
  const [badge, words] =
    state === 'created'
      ? ['placed', 'Placed']
      : attention
        ? ['attention', 'Contact us']
        : ['checking', 'Being checked']
  return make(
    'li',
    '',
    make('span', 'what', what),
    make('span', `badge ${badge}`, words),
    make('span', 'meta', time),
    make('span', 'amount', amountOf(order?.amount, note) ?? ''),
    make('code', '', order?.id ?? externalOrderId ?? ''),
  )
}
