import type { Overview } from '../../control/overview.ts'
import { code } from './cells.ts'
import { byId, element } from './elements.ts'
import { drawEach } from './keyed.ts'

export function drawBehaviour({ preset, behaviour }: Overview): void {
  const select = byId('preset')
  if (select instanceof HTMLSelectElement) select.value = preset ?? ''
  drawEach(
    byId('switches'),
    Object.entries(behaviour),
    ([name]) => name,
    ([name, value]) =>
      element('div', {}, element('dt', {}, name), element('dd', {}, code(JSON.stringify(value)))),
  )
}
