/** The form, and what takes its place once an order was sent: until its ending is known, nothing can be ordered here. */
import { type Balance, formatAmount, type Service } from 'customer-ordering-sdk'
import type { Checkout, Ending } from './checkout.ts'
import { announce, byId, make } from './dom.ts'
import { concludeDraft, draftReference, type Note, noteOf, writeNote } from './draft.ts'
import { type Filled, startOrderForm } from './order-form.ts'
import { formatNumber, refusal, titleOf } from './words.ts'

export interface OrderPanel {
  choose(service: Service): void
  expectBalance(balance: Balance): void
  /** Takes in what became of an order: the one on this panel, or one of an earlier page that was not known of. */
  hear(reference: string | undefined, ending: Ending): void
  /** Looks up how the order on this panel stands: another tab may have placed it. */
  look(): Promise<void>
}

/**
 * @param changed called when an order was sent or has ended
 */
export function startOrderPanel(checkout: Checkout, changed: () => void): OrderPanel {
  const section = byId('order', HTMLElement)
  const formElement = byId('order-form', HTMLFormElement)
  const title = byId('order-title', HTMLElement)
  const place = byId('ending', HTMLElement)
  /** What the person sees belongs to this order, whatever other tabs do meanwhile. */
  let reference = draftReference()
  let shown: Ending['state'] | 'form' | 'placing' = 'form'
  const form = startOrderForm((filled) => void placeOrder(filled))

  async function placeOrder({ service, target, quantity }: Filled): Promise<void> {
    form.setBusy(true)
    announce('Placing your order…')
    // Another tab may have ordered a moment ago. A store that cannot be read is for `place` to report.
    await look().catch(console.warn)
    if (shown !== 'form') {
      form.setBusy(false)
      return
    }
    shown = 'placing'
    writeNote(reference, { title: titleOf(service), quantity, target, currency: service.currency })
    // If the browser may not delete what it remembers, a crash costs nothing. It works without that, too.
    navigator.storage.persist().catch(console.warn)
    const request = {
      serviceId: service.productId,
      target,
      quantity,
      metadata: { externalOrderId: reference },
    }
    const ending = await checkout.place(request).catch((error: unknown): Ending => {
      console.error(error)
      // A fault of the page's own. It proves nothing about the order.
      return { state: 'checking' }
    })
    form.setBusy(false)
    showEnding(ending)
    changed()
  }

  function showEnding(ending: Ending): void {
    if (ending.state === shown) return
    const focused = section.contains(document.activeElement)
    shown = ending.state
    if (ending.state === 'refused') {
      showForm()
      form.refuse(refusal(ending.error))
      if (focused) byId('place', HTMLButtonElement).focus()
      shown = 'form'
      return
    }
    // From here on the person knows; what is ordered next is another order.
    if (ending.state !== 'checking') concludeDraft(reference)
    const { heading, content } = contentOf(ending, reference)
    title.textContent = heading
    formElement.hidden = true
    place.replaceChildren(...content, ...(ending.state === 'checking' ? [] : [anotherButton()]))
    place.className = `ending ${ending.state}`
    place.hidden = false
    if (focused) title.focus()
    else announce(`${heading}. ${place.querySelector('p')?.textContent ?? ''}`)
  }

  function showForm(): void {
    const note = noteOf(reference)
    place.hidden = true
    place.replaceChildren()
    formElement.hidden = false
    title.textContent = 'Your order'
    if (note !== undefined) form.fill(note)
  }

  function anotherButton(): HTMLButtonElement {
    const button = make('button', 'secondary', 'Order something else')
    button.type = 'button'
    button.addEventListener('click', () => {
      reference = draftReference()
      shown = 'form'
      showForm()
      form.fill({ target: '', quantity: undefined })
      title.focus()
      void look()
    })
    return button
  }

  function adopt(other: string, ending: Ending): void {
    reference = other
    showEnding(ending)
  }

  async function look(): Promise<void> {
    const asked = reference
    const ending = await checkout.find(asked)
    const open = ending === undefined ? await checkout.findOpen() : undefined
    if (asked !== reference || shown === 'placing') return
    if (ending !== undefined && shown !== 'attention') showEnding(ending)
    // The browser lost the draft, but not the order: what it writes down about drafts is not as durable.
    else if (open !== undefined && shown === 'form') adopt(open, { state: 'checking' })
    // It was sent and is not open any more: refused, in another tab.
    else if (ending === undefined && shown === 'checking') showEnding({ state: 'refused' })
  }

  return {
    choose: form.choose,
    expectBalance: form.expectBalance,
    hear: (heard, ending) => {
      if (heard === undefined || shown === 'placing') return
      const isNews = ending.state === 'checking' || ending.state === 'placed'
      if (heard === reference) showEnding(ending)
      else if (shown === 'form' && isNews) adopt(heard, ending)
    },
    look,
  }
}

function contentOf(
  ending: Exclude<Ending, { state: 'refused' }>,
  reference: string,
): { readonly heading: string; readonly content: readonly Node[] } {
  const note = noteOf(reference)
  const about: (readonly [string, string])[] =
    note === undefined
      ? []
      : [
          ['Service', note.title],
          ['Quantity', formatNumber(note.quantity)],
          ['For', note.target],
        ]
  switch (ending.state) {
    case 'placed': {
      const paid = amountOf(ending.amount, note)
      if (paid !== undefined) about.push(['Charged', paid])
      about.push(['Order number', ending.orderId ?? `being read (your reference: ${reference})`])
      return {
        heading: 'Order placed',
        content: [make('p', '', 'Thank you. It was charged once.'), details(about)],
      }
    }
    case 'checking':
      return {
        heading: 'We are checking your order',
        content: [
          make(
            'p',
            '',
            'Your order was sent, but the shop’s answer has not reached us. It may have been charged. Please do not order it again, here or elsewhere.',
          ),
          make(
            'p',
            '',
            'We keep asking until we know, and will never charge it twice. You may close this page; we go on when you come back.',
          ),
          details(about),
        ],
      }
    case 'attention':
      about.push(['Your reference', reference], ['Idempotency-Key', ending.key])
      return {
        heading: 'Please contact us',
        content: [
          make(
            'p',
            '',
            'We could not find out whether this order was charged. Do not order it again. Our support can look it up with these details:',
          ),
          details(about),
        ],
      }
  }
}

/** An amount as people read it. Orders show no currency in the API document; it is that of the service. */
export function amountOf(amount: number | undefined, note: Note | undefined): string | undefined {
  return amount === undefined || note === undefined
    ? undefined
    : formatAmount({ amount, currency: note.currency }, navigator.language)
}

function details(rows: readonly (readonly [term: string, detail: string])[]): HTMLElement {
  return make(
    'dl',
    'details',
    ...rows.map(([term, detail]) => make('div', '', make('dt', '', term), make('dd', '', detail))),
  )
}
