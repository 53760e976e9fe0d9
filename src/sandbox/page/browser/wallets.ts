import type { SandboxCustomer } from '../../service/state.ts'
import { code, money } from './cells.ts'
import { act, call } from './control.ts'
import { byId, element } from './elements.ts'
import { drawEach } from './keyed.ts'

function walletOf({ id, type, wallet }: SandboxCustomer): HTMLElement {
  const amount = element('input', {
    type: 'number',
    step: '1',
    value: '10000',
    required: '',
    id: `add-${id}`,
  })
  const label = element('label', { for: `add-${id}` }, 'Add minor units')
  label.append(element('span', { class: 'unseen' }, ` to ${id}, negative to remove`))
  const form = element('form', {}, label, amount, element('button', { type: 'submit' }, 'Top up'))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const body = JSON.stringify({ customer: id, amount: amount.valueAsNumber })
    act(() => call('POST', '/top-up', body))
  })
  return element(
    'div',
    { class: 'wallet' },
    element('span', {}, code(id), element('br'), element('small', {}, type)),
    element('strong', {}, wallet === null ? 'no wallet' : money(wallet.amount, wallet.currency)),
    form,
  )
}

export function drawWallets(customers: readonly SandboxCustomer[]): void {
  drawEach(byId('wallets'), customers, ({ id }) => id, walletOf)
}
