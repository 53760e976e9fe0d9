import { byId, element } from './elements.ts'
import { drawEach } from './keyed.ts'

export type Row = readonly (Node | string)[]

export interface Table<Item> {
  readonly columns: readonly string[]
  readonly items: readonly Item[]
  /** Includes items that the table does not show. */
  readonly total: number
  keyOf(item: Item): string | number
  cellsOf(item: Item): Row
}

export function drawTable<Item>(
  id: string,
  { columns, items, total, keyOf, cellsOf }: Table<Item>,
): HTMLTableElement {
  const place = byId(id)
  const table = place.querySelector('table') ?? place.appendChild(emptyTable(id, columns))
  drawEach(table.tBodies[0] ?? table, items, keyOf, (item) => rowOf(columns, cellsOf(item)))
  place.hidden = items.length === 0
  byId(`${id}-none`).hidden = items.length > 0
  byId(`${id}-count`).textContent = total > items.length ? `${items.length} of ${total}` : String(total)
  return table
}

function emptyTable(id: string, columns: readonly string[]): HTMLTableElement {
  const heads = columns.map((column) =>
    element(
      'th',
      { scope: 'col', role: 'columnheader', ...(isNumber(column) && { class: 'number' }) },
      column,
    ),
  )
  // Without explicit roles, assistive technology would not recognise the table on a narrow page,
  // which displays its rows as blocks.
  return element(
    'table',
    { role: 'table', 'aria-labelledby': `${id}-title` },
    element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...heads)),
    element('tbody', { role: 'rowgroup' }),
  )
}

function isNumber(column: string): boolean {
  return ['Amount', 'Quantity', 'Price'].includes(column)
}

function rowOf(columns: readonly string[], cells: Row): HTMLElement {
  const row = element('tr', { role: 'row' })
  for (const [index, cell] of cells.entries()) {
    const column = columns[index] ?? ''
    const kind = cell === '' ? 'empty' : isNumber(column) ? 'number' : ''
    const label = { 'data-label': column, ...(kind !== '' && { class: kind }) }
    const inner = element('div', { class: 'cell' }, cell)
    row.append(
      index === 0
        ? element('th', { scope: 'row', role: 'rowheader', ...label }, inner)
        : element('td', { role: 'cell', ...label }, inner),
    )
  }
  return row
}
