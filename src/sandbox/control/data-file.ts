import { linesOf, readYaml } from './yaml.ts'

/** Format of a file with fault rules or with a state. */
export type DataFormat = 'json' | 'yaml'

/**
 * Parses and checks a text.
 *
 * If `check` throws a TypeError whose message begins with the path of a value, such as
 * `$[0].action`, this function adds the line of that value to the message. `root` is the path of
 * the whole text, here `$`.
 */
export function parseDataFile<T>(
  text: string,
  format: DataFormat,
  root: string,
  check: (value: unknown) => T,
): T {
  const value = format === 'json' ? parseJson(text) : parseYaml(text)
  try {
    return check(value)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    const line = lineOf(error.message, text, root)
    throw line === null ? error : new TypeError(`line ${line}: ${error.message}`)
  }
}

export function formatOf(path: string): DataFormat {
  return /\.ya?ml$/i.test(path) ? 'yaml' : 'json'
}

function lineOf(message: string, text: string, root: string): number | null {
  try {
    // JSON is a subset of YAML, so the YAML reader finds the lines in both formats.
    const known = [...linesOf(text, root)].filter(
      ([path]) => /^[:.[]/.test(message.slice(path.length)) && message.startsWith(path),
    )
    return known.sort(([a], [b]) => b.length - a.length)[0]?.[1] ?? null
  } catch {
    // The YAML reader rejects nesting deeper than 100 levels. The message then contains no line.
    return null
  }
}

function parseYaml(text: string): unknown {
  try {
    return readYaml(text)
  } catch (error) {
    throw new TypeError(`cannot read the YAML: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function parseJson(source: string): unknown {
  const text = source.replace(/^\ufeff/, '')
  try {
    return JSON.parse(text)
  } catch {
    // V8 often omits the position of the mistake from its message, so find the position here.
    const before = text.slice(0, offsetOfFirstMistake(text)).split('\n')
    const line = before.length
    const column = (before.at(-1)?.length ?? 0) + 1
    const found = text.slice(before.join('\n').length).trimStart().slice(0, 12).split('\n')[0]
    const unexpected = found ? JSON.stringify(found) : 'end of the text'
    throw new TypeError(`not valid JSON: line ${line}, column ${column}: unexpected ${unexpected}`)
  }
}

const MARK = /(?<mark>[{}[\],:])/
const TEXT = /(?<text>"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")/u
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/
const TOKEN = new RegExp(
  `[ \\t\\n\\r]*(?:${MARK.source}|${TEXT.source}|${NUMBER.source}|true|false|null)`,
  'uy',
)

type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | 'comma or end'

function offsetOfFirstMistake(text: string): number {
  const open: string[] = []
  let expected: Expected = 'value'
  let offset = 0
  for (;;) {
    TOKEN.lastIndex = offset
    const groups = TOKEN.exec(text)?.groups
    const start = offset + (/^[ \t\n\r]*/.exec(text.slice(offset))?.[0].length ?? 0)
    if (groups === undefined) return start
    const next = expectedAfter(expected, groups['mark'], groups['text'] !== undefined, open)
    if (next === null) return start
    expected = next
    offset = TOKEN.lastIndex
  }
}

/** Returns null if JSON does not allow this token here. */
function expectedAfter(
  expected: Expected,
  mark: string | undefined,
  isText: boolean,
  open: string[],
): Expected | null {
  const closes = (mark === ']' && open.at(-1) === '[') || (mark === '}' && open.at(-1) === '{')
  if (closes && (expected === 'comma or end' || expected === 'value or ]' || expected === 'name or }')) {
    open.pop()
    return 'comma or end'
  }
  switch (expected) {
    case 'value':
    case 'value or ]':
      if (mark === undefined) return 'comma or end'
      if (mark !== '[' && mark !== '{') return null
      open.push(mark)
      return mark === '[' ? 'value or ]' : 'name or }'
    case 'name':
    case 'name or }':
      return isText ? ':' : null
    case ':':
      return mark === ':' ? 'value' : null
    case 'comma or end':
      if (mark !== ',' || open.length === 0) return null
      return open.at(-1) === '[' ? 'value' : 'name'
  }
}
