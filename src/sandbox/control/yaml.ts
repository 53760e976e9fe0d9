import { constructFromEvents, EVENT_ID, getScalarValue, parseEvents, YAMLException } from 'js-yaml'

export function readYaml(source: string): unknown {
  try {
    const events = eventsOf(source)
    // Reject aliases: they can make a value that contains itself, or a huge value from a few lines.
    const alias = events.find((event) => event.type === EVENT_ID.ALIAS)
    if (alias !== undefined)
      YAMLException.throwAt(
        source,
        alias.anchorStart - 1,
        'aliases are not supported; repeat the value instead',
      )
    const documents = constructFromEvents(events, { source })
    if (documents.length > 1) throw new TypeError('the text has a second document; only one is allowed')
    return documents[0] ?? null
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const { reason, mark } = error
    throw new TypeError(
      mark === undefined ? reason : `line ${mark.line + 1}, column ${mark.column + 1}: ${reason}`,
    )
  }
}

interface Open {
  readonly path: string
  readonly kind: 'document' | 'list' | 'map'
  index: number
  key: string | null
}

/**
 * Maps the path of every value, such as `$[0].action`, to a line.
 *
 * `root` is the path of the whole document, here `$`.
 */
export function linesOf(source: string, root: string): ReadonlyMap<string, number> {
  const lines = new Map<string, number>()
  const open: Open[] = []
  let [line, passed] = [1, 0]
  for (const event of eventsOf(source)) {
    if (event.type === EVENT_ID.POP) open.pop()
    else if (event.type === EVENT_ID.DOCUMENT)
      open.push({ path: root, kind: 'document', index: 0, key: null })
    else if (event.type !== EVENT_ID.ALIAS) {
      // An absent value, such as the value of "a:", has no position: the loop then does nothing.
      for (
        const start = event.type === EVENT_ID.SCALAR ? event.valueStart : event.start;
        passed < start;
        passed++
      )
        if (source[passed] === '\n') line++
      const parent = open.at(-1)
      const isName = parent?.kind === 'map' && parent.key === null
      if (isName) parent.key = event.type === EVENT_ID.SCALAR ? getScalarValue(source, event) : ''
      const path = parent === undefined ? root : pathIn(parent)
      if (isName || parent?.kind !== 'map') lines.set(path, line)
      if (!isName && parent !== undefined) parent.key = null
      if (event.type !== EVENT_ID.SCALAR)
        open.push({ path, kind: event.type === EVENT_ID.SEQUENCE ? 'list' : 'map', index: 0, key: null })
    }
  }
  return lines
}

function pathIn(parent: Open): string {
  if (parent.kind === 'document') return parent.path
  return parent.kind === 'map' ? `${parent.path}.${parent.key}` : `${parent.path}[${parent.index++}]`
}

function eventsOf(source: string): ReturnType<typeof parseEvents> {
  return parseEvents(source, { maxDepth: 100 })
}
