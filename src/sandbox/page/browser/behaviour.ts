import type { Overview } from '../../control/overview.ts'
import { code } from './cells.ts'
import { byId, draw, element } from './elements.ts'

export function drawBehaviour({ preset, behaviour }: Overview): void {
  const select = byId('preset')
  if (select instanceof HTMLSelectElement) select.value = preset ?? ''
  draw('switches', behaviour, (place) =>
    place.replaceChildren(
      ...Object.entries(behaviour).flatMap(([name, value]) => [
        element('dt', {}, name),
        element('dd', {}, code(JSON.stringify(value))),
      ]),
    ),
  )
}
