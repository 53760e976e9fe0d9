import type { StoredRow } from '../store.ts'

/** Separates the values of a row. JSON escapes it, so it never occurs in the text of a record. */
const SEPARATOR = '\n'
/** Comes before a packed UUID. */
const UUID = '\u0001'
/** Comes before the number of an earlier value of the row that ends with this value. */
const SAME = '\u0002'
/** Comes before the number of a value that is stored once for all rows. */
const COMMON = '\u0003'
// biome-ignore lint/suspicious/noControlCharactersInRegex: it searches for the characters above.
const RESERVED = /[\n\u0001-\u0003]/

/** Strings, with the colon of a key, and numbers. */
const TOKEN = /"(?:[^"\\]|\\.)*":?|-?\d[\d.eE+-]*/g
const UUID_AT_END = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** A table takes what the first rows contain. Later, other shapes and values are stored in full. */
const MOST_ENTRIES = 1_000

const NO_SHAPE = '-'

/**
 * Writes closed rows as short strings. The records of one application have few shapes, so each
 * shape is stored once, and a row consists of its values only.
 */
export class Packer {
  readonly #shapes = new Table()
  readonly #common = new Table()

  /** Returns undefined for a row that it cannot pack. */
  pack({ version, state, createdAt, updatedAt, data }: StoredRow): string | undefined {
    if (![version, createdAt, updatedAt].every(Number.isSafeInteger)) return undefined
    const values: string[] = []
    const parts: string[] = []
    const shape = RESERVED.test(data)
      ? undefined
      : this.#shapes.numberOf(
          data.replace(TOKEN, (token) => {
            if (token.endsWith(':')) return token
            const quoted = token.startsWith('"')
            const text = quoted ? token.slice(1, -1) : token
            parts.push(this.#packed(text, values))
            values.push(text)
            return quoted ? `"${SEPARATOR}"` : SEPARATOR
          }),
        )
    const head = [version, createdAt, updatedAt - createdAt].map((number) => number.toString(36))
    const content = shape === undefined ? [NO_SHAPE, data] : [shape, ...parts]
    return [...head, state, ...content].join(SEPARATOR)
  }

  unpack(scope: string, id: string, text: string): StoredRow {
    const [version = '', created = '', age = '', state, shape = '', ...parts] = text.split(SEPARATOR)
    const createdAt = Number.parseInt(created, 36)
    return Object.freeze({
      scope,
      id,
      version: Number.parseInt(version, 36),
      open: false,
      state: state === 'created' || state === 'rejected' ? state : 'open',
      createdAt,
      updatedAt: createdAt + Number.parseInt(age, 36),
      data: shape === NO_SHAPE ? parts.join(SEPARATOR) : this.#restored(this.#shapes.at(shape), parts),
    })
  }

  #packed(text: string, values: readonly string[]): string {
    const known = text.length < 8 ? -1 : values.findIndex((value) => value.endsWith(text))
    if (known >= 0) return `${SAME}${known} ${text.length}`
    const uuid = packUuid(text)
    if (uuid !== text) return uuid
    const common = this.#common.numberOf(text)
    return common === undefined || common.length >= text.length ? text : COMMON + common
  }

  #restored(shape: string, parts: readonly string[]): string {
    const values: string[] = []
    for (const part of parts) {
      if (part.startsWith(COMMON)) values.push(this.#common.at(part.slice(1)))
      else if (part.startsWith(SAME)) {
        const [known, length] = part.slice(1).split(' ').map(Number)
        values.push(values[known ?? 0]?.slice(-(length ?? 0)) ?? '')
      } else values.push(unpackUuid(part))
    }
    let next = 0
    return shape.replaceAll(SEPARATOR, () => values[next++] ?? '')
  }
}

/** Strings that many rows share, each with a short number. */
class Table {
  readonly #texts: string[] = []
  readonly #numbers = new Map<string, string>()

  numberOf(text: string): string | undefined {
    const known = this.#numbers.get(text)
    if (known !== undefined || this.#texts.length === MOST_ENTRIES) return known
    const number = (this.#texts.push(text) - 1).toString(36)
    this.#numbers.set(text, number)
    return number
  }

  at(number: string): string {
    return this.#texts[Number.parseInt(number, 36)] ?? ''
  }
}

/** Hexadecimal digits of a UUID that become four characters. */
const DIGITS = 7

/** Seven bits a character, in the range that needs one byte and contains no reserved character. */
export function packUuid(text: string): string {
  const uuid = UUID_AT_END.exec(text)
  if (uuid === null) return text
  const hex = uuid[0].replaceAll('-', '')
  const codes: number[] = []
  for (let at = 0; at < hex.length; at += DIGITS) {
    const bits = Number.parseInt(hex.slice(at, at + DIGITS), 16)
    for (let shift = 21; shift >= 0; shift -= 7) codes.push(0x80 + ((bits >> shift) & 0x7f))
  }
  return text.slice(0, uuid.index) + UUID + String.fromCharCode(...codes)
}

export function unpackUuid(text: string): string {
  const start = text.indexOf(UUID)
  if (start < 0) return text
  let hex = ''
  for (let at = start + 1; at < text.length; at += 4) {
    let bits = 0
    for (let index = at; index < at + 4; index++) bits = (bits << 7) | (text.charCodeAt(index) - 0x80)
    hex += bits.toString(16).padStart(Math.min(DIGITS, 32 - hex.length), '0')
  }
  return text.slice(0, start) + hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
