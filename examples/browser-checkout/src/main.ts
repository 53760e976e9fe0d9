/** Connects the parts. From the start, it keeps settling orders whose outcome is not known. */
import { formatAmount, isCustomerOrderingError } from 'customer-ordering-sdk'
import { startCatalogue } from './catalogue.ts'
import { Checkout } from './checkout.ts'
import { announce, byId, show } from './dom.ts'
import { startOrderPanel } from './order-panel.ts'
import { showOrders } from './orders.ts'
import { client } from './shop-client.ts'
import { readingFailed } from './words.ts'

/**
 * Milliseconds before the first retry of settling open orders. Each later wait doubles, up to
 * LATEST.
 */
const SOONEST = 2_000
const LATEST = 30_000

const checkout = new Checkout(client)
/** Tells the other tabs that an order was sent or has ended. */
const tabs = new BroadcastChannel('harbour.orders')
/** References of orders whose outcome only a person can find out. */
const attention = new Set<string | undefined>()

const panel = startOrderPanel(checkout, () => {
  tabs.postMessage('changed')
  void refresh()
  void settle()
})

let settling: Promise<void> | undefined
let timer: ReturnType<typeof setTimeout> | undefined
let wait = SOONEST

/** Settles open orders until none is left. */
function settle(): Promise<void> {
  settling ??= settleOnce().finally(() => {
    settling = undefined
  })
  return settling
}

async function settleOnce(): Promise<void> {
  clearTimeout(timer)
  let open = true
  try {
    open = false
    let ended = false
    for await (const { reference, ending } of checkout.settle()) {
      if (ending.state === 'checking') open = true
      else ended = true
      if (ending.state === 'attention') attention.add(reference)
      panel.hear(reference, ending)
    }
    await panel.look()
    if (ended) tabs.postMessage('changed')
    if (ended) await refresh()
  } catch (error) {
    // The store cannot be read. It may be busy; its orders are not lost.
    console.error(error)
    open = true
  }
  wait = open ? wait : SOONEST
  if (!open) return
  timer = setTimeout(() => void settle(), wait)
  wait = Math.min(wait * 2, LATEST)
}

async function refresh(): Promise<void> {
  await Promise.all([
    showBalance(),
    showOrders(client, (reference) => attention.has(reference)).catch(storeFailed),
  ])
}

async function showBalance(): Promise<void> {
  const place = byId('balance', HTMLElement)
  try {
    const balance = await client.balance.retrieve()
    place.textContent = formatAmount(balance, navigator.language)
    panel.expectBalance(balance)
  } catch (error) {
    if (!isCustomerOrderingError(error)) throw error
    place.textContent = '–'
    announce(readingFailed('The balance'))
  }
}

function storeFailed(error: unknown): void {
  console.error(error)
  show(
    byId('orders-note', HTMLElement),
    'This browser does not let the shop store orders, so you cannot order here.',
  )
}

tabs.addEventListener('message', () => {
  void refresh()
  void settle()
})
addEventListener('online', () => void settle())
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') void settle()
})

startCatalogue(client, panel.choose)
void refresh()
void settle()
