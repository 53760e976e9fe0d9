import type { SandboxFaultStatus } from '../../service/faults.ts'
import { badge, code } from './cells.ts'
import { act, call } from './control.ts'
import { byId, draw, element } from './elements.ts'

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

export function drawRules(faults: readonly SandboxFaultStatus[]): void {
  byId('rules-count').textContent = String(faults.length)
  byId('clear-rules').hidden = faults.length === 0
  draw('rules', faults, (place) => {
    const held = place.contains(document.activeElement)
    place.replaceChildren(
      ...faults.map((status) => {
        const { match, action } = status.rule
        const remove = element('button', { type: 'button' }, 'Remove')
        remove.setAttribute('aria-label', `Remove rule ${status.id}, ${action.type}`)
        remove.addEventListener('click', () => act(() => call('DELETE', `/faults/${status.id}`)))
        const what = element('span', {}, code(action.type))
        if (status.spent) what.append(' ', badge('info', 'done'))
        const scope = scopeOf(match ?? {})
        what.append(element('small', {}, scope), element('small', {}, oftenOf(status)))
        return element('li', {}, what, remove)
      }),
    )
    // Keeps the focus in the list for a keyboard user who removes rules one by one.
    if (held) (place.querySelector('button') ?? byId('rule')).focus()
  })
}
