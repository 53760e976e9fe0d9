/**
 * Reads the part of YAML that fault and state files need: block and flow maps and lists, plain and quoted scalars on one
 * line, comments. All JSON is in it. Whatever is accepted means the same to every YAML reader; the rest (anchors, tags,
 * text blocks, several documents, words such as `yes` that readers take differently) is refused with its place and reason.
 */
export interface YamlDocument {
  readonly value: unknown
  /** Line of every value, by its path: `$`, `$[0].action`. */
  readonly lines: ReadonlyMap<string, number>
}

/** A line with something on it. A list item's own line is read again from behind its dash. */
interface Line {
  readonly number: number
  /** Offset of the line's first character. */
  readonly from: number
  /** Offset of the content. */
  readonly start: number
}

/** Deeper files are refused: reading them would run out of stack. Bodies inside a state nest 64 levels at most. */
const MAX_DEPTH = 100

const TEXT = /"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|'(?:[^'\p{Cc}]|'')*'/uy
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
/** Numbers, times, dates and switches in spellings that YAML 1.1 and 1.2 read differently. */
const AMBIGUOUS =
  /^(?:(?=[-+]?(?:[.\d]|e[-+]?\d))[-+]?(?:[\d_.]*(?:e[-+]?\d*)?|0[xob][\da-f_]+|[\d_]+(?::[0-5]?\d)+(?:\.[\d_]*)?|\d{4}-\d\d?-\d\d?(?:[t\s].*)?)|[-+]?\.(?:inf|nan)|true|false|null|yes|no|on|off|y|n|<<|=)$/i
const REST_OF_LINE = /[ \t]*(?:(?<=[ \t])#[^\n]*)?(?=\n|$)/y

/** Reads a text; throws a TypeError with line, column and reason. `root` names the whole in paths. */
export function readYaml(source: string, root = '$'): YamlDocument {
  const text = source.replace(/^\ufeff/, '').replaceAll('\r\n', '\n')
  const positions = new Map<string, number>()
  let depth = 0

  const lineStarts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  const fail = (offset: number, reason: string): never => {
    const line = lineNumber(offset)
    throw new TypeError(`line ${line}, column ${offset - (lineStarts[line - 1] ?? 0) + 1}: ${reason}`)
  }
  const control = text.search(/[^\P{Cc}\t\n]/u)
  if (control >= 0) fail(control, 'a control character')

  const lines: Line[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const from = lineStarts[index] ?? 0
    const start = from + (/^ */.exec(line)?.[0].length ?? 0)
    if (!/^[ \t]*(?:#|$)/.test(line)) lines.push({ number: index + 1, from, start })
  }
  const opening = lines[0]
  if (opening?.from === opening?.start && opening && /^---(?: +#.*| *)$/.test(lineText(opening)))
    lines.shift()

  /** Counted from 1. */
  function lineNumber(offset: number): number {
    let [low, high] = [0, lineStarts.length]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((lineStarts[middle] ?? 0) <= offset) low = middle
      else high = middle
    }
    return low + 1
  }

  /** Index of the line that is read next. */
  let at = 0

  function lineText(line: Line): string {
    const end = text.indexOf('\n', line.start)
    return text.slice(line.start, end < 0 ? text.length : end)
  }

  /** The next line if it belongs to a block that begins in the given column. */
  function lineAt(column: number): Line | null {
    const line = lines[at]
    if (line === undefined || line.start - line.from < column) return null
    if (line.start - line.from > column)
      fail(line.start, 'indented more than the line it belongs to (a text goes on one line, in quotes)')
    if (text[line.start] === '\t') fail(line.start, 'a tab as indentation')
    if (column === 0 && /^(?:---|\.\.\.)(?:\s|$)/.test(lineText(line)))
      fail(line.start, 'a second document; a file has one')
    if (line.from === line.start && text[line.start] === '%') fail(line.start, 'a directive')
    return line
  }

  function nested<T>(offset: number, read: () => T): T {
    if (++depth > MAX_DEPTH) fail(offset, `nested deeper than ${MAX_DEPTH} levels`)
    const result = read()
    depth--
    return result
  }

  /** The block, or the single value, that begins with the next line in this column. */
  function block(column: number, path: string): unknown {
    const line = lineAt(column) ?? fail(text.length, 'expected a value')
    positions.set(path, line.number)
    if (isDash(line.start)) return nested(line.start, () => list(column, path, false))
    if (keyAt(line.start) !== null) return nested(line.start, () => map(column, path))
    return inline(line.start, column - 1, path)
  }

  /** `ofField`: the list begins in the column of its field, which other fields may follow. */
  function list(column: number, path: string, ofField: boolean): unknown[] {
    const items: unknown[] = []
    for (let line = lineAt(column); line !== null && isDash(line.start); line = lineAt(column)) {
      const item = `${path}[${items.length}]`
      const rest = line.start + 1 + spaces(line.start + 1)
      if (endsLine(rest)) {
        at++
        items.push(below(column, item, line))
      } else {
        // What follows the dash is a block of its own, which begins where it stands.
        lines[at] = { ...line, start: rest }
        items.push(block(rest - line.from, item))
      }
    }
    const stray = ofField ? null : lineAt(column)
    if (stray !== null) fail(stray.start, 'expected "- " as in the lines above')
    return items
  }

  function map(column: number, path: string): unknown {
    const fields = new Map<string, unknown>()
    for (let line = lineAt(column); line !== null && !isDash(line.start); line = lineAt(column)) {
      const key = keyAt(line.start) ?? fail(line.start, 'expected a field, as in "name: value"')
      if (fields.has(key.name)) fail(line.start, `the field ${JSON.stringify(key.name)} is there twice`)
      const field = `${path}.${key.name}`
      positions.set(field, line.number)
      const start = key.end + spaces(key.end)
      if (endsLine(start)) {
        at++
        const next = lines[at]
        const dashed = next !== undefined && next.start - next.from === column && isDash(next.start)
        fields.set(
          key.name,
          dashed ? nested(start, () => list(column, field, true)) : below(column, field, line),
        )
      } else fields.set(key.name, inline(start, column, field))
    }
    const stray = lineAt(column)
    if (stray !== null) fail(stray.start, 'expected a field, not a list item')
    // Not by assignment: a field called __proto__ is a field like any other.
    return Object.fromEntries(fields)
  }

  /** What stands below a dash or a field, deeper than it; nothing is null. */
  function below(column: number, path: string, above: Line): unknown {
    positions.set(path, above.number)
    const next = lines[at]
    if (next === undefined || next.start - next.from <= column) return null
    return block(next.start - next.from, path)
  }

  /** A value that begins on this line, behind a field or a dash. Later lines of it are indented deeper than `column`. */
  function inline(start: number, column: number, path: string): unknown {
    const flow = text[start] === '{' || text[start] === '['
    const { value, end } = flow ? flowValue(start, column, path) : scalar(start, 'block')
    if (!endsLine(end)) fail(end, 'something follows the value')
    while (lines[at] !== undefined && (lines[at]?.start ?? 0) < end) at++
    return value
  }

  function flowValue(start: number, column: number, path: string): { value: unknown; end: number } {
    positions.set(path, lineNumber(start))
    if (text[start] === '{') return nested(start, () => flowMap(start, column, path))
    if (text[start] === '[') return nested(start, () => flowList(start, column, path))
    return scalar(start, 'flow')
  }

  function flowList(start: number, column: number, path: string): { value: unknown; end: number } {
    const items: unknown[] = []
    let offset = skip(start + 1, column)
    while (text[offset] !== ']') {
      const { value, end } = flowValue(offset, column, `${path}[${items.length}]`)
      items.push(value)
      offset = comma(skip(end, column), ']', column)
    }
    return { value: items, end: offset + 1 }
  }

  function flowMap(start: number, column: number, path: string): { value: unknown; end: number } {
    const fields = new Map<string, unknown>()
    let offset = skip(start + 1, column)
    while (text[offset] !== '}') {
      const quoted = text[offset] === '"' || text[offset] === "'"
      const { value: name, end } = scalar(offset, 'flow')
      if (typeof name !== 'string') return fail(offset, 'a field name that is no text; put it in quotes')
      if (fields.has(name)) fail(offset, `the field ${JSON.stringify(name)} is there twice`)
      const colon = skip(end, column)
      if (text[colon] !== ':' || (!quoted && !/[\s[{"']|$/.test(text[colon + 1] ?? '')))
        fail(colon, 'expected ": " and a value')
      const field = flowValue(skip(colon + 1, column), column, `${path}.${name}`)
      fields.set(name, field.value)
      offset = comma(skip(field.end, column), '}', column)
    }
    return { value: Object.fromEntries(fields), end: offset + 1 }
  }

  function comma(offset: number, closing: string, column: number): number {
    if (text[offset] === ',') return skip(offset + 1, column)
    return text[offset] === closing ? offset : fail(offset, `expected "," or "${closing}"`)
  }

  /** Passes space, line ends and comments inside brackets. */
  function skip(start: number, column: number): number {
    const gap = /(?:[ \t\n]+(?:#[^\n]*)?)*/y
    gap.lastIndex = start
    const end = start + (gap.exec(text)?.[0].length ?? 0)
    // In the gap only: a search of the whole text, once a token, would take minutes in a file of one long line.
    const lineStart = start + text.slice(start, end).lastIndexOf('\n') + 1
    if (lineStart > start && end < text.length) {
      const indentation = text.slice(lineStart, end)
      if (indentation.length <= column)
        fail(end, 'must be indented deeper than the line where the bracket opens')
      if (column >= 0 && indentation.includes('\t')) fail(lineStart, 'a tab as indentation')
    }
    return end
  }

  /** A quoted text or a plain word. */
  function scalar(start: number, where: 'block' | 'flow' | 'key'): { value: unknown; end: number } {
    const quote = text[start]
    if (quote === '"' || quote === "'") {
      TEXT.lastIndex = start
      const found = TEXT.exec(text)?.[0]
      if (found === undefined)
        return fail(
          start,
          'this quoted text does not end on its line, or has an escape that JSON does not know',
        )
      const value = quote === '"' ? (JSON.parse(found) as unknown) : found.slice(1, -1).replaceAll("''", "'")
      return { value, end: start + found.length }
    }
    const end = plainEnd(start, where === 'flow')
    const word = text.slice(start, end)
    if (word === '') fail(start, start >= text.length ? 'the text ends too early' : 'expected a value')
    if (/^(?:[&*!|>%@`?,[\]{}#:\t]|-(?:[\s,[\]{}]|$))/.test(word))
      fail(start, `${JSON.stringify(word[0])} begins something that is not read here; put texts in quotes`)
    if (where === 'block' && text[end] === ':')
      fail(end, 'a second ":" in this line; put texts with ": " in quotes')
    return { value: plainValue(word, start), end }
  }

  /** Where a plain word ends: before ": " and " #", in brackets also before what separates values. */
  function plainEnd(start: number, inFlow: boolean): number {
    let end = start
    for (let i = start; i < text.length && text[i] !== '\n'; i++) {
      const [character = '', next = ''] = text.slice(i, i + 2)
      const separates = inFlow && /[,[\]{}]/.test(character)
      const ends = character === ':' && (inFlow ? /^(?:[\s,[\]{}]|)$/ : /^\s?$/).test(next)
      if (separates || ends || (character === '#' && /\s/.test(text[i - 1] ?? ' '))) break
      if (character !== ' ' && character !== '\t') end = i + 1
    }
    return end
  }

  function plainValue(word: string, start: number): unknown {
    if (word === '~' || word === 'null') return null
    if (word === 'true' || word === 'false') return word === 'true'
    if (NUMBER.test(word)) return Number(word)
    if (AMBIGUOUS.test(word))
      fail(
        start,
        `${JSON.stringify(word)} may be read as a text or not; put it in quotes or write it as in JSON`,
      )
    return word
  }

  /** The field name at this place, with the offset behind its colon, or null. */
  function keyAt(start: number): { name: string; end: number } | null {
    const key =
      /(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\n]|'')*'|[^\s"'[\]{},#&*!|>%@`][^\n]*?(?<![ \t]))(?=[ \t]*:(?:[ \t\n]|$))/y
    key.lastIndex = start
    const found = key.exec(text)?.[0]
    if (found === undefined || /(?:^|\s)#|^- /.test(found)) return null
    const { value, end } = scalar(start, 'key')
    if (typeof value !== 'string') return fail(start, 'a field name that is no text; put it in quotes')
    return { name: value, end: end + spaces(end) + 1 }
  }

  function isDash(offset: number): boolean {
    return text[offset] === '-' && /^\s?$/.test(text[offset + 1] ?? '')
  }

  function spaces(offset: number): number {
    const run = / */y
    run.lastIndex = offset
    return run.exec(text)?.[0].length ?? 0
  }

  function endsLine(offset: number): boolean {
    REST_OF_LINE.lastIndex = offset
    return REST_OF_LINE.test(text)
  }

  const first = lines[0]
  if (first === undefined) return { value: null, lines: positions }
  const value = block(first.start - first.from, root)
  const rest = lines[at]
  if (rest !== undefined) fail(rest.start, 'something follows the value')
  return { value, lines: positions }
}
