/**
 * Shows the form, or the outcome of the order. Nothing else can be ordered until the outcome is
 * known.
 */
import { type Balance, formatAmount, type Service } from 'customer-ordering-sdk'
import type { Checkout, Ending } from './checkout.ts'
import { announce, byId, make } from './dom.ts'
import { concludeDraft, draftReference, type Note, noteOf, writeNote } from './draft.ts'
import { type Filled, startOrderForm } from './order-form.ts'
import { CLOSED, formatNumber, refusal, titleOf } from './words.ts'

export interface OrderPanel {
  choose(service: Service): void
  expectBalance(balance: Balance): void
  /**
   * Receives the outcome of an order: the one on this panel, or one that an earlier page left open.
   */
  hear(reference: string | undefined, ending: Ending): void
  /** Checks the order on this panel: another tab may have placed it. */
  look(): Promise<void>
}

/**
 * @param changed called when an order was sent or has ended
 */
export function startOrderPanel(checkout: Checkout, changed: () => void): OrderPanel {
  const section = byId('order', HTMLElement)
  const columns = byId('columns', HTMLElement)
  const formElement = byId('order-form', HTMLFormElement)
  const title = byId('order-title', HTMLElement)
  const place = byId('ending', HTMLElement)
  /** The panel shows this order, whatever other tabs do. */
  let reference = draftReference()
  let shown: keyof typeof CLOSED = 'form'
  const form = startOrderForm((filled) => void placeOrder(filled))

  async function placeOrder({ service, target, quantity }: Filled): Promise<void> {
    form.setBusy(true)
    announce('Placing your order…')
    // Another tab may have ordered a moment ago. If the store cannot be read, `place` reports it.
    await look().catch(console.warn)
    if (shown !== 'form') {
      form.setBusy(false)
      return
    }
    become('placing')
    writeNote(reference, { title: titleOf(service), quantity, target, currency: service.currency })
    // Ask the browser not to delete the store when space runs out. Orders work without it, too.
    navigator.storage.persist().catch(console.warn)
    const request = {
      serviceId: service.productId,
      target,
      quantity,
      metadata: { externalOrderId: reference },
    }
    const ending = await checkout.place(request).catch((error: unknown): Ending => {
      console.error(error)
      // This is a bug of the page, which proves nothing about the order.
      return { state: 'checking' }
    })
    form.setBusy(false)
    showEnding(ending)
    changed()
  }

  function become(state: typeof shown): void {
    shown = state
    form.close(CLOSED[state])
  }

  function showEnding(ending: Ending): void {
    if (ending.state === shown) return
    // Include the list of services, which may be disabled now.
    const focused = columns.contains(document.activeElement)
    if (ending.state === 'refused') {
      become('form')
      showForm()
      form.refuse(refusal(ending.error))
      if (focused) byId('place', HTMLButtonElement).focus()
      return
    }
    become(ending.state)
    // The person has now seen the outcome, so the next order gets a new reference.
    if (ending.state !== 'checking') concludeDraft(reference)
    const { heading, content } = contentOf(ending, reference)
    title.textContent = heading
    formElement.hidden = true
    place.replaceChildren(...content, ...(ending.state === 'checking' ? [] : [anotherButton()]))
    place.className = `ending ${ending.state}`
    place.hidden = false
    if (focused) title.focus({ preventScroll: true })
    else announce(`${heading}. ${place.querySelector('p')?.textContent ?? ''}`)
    const { top, bottom } = section.getBoundingClientRect()
    if (top < 0 || bottom > innerHeight) section.scrollIntoView()
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
      become('form')
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
    // The browser lost the draft, but not the order: local storage is less durable than the store.
    else if (open !== undefined && shown === 'form') adopt(open, { state: 'checking' })
    // The order was sent and is no longer open: another tab learnt that it was refused.
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
  const about: Row[] =
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
      about.push(
        ending.orderId === undefined
          ? ['Your reference', id(reference)]
          : ['Order number', id(ending.orderId)],
      )
      return {
        heading: 'Order placed',
        content: [make('p', '', 'Thank you. Your order was charged once.'), details(about)],
      }
    }
    case 'checking':
      return {
        heading: 'We are checking your order',
        content: [
          make(
            'p',
            '',
            'We have no confirmation yet. Your order may have been placed and charged, or not. Please do not order it again, here or elsewhere.',
          ),
          make(
            'p',
            '',
            'We keep checking until we know, and never charge an order twice. You may close this page: we continue when you come back.',
          ),
          details(about),
        ],
      }
    case 'attention':
      about.push(['Your reference', id(reference)], ['Idempotency-Key', id(ending.key)])
      return {
        heading: 'Please contact us',
        content: [
          make(
            'p',
            '',
            'We could not find out whether this order was charged. Do not order it again. Our support can find it with these details:',
          ),
          details(about),
        ],
      }
  }
}

/** Formats an amount. Orders have no currency in the API document, so use that of the service. */
export function amountOf(amount: number | undefined, note: Note | undefined): string | undefined {
  return amount === undefined || note === undefined
    ? undefined
    : formatAmount({ amount, currency: note.currency }, navigator.language)
}

type Row = readonly [term: string, detail: Node | string]

/** Shows an identifier that a person may copy or compare. */
function id(text: string): HTMLElement {
  return make('code', '', text)
}

function details(rows: readonly Row[]): HTMLElement {
  return make(
    'dl',
    'details',
    ...rows.map(([term, detail]) => make('div', '', make('dt', '', term), make('dd', '', detail))),
  )
}
