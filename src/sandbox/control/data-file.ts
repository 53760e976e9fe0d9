import { linesOf, readYaml } from './yaml.ts'

/** Format of a fault or state file. */
export type DataFormat = 'json' | 'yaml'

/**
 * Parses the text of a file and returns the result of `check`. If `check` throws a TypeError whose
 * message begins with the path of an invalid value, such as `$[0].action: …`, this function puts
 * the value's line before the message. `root` is the first part of each path, here `$`.
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

/** Returns the format of a file by its suffix: YAML for `.yaml` and `.yml`, otherwise JSON. */
export function formatOf(path: string): DataFormat {
  return /\.ya?ml$/i.test(path) ? 'yaml' : 'json'
}

/**
 * Returns the line of the value whose path begins the message. If several paths fit, the longest
 * path is used.
 */
function lineOf(message: string, text: string, root: string): number | null {
  try {
    // All JSON is YAML, so the YAML reader finds the lines in both formats. For a missing field,
    // the path and the line are those of the object.
    const known = [...linesOf(text, root)].filter(
      ([path]) => /^[:.[]/.test(message.slice(path.length)) && message.startsWith(path),
    )
    return known.sort(([a], [b]) => b.length - a.length)[0]?.[1] ?? null
  } catch {
    return null
  }
}

function parseYaml(text: string): unknown {
  try {
    return readYaml(text)
  } catch (error) {
    throw new TypeError(`not valid YAML: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Parses JSON. Throws a TypeError with the line and column of the first mistake. */
function parseJson(source: string): unknown {
  const text = source.replace(/^\ufeff/, '')
  try {
    return JSON.parse(text)
  } catch {
    // Find the position here: engines word their errors differently, and V8 often omits the
    // position.
    const before = text.slice(0, firstMistake(text)).split('\n')
    const line = before.length
    const column = (before.at(-1)?.length ?? 0) + 1
    const found = text.slice(before.join('\n').length).trimStart().slice(0, 12).split('\n')[0]
    throw new TypeError(
      `not valid JSON: line ${line}, column ${column}: ${found ? `unexpected ${JSON.stringify(found)}` : 'unexpected end of the file'}`,
    )
  }
}

const TOKEN =
  /[ \t\n\r]*(?:(?<mark>[{}[\],:])|(?<text>"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")|(?<other>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))/uy

/** The token that may come next. `'after'` allows a comma or a closing bracket, after a value. */
type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | 'after'

/** Returns the offset of the first token that JSON does not allow in its place. */
function firstMistake(text: string): number {
  const open: string[] = []
  let expected: Expected = 'value'
  let offset = 0
  for (;;) {
    TOKEN.lastIndex = offset
    const groups = TOKEN.exec(text)?.groups
    const start = offset + (/^[ \t\n\r]*/.exec(text.slice(offset))?.[0].length ?? 0)
    if (groups === undefined) return start
    const next = step(expected, groups['mark'], groups['text'] !== undefined, open)
    if (next === null) return start
    expected = next
    offset = TOKEN.lastIndex
  }
}

/** Returns what may follow this token, or null if JSON does not allow the token here. */
function step(
  expected: Expected,
  mark: string | undefined,
  isText: boolean,
  open: string[],
): Expected | null {
  const closes = (mark === ']' && open.at(-1) === '[') || (mark === '}' && open.at(-1) === '{')
  if (closes && (expected === 'after' || expected === 'value or ]' || expected === 'name or }')) {
    open.pop()
    return 'after'
  }
  switch (expected) {
    case 'value':
    case 'value or ]':
      if (mark === undefined) return 'after'
      if (mark !== '[' && mark !== '{') return null
      open.push(mark)
      return mark === '[' ? 'value or ]' : 'name or }'
    case 'name':
    case 'name or }':
      return isText ? ':' : null
    case ':':
      return mark === ':' ? 'value' : null
    case 'after':
      if (mark !== ',' || open.length === 0) return null
      return open.at(-1) === '[' ? 'value' : 'name'
  }
}
