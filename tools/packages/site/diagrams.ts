/**
 * Draws the diagrams that the pages write in Mermaid's words, while the site is built: GitHub draws the same blocks
 * itself, and no page loads a library. It knows what the pages use: sequences, states (as a table) and layers.
 */

const LINE = 17
const COLUMN = 200

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** Lines of at most that many characters, broken between words. */
function wrap(text: string, most: number): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < most) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

const label = (lines: readonly string[], x: number, y: number, kind = ''): string =>
  lines
    .map((line, index) => `<text class="${kind}" x="${x}" y="${y + index * LINE}">${escaped(line)}</text>`)
    .join('')

const box = (x: number, y: number, width: number, height: number, kind = ''): string =>
  `<rect class="${kind}" x="${x}" y="${y}" width="${width}" height="${height}" rx="6" />`

function picture(width: number, height: number, words: string, parts: readonly string[]): string {
  const head =
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">' +
    '<path d="M0 0 L8 4 L0 8 z" /></marker></defs>'
  return (
    `<svg v-pre class="diagram" role="img" aria-label="${escaped(words)}" viewBox="0 0 ${width} ${height}" ` +
    `width="${width}" height="${height}">${head}${parts.join('')}</svg>\n`
  )
}

function sequence(lines: readonly string[]): string {
  const columns = new Map<string, number>()
  const parts: string[] = []
  const told: string[] = []
  const loops: number[] = []
  let y = 60
  const xOf = (name: string): number => columns.get(name) ?? 0
  for (const line of lines) {
    const [, participant, title] = /^participant (\w+) as (.+)$/.exec(line) ?? []
    const [, from = '', arrow, to = '', text = ''] = /^(\w+)(--?(?:>>|x))(\w+): (.+)$/.exec(line) ?? []
    const [, first = '', last, note] = /^Note over (\w+)(?:,(\w+))?: (.+)$/.exec(line) ?? []
    const [, loop] = /^loop (.+)$/.exec(line) ?? []
    if (participant !== undefined && title !== undefined) {
      const x = COLUMN / 2 + columns.size * COLUMN
      columns.set(participant, x)
      parts.push(box(x - 75, 6, 150, 32), label([title], x, 27, 'strong'))
    } else if (arrow !== undefined) {
      const [x, end] = [xOf(from), xOf(to)]
      const said = wrap(text, Math.max(1, Math.abs(end - x) / COLUMN) * 26)
      told.push(`${from} to ${to}: ${text}`)
      const kind = arrow.startsWith('--') ? 'arrow back' : 'arrow'
      if (x === end) {
        parts.push(label(said, x + 14, y + 12, 'start'))
        y += said.length * LINE
        parts.push(`<path class="${kind}" d="M${x} ${y - 22} h8 v18 h-8" />`)
        y += 16
        continue
      }
      const lost = arrow.endsWith('x')
      const tip = lost ? (x + end) / 2 : end
      parts.push(label(said, (x + end) / 2, y))
      y += (said.length - 1) * LINE + 8
      parts.push(`<path class="${kind}" d="M${x} ${y} H${tip}" />`)
      if (lost) parts.push(`<path class="lost" d="M${tip - 6} ${y - 6} l12 12 m0 -12 l-12 12" />`)
      y += 26
    } else if (note !== undefined) {
      const [x, end] = [xOf(first), xOf(last ?? first)]
      const said = wrap(note, ((Math.abs(end - x) + 160) / COLUMN) * 26)
      told.push(note)
      parts.push(box(Math.min(x, end) - 80, y - 12, Math.abs(end - x) + 160, said.length * LINE + 12, 'note'))
      parts.push(label(said, (x + end) / 2, y + 7))
      y += said.length * LINE + 24
    } else if (loop !== undefined) {
      loops.push(y - 14)
      parts.push(label([loop], 16, y + 2, 'start strong'))
      y += 28
    } else if (line === 'end') {
      const top = loops.pop() ?? y
      parts.push(box(6, top, columns.size * COLUMN - 12, y - top - 8, 'loop'))
      y += 16
    }
  }
  const lanes = [...columns.values()].map((x) => `<path class="lane" d="M${x} 38 V${y}" />`)
  return picture(columns.size * COLUMN, y + 8, told.join('. '), [...lanes, ...parts])
}

function states(lines: readonly string[]): string {
  const rows = lines.flatMap((line) => {
    const [, from = '', to = '', why = ''] = /^(\S+) --> (\S+): (.+)$/.exec(line) ?? []
    return to === '' ? [] : [`| ${from === '[*]' ? 'nothing' : from} | ${to} | ${why} |`]
  })
  const cells = rows.map((row) => row.slice(2, -2).split(' | '))
  const body = cells
    .map(
      ([from = '', to = '', why = '']) =>
        `<tr>${[from, to, why].map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`,
    )
    .join('')
  return `<table v-pre tabindex="0"><thead><tr><th>from</th><th>to</th><th>by</th></tr></thead><tbody>${body}</tbody></table>\n`
}

function layers(lines: readonly string[]): string {
  const names = new Map<string, readonly string[]>()
  const edges: (readonly [string, string])[] = []
  for (const line of lines) {
    const [, name, text = ''] = /^(\w+)\[\(?"(.+)"\)?\]$/.exec(line) ?? []
    if (name !== undefined)
      names.set(
        name,
        text.split('<br/>').flatMap((part) => wrap(part, 30)),
      )
    const [, from, to] = /^(\w+) --> (\w+)$/.exec(line) ?? []
    if (from !== undefined && to !== undefined) edges.push([from, to])
  }
  const depthOf = (name: string): number =>
    Math.max(0, ...edges.filter(([, to]) => to === name).map(([from]) => depthOf(from) + 1))
  const rows = Map.groupBy(names.keys(), depthOf)
  const width = Math.max(...[...rows.values()].map((row) => row.length)) * 250
  const tall = Math.max(...[...names.values()].map((text) => text.length)) * LINE + 16
  const places = new Map(
    [...rows].flatMap(([depth, row]) =>
      row.map((name, index) => {
        const x = (width / row.length) * (index + 0.5)
        return [name, { x, y: 6 + depth * (tall + 40) }] as const
      }),
    ),
  )
  const parts = [...places].map(([name, { x, y }]) => {
    const text = names.get(name) ?? []
    return box(x - 115, y, 230, tall) + label(text, x, y + (tall - text.length * LINE) / 2 + 13)
  })
  const arrows = edges.flatMap(([from, to]) => {
    const [start, end] = [places.get(from), places.get(to)]
    return start && end ? [`<path class="arrow" d="M${start.x} ${start.y + tall} L${end.x} ${end.y}" />`] : []
  })
  const told = edges.map(([from, to]) => `${from} uses ${to}`).join('. ')
  return picture(width, rows.size * (tall + 40), told, [...arrows, ...parts])
}

/** The HTML of a block in Mermaid's words; undefined for a kind of diagram that no page has yet. */
export function draw(source: string): string | undefined {
  const [kind = '', ...lines] = source.split('\n').map((line) => line.trim())
  if (kind === 'sequenceDiagram') return sequence(lines)
  if (kind.startsWith('stateDiagram')) return states(lines)
  if (kind.startsWith('flowchart')) return layers(lines)
  return undefined
}
