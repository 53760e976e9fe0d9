/** Prints the results of a command, each one as soon as it is known. */
import { isCustomerOrderingError } from '../errors/classes.ts'
import { EXIT, type Exit, Interrupted, type Terminal, visible } from './terminal.ts'

/** One result: a value for programs, and cells for people. */
export interface Line {
  readonly value: unknown
  readonly cells: Cells
  /** True if a person is needed: exit code 3. */
  readonly attention?: boolean
  /** What the last line counts. */
  readonly kind?: string
  /** What a person must know besides the cells, in the words of the client. */
  readonly note?: string | undefined
  /** Counted, but not printed. */
  readonly hidden?: boolean
}

export type Cells = Readonly<Record<string, string | number | undefined>>

export interface Shape {
  /** Widths of a table's columns. Without them, each result is printed as lines. */
  readonly widths?: readonly number[]
  /** What it means that there is no result, if it means a failure. */
  readonly nothing?: string
}

interface Printing extends Shape {
  readonly terminal: Terminal
  readonly json: boolean
  say(message: string): void
}

export async function printLines(lines: AsyncIterable<Line>, printing: Printing): Promise<Exit> {
  const { terminal, say, nothing } = printing
  const { stop } = terminal
  const counts = new Map<string, number>()
  const noted = new Set<string>()
  let [read, printed, attention] = [0, 0, 0]
  try {
    for await (const line of lines) {
      if (line.kind !== undefined) counts.set(line.kind, (counts.get(line.kind) ?? 0) + 1)
      if (line.attention) attention++
      if (!line.hidden) terminal.out(textOf(line, printed++ === 0, printing))
      const { note } = line
      if (note !== undefined && !noted.has(note)) say(note)
      if (note !== undefined) noted.add(note)
      terminal.progress(`${++read} … `)
      if (stop.aborted) break
    }
  } catch (error) {
    if (!stop.aborted || !isCustomerOrderingError(error) || error.code !== 'aborted') throw error
  }
  const summary = [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ')
  if (stop.reason instanceof Interrupted) {
    if (stop.reason.exit !== EXIT.outputClosed)
      say(`interrupted${summary && `, after ${summary}`}. Run the command again.`)
    return stop.reason.exit
  }
  if (summary !== '') say(summary)
  if (read === 0 && nothing !== undefined) {
    say(nothing)
    return EXIT.failed
  }
  if (printed === 0 && !printing.json) terminal.out('none\n')
  return attention === 0 ? EXIT.done : EXIT.needsAttention
}

function textOf(
  { value, cells, attention }: Line,
  first: boolean,
  { json, widths, terminal }: Printing,
): string {
  if (json) return `${visible(JSON.stringify(value))}\n`
  if (widths === undefined) return linesOf(cells)
  const head = first ? `${terminal.paint('bold', rowOf(Object.keys(cells), widths))}\n` : ''
  const row = rowOf(Object.values(cells), widths)
  if (attention === undefined) return `${head}${row}\n`
  const [width = 0] = widths
  return `${head}${terminal.paint(attention ? 'yellow' : 'green', row.slice(0, width))}${row.slice(width)}\n`
}

/** With endless time limits, a claim ends later than the last time that a Date can have. */
const LAST_TIME = 8.64e15

export function time(milliseconds: number | undefined): string | undefined {
  if (!milliseconds) return undefined
  return new Date(Math.min(milliseconds, LAST_TIME)).toISOString().replace(/\.\d+/, '')
}

const COLUMNS = 120

/** Rows are printed before later rows are known, so the widths of columns are fixed. */
function rowOf(cells: readonly unknown[], widths: readonly number[]): string {
  const padded = cells.map((cell, column) => visible(String(cell ?? '')).padEnd(widths[column] ?? 0))
  const row = padded.join('  ').trimEnd()
  return row.length > COLUMNS ? `${row.slice(0, COLUMNS - 1)}…` : row
}

function linesOf(cells: Cells): string {
  return Object.entries(cells)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => `${name.padEnd(17)}${visible(String(value))}\n`)
    .join('')
}
