import { byId, element } from './elements.ts'

export type Row = readonly (Node | string)[]

export function tableOf(columns: readonly string[], name: string): HTMLTableElement {
  const heads = columns.map((column) =>
    element(
      'th',
      { scope: 'col', role: 'columnheader', ...(isNumber(column) && { class: 'number' }) },
      column,
    ),
  )
  // Explicit roles: a narrow page lays rows out as blocks, and browsers then no longer treat it as
  // a table.
  return element(
    'table',
    { role: 'table', 'aria-label': name },
    element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...heads)),
    element('tbody', { role: 'rowgroup' }),
  )
}

function isNumber(column: string): boolean {
  return ['Amount', 'Quantity', 'Price'].includes(column)
}

export function fillRow(row: HTMLTableRowElement, columns: readonly string[], cells: Row): void {
  row.setAttribute('role', 'row')
  row.replaceChildren(
    ...cells.map((cell, index) => {
      const column = columns[index] ?? ''
      const inner = element('div', { class: 'cell' }, cell)
      const kind = cell === '' ? 'empty' : isNumber(column) ? 'number' : ''
      const label = { 'data-label': column, ...(kind !== '' && { class: kind }) }
      return index === 0
        ? element('th', { scope: 'row', role: 'rowheader', ...label }, inner)
        : element('td', { role: 'cell', ...label }, inner)
    }),
  )
}

export function drawTable(id: string, columns: readonly string[], rows: readonly Row[], total: number): void {
  const table = tableOf(columns, id)
  for (const cells of rows) {
    const row = element('tr')
    fillRow(row, columns, cells)
    table.tBodies[0]?.append(row)
  }
  byId(id).replaceChildren(rows.length === 0 ? element('p', { class: 'note' }, 'None.') : table)
  byId(`${id}-count`).textContent = total > rows.length ? `${rows.length} of ${total}` : String(total)
}
