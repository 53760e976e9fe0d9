import type { SandboxFaultStatus } from '../../service/faults.ts'
import { badge, code } from './cells.ts'
import { act, call } from './control.ts'
import { byId, element } from './elements.ts'
import { drawEach } from './keyed.ts'

function scopeOf(match: object): string {
  const conditions = Object.entries(match).map(([name, value]) => `${name} ${String(value)}`)
  return conditions.length === 0 ? 'every request' : conditions.join(', ')
}

function oftenOf({ rule, acted, matched }: SandboxFaultStatus): string {
  const { times = 1, probability, skip } = rule
  const notes = [
    times === 'always' ? `acted ${acted}, always on` : `acted ${acted} of ${times}`,
    `matched ${matched}`,
    skip === undefined ? '' : `skips ${skip}`,
    probability === undefined ? '' : `chance ${probability}`,
  ]
  return notes.filter((note) => note !== '').join(', ')
}

function itemOf(status: SandboxFaultStatus): HTMLElement {
  const { id, rule, spent } = status
  const { match = {}, action } = rule
  const remove = element('button', { type: 'button', 'aria-label': `Remove rule ${id}, ${action.type}` })
  remove.append('Remove')
  remove.addEventListener('click', () => act(() => call('DELETE', `/faults/${id}`)))
  const what = element('span', {}, code(action.type))
  if (spent) what.append(' ', badge('info', 'done'))
  what.append(element('small', {}, scopeOf(match)), element('small', {}, oftenOf(status)))
  return element('li', {}, what, remove)
}

export function drawRules(faults: readonly SandboxFaultStatus[]): void {
  byId('rules-count').textContent = String(faults.length)
  byId('clear-rules').hidden = faults.length === 0
  const place = byId('rules')
  const held = place.contains(document.activeElement)
  drawEach(place, faults, ({ id }) => id, itemOf)
  // Without this line, a keyboard user would lose the focus after removing a rule.
  if (held && !place.contains(document.activeElement)) (place.querySelector('button') ?? byId('rule')).focus()
}
