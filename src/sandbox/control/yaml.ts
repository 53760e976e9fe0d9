import { constructFromEvents, EVENT_ID, parseEvents, YAMLException } from 'js-yaml'

/** Reads JSON, or YAML 1.2 without aliases. */
export function readData(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // JSON is a part of YAML, whose reader knows the place of a mistake.
    return readYaml(text)
  }
}

function readYaml(source: string): unknown {
  try {
    const events = parseEvents(source, { maxDepth: 100 })
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
    const place = mark === undefined ? '' : `line ${mark.line + 1}, column ${mark.column + 1}: `
    throw new TypeError(`not valid JSON or YAML: ${place}${reason}`)
  }
}
