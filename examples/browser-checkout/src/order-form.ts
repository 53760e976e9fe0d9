/** The form: a service, for whom, how many, and what it is expected to cost. */
import { type Balance, checkQuantity, formatAmount, type Service } from 'customer-ordering-sdk'
import { byId, make, show } from './dom.ts'
import { choicesOf, nextQuantity, readQuantity } from './quantity.ts'
import { formatNumber, quantityRule, titleOf } from './words.ts'

/** Values of the form that passed the checks of the page. */
export interface Filled {
  readonly service: Service
  readonly target: string
  readonly quantity: number
}

export interface OrderForm {
  choose(service: Service): void
  expectBalance(balance: Balance): void
  setBusy(placing: boolean): void
  /** Disables the choice of services and shows the reason. An empty reason enables it again. */
  close(reason: string): void
  refuse(text: string): void
  fill(values: { readonly target: string; readonly quantity: number | undefined }): void
}

export function startOrderForm(order: (filled: Filled) => void): OrderForm {
  const form = byId('order-form', HTMLFormElement)
  const services = byId('services', HTMLFieldSetElement)
  const closed = byId('closed', HTMLElement)
  const chosen = byId('chosen', HTMLElement)
  const target = byId('target', HTMLInputElement)
  const targetProblem = byId('target-problem', HTMLElement)
  const quantity = byId('quantity', HTMLInputElement)
  const quantityHint = byId('quantity-hint', HTMLElement)
  const quantityProblem = byId('quantity-problem', HTMLElement)
  const nearest = byId('nearest', HTMLElement)
  const fewer = byId('fewer', HTMLButtonElement)
  const more = byId('more-of-it', HTMLButtonElement)
  const preview = byId('preview', HTMLElement)
  const refusal = byId('refusal', HTMLElement)
  const place = byId('place', HTMLButtonElement)
  const onward = byId('onward', HTMLAnchorElement)
  let service: Service | undefined
  let balance: Balance | undefined
  /** True if the person chose the quantity. Keep it, if possible, when the service changes. */
  let picked = false
  /** True while an order is being placed: the form must not change. */
  let busy = false

  function choose(next: Service): void {
    service = next
    const choices = choicesOf(next)
    const price = formatAmount(next, navigator.language)
    chosen.classList.remove('empty')
    chosen.replaceChildren(make('span', 'title', titleOf(next)), make('span', 'price', `${price} each`))
    showOnward()
    show(quantityHint, choices ? quantityRule(choices.first, choices.last, choices.step) : '')
    if (!picked || !checkQuantity(next, readQuantity(quantity.value)).ok)
      quantity.value = String(choices?.first ?? '')
    show(refusal, '')
    update()
  }

  /** On a narrow page, the panel is out of sight while the person chooses. */
  function showOnward(): void {
    show(onward, services.disabled || service === undefined ? '' : `Continue with ${titleOf(service)}`)
  }

  /** Shows the price. Shows a problem only after the person has left the field or sent the form. */
  function update(): void {
    const wanted = readQuantity(quantity.value)
    const fits = service !== undefined && checkQuantity(service, wanted).ok
    if (fits) {
      show(quantityProblem, '')
      nearest.hidden = true
      quantityHint.hidden = false
      quantity.removeAttribute('aria-invalid')
    }
    if (target.value.trim() !== '') {
      show(targetProblem, '')
      target.removeAttribute('aria-invalid')
    }
    for (const [button, direction] of [
      [fewer, -1],
      [more, 1],
    ] as const) {
      const possible =
        !busy && service !== undefined && nextQuantity(service, numberOr(wanted, 0), direction) !== undefined
      button.setAttribute('aria-disabled', String(!possible))
    }
    showPreview(fits ? wanted : undefined)
  }

  function showPreview(wanted: number | undefined): void {
    const amount = service === undefined || wanted === undefined ? Number.NaN : service.amount * wanted
    preview.hidden = service === undefined || !Number.isSafeInteger(amount)
    preview.replaceChildren()
    if (service === undefined || wanted === undefined || preview.hidden) return
    const { currency } = service
    const format = (value: number): string => formatAmount({ amount: value, currency }, navigator.language)
    const rows = [row(`${formatNumber(wanted)} × ${format(service.amount)}`, format(amount), 'total')]
    if (balance?.currency === currency) {
      const left = balance.amount - amount
      rows.push(
        left < 0
          ? row('Your balance is short by', format(-left), 'short')
          : row('Balance afterwards', format(left), ''),
      )
    }
    preview.replaceChildren(...rows)
  }

  function showQuantityProblem(): boolean {
    if (service === undefined) return false
    const wanted = readQuantity(quantity.value)
    const check = checkQuantity(service, wanted)
    if (check.ok) return true
    const choices = choicesOf(service)
    show(
      quantityProblem,
      check.reason === 'not_a_number' || choices === undefined
        ? 'Enter a whole number.'
        : `Choose ${quantityRule(choices.first, choices.last, choices.step)}.`,
    )
    quantityHint.hidden = true
    quantity.setAttribute('aria-invalid', 'true')
    const [below, above] = [nextQuantity(service, wanted, -1), nextQuantity(service, wanted, 1)]
    const offers = [below, above].filter((value) => value !== undefined).map(offer)
    nearest.replaceChildren(...offers)
    nearest.hidden = offers.length === 0
    return false
  }

  function offer(value: number): HTMLButtonElement {
    const button = make('button', 'secondary small', `Take ${formatNumber(value)}`)
    button.type = 'button'
    button.addEventListener('click', () => {
      setQuantity(value)
      quantity.focus()
    })
    return button
  }

  function setQuantity(value: number): void {
    quantity.value = String(value)
    picked = true
    update()
  }

  function step(direction: 1 | -1): void {
    if (busy || service === undefined) return
    const next = nextQuantity(service, numberOr(readQuantity(quantity.value), 0), direction)
    if (next !== undefined) setQuantity(next)
  }

  fewer.addEventListener('click', () => step(-1))
  more.addEventListener('click', () => step(1))
  quantity.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return
    event.preventDefault()
    step(event.key === 'ArrowUp' ? 1 : -1)
  })
  quantity.addEventListener('input', () => {
    picked = true
  })
  quantity.addEventListener('change', showQuantityProblem)
  form.addEventListener('input', () => {
    show(refusal, '')
    update()
  })
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (busy) return
    show(refusal, '')
    if (service === undefined) {
      show(refusal, 'Choose a service first.')
      return
    }
    const wanted = target.value.trim()
    show(targetProblem, wanted === '' ? 'Enter the handle of the recipient.' : '')
    if (wanted === '') target.setAttribute('aria-invalid', 'true')
    if (!showQuantityProblem()) quantity.focus()
    if (wanted === '') target.focus()
    if (wanted === '' || !checkQuantity(service, readQuantity(quantity.value)).ok) return
    order({ service, target: wanted, quantity: readQuantity(quantity.value) })
  })
  update()

  return {
    choose,
    expectBalance: (known) => {
      balance = known
      update()
    },
    setBusy: (placing) => {
      busy = placing
      // Do not set `disabled`: the button would lose the focus.
      place.setAttribute('aria-disabled', String(busy))
      place.textContent = busy ? 'Placing your order…' : 'Place order'
      for (const input of [target, quantity]) input.readOnly = busy
      update()
    },
    close: (reason) => {
      services.disabled = reason !== ''
      show(closed, reason)
      showOnward()
    },
    refuse: (text) => show(refusal, text),
    fill: (values) => {
      target.value = values.target
      quantity.value = String(values.quantity ?? '')
      picked = values.quantity !== undefined
      if (service !== undefined && values.quantity === undefined) choose(service)
      update()
    },
  }
}

function row(term: string, detail: string, className: string): HTMLElement {
  return make('div', className, make('dt', '', term), make('dd', '', detail))
}

function numberOr(value: number, instead: number): number {
  return Number.isNaN(value) ? instead : value
}
