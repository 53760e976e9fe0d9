import type { SandboxFaultStatus } from '../../service/faults.ts'
import { act, call } from './control.ts'
import { byId, element } from './elements.ts'

const toggles: readonly {
  readonly name: string
  readonly hint: string
  readonly rule: { readonly match?: Record<string, string>; readonly action: Record<string, unknown> }
}[] = [
  {
    name: 'Charge, then lose the response',
    hint: 'orders: the wallet is debited, then the connection breaks',
    rule: { match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } },
  },
  {
    name: 'Drop the connection',
    hint: 'the request is not processed',
    rule: { action: { type: 'drop' } },
  },
  {
    name: 'Cut the response in half',
    hint: 'headers, half of the body, then the connection breaks',
    rule: { action: { type: 'cutBody' } },
  },
  {
    name: 'Charge, then return 503',
    hint: 'orders: an error that hides a charge',
    rule: { match: { operation: 'createOrder' }, action: { type: 'status', status: 503, commit: true } },
  },
  {
    name: 'Still in progress',
    hint: 'orders: 409 IDEMPOTENCY_IN_PROGRESS',
    rule: { match: { operation: 'createOrder' }, action: { type: 'inProgress' } },
  },
  {
    name: '502 from a gateway',
    hint: 'an HTML page instead of JSON',
    rule: { action: { type: 'status', status: 502, html: true } },
  },
  {
    name: 'Too many requests',
    hint: '429 with Retry-After: 2',
    rule: { action: { type: 'status', status: 429, headers: { 'retry-after': '2' } } },
  },
  {
    name: 'Respond 3 seconds late',
    hint: 'the request is processed immediately',
    rule: { action: { type: 'delay', ms: 3000, when: 'after' } },
  },
  {
    name: 'Never respond',
    hint: 'the connection stays open and silent',
    rule: { action: { type: 'stall' } },
  },
  {
    name: 'Amount of the wrong type',
    hint: 'orders: "12.50" instead of an integer',
    rule: {
      match: { operation: 'createOrder' },
      action: { type: 'transformBody', patch: { amount: '12.50' } },
    },
  },
  {
    name: 'Forget idempotency keys',
    hint: 'orders: a repeated request is charged again',
    rule: { match: { operation: 'createOrder' }, action: { type: 'forgetKeys' } },
  },
]

let rules: readonly SandboxFaultStatus[] = []

function isRuleOf(index: number, { rule }: SandboxFaultStatus): boolean {
  const own = toggles[index]?.rule
  return JSON.stringify([own?.match, own?.action]) === JSON.stringify([rule.match, rule.action])
}

async function toggle(index: number, on: boolean): Promise<void> {
  const own = rules.filter((status) => isRuleOf(index, status))
  for (const { id } of own) await call('DELETE', `/faults/${id}`)
  if (!on) return
  const chosen = document.querySelector('input[name="times"]:checked')
  const often = chosen instanceof HTMLInputElement ? chosen.value : 'once'
  const times = often === 'once' ? {} : { times: 'always', ...(often === 'some' && { probability: 0.25 }) }
  await call('POST', '/faults', JSON.stringify({ ...toggles[index]?.rule, ...times }))
}

export function makeToggles(): void {
  for (const [index, { name, hint }] of toggles.entries()) {
    const input = element('input', {
      type: 'checkbox',
      role: 'switch',
      'aria-describedby': `hint-${index}`,
    })
    input.addEventListener('change', () => {
      const { checked } = input
      act(() =>
        toggle(index, checked).catch((error: unknown) => {
          input.checked = !checked
          throw error
        }),
      )
    })
    const label = element('label', {}, input, element('span', {}, name))
    label.append(element('small', { id: `hint-${index}` }, hint))
    byId('toggles').append(label)
  }
}

export function drawToggles(faults: readonly SandboxFaultStatus[]): void {
  rules = faults
  for (const [index, input] of [...byId('toggles').querySelectorAll('input')].entries())
    input.checked = faults.some((status) => !status.spent && isRuleOf(index, status))
}
