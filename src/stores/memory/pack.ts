import type { StoredRow } from '../store.ts'

const QUOTE = '"'

/** Comes before a text that is stored in full. */
const WHOLE = '!'
/** Comes before the end of an earlier part. */
const SAME = ' '
/** Numbers are stored as one character after the quote, in the range that needs one byte. */
const FIRST = 35
const MOST = 255 - FIRST

const coded = (number: number): string => String.fromCharCode(number + FIRST)
const decoded = (text: string, at: number): number => text.charCodeAt(at) - FIRST

/**
 * Stores closed rows as short strings. The records of one application have few shapes, and quotes
 * divide rows of one shape into the same parts. So a row is stored as the parts that differ from
 * the first row with as many parts.
 */
export class Packer {
  readonly #models = new Map<number, readonly string[]>()

  pack({ state, version, createdAt, updatedAt, data }: StoredRow): string {
    const text = [state, version, createdAt, updatedAt, data].join(QUOTE)
    const parts = text.split(QUOTE)
    const count = parts.length
    if (count > MOST) return WHOLE + text
    const model = this.#models.get(count) ?? parts
    if (model === parts) this.#models.set(count, parts)
    const packed = [coded(count)]
    const changed: number[] = []
    for (let index = 0; index < count; index++) {
      const part = parts[index] ?? ''
      if (part === model[index]) continue
      const { length } = part
      const from = length > 4 && length <= MOST ? changed.find((at) => parts[at]?.endsWith(part)) : undefined
      packed.push(
        from === undefined ? coded(index) + part : SAME + coded(index) + coded(from) + coded(length),
      )
      changed.push(index)
    }
    // Unlike a concatenation, `join` keeps no reference to the longer text.
    return packed.join(QUOTE)
  }

  unpack(scope: string, id: string, packed: string): StoredRow {
    const [state, version, createdAt, updatedAt, ...data] = packed.startsWith(WHOLE)
      ? packed.slice(1).split(QUOTE)
      : this.#partsOf(packed.split(QUOTE))
    return Object.freeze({
      scope,
      id,
      version: Number(version),
      open: false,
      state: state === 'created' || state === 'rejected' ? state : 'open',
      createdAt: Number(createdAt),
      updatedAt: Number(updatedAt),
      data: data.join(QUOTE),
    })
  }

  #partsOf([count = '', ...changes]: readonly string[]): readonly string[] {
    const parts = [...(this.#models.get(decoded(count, 0)) ?? [])]
    for (const change of changes) {
      if (change.startsWith(SAME)) {
        const from = parts[decoded(change, 2)] ?? ''
        parts[decoded(change, 1)] = from.slice(-decoded(change, 3))
      } else parts[decoded(change, 0)] = change.slice(1)
    }
    return parts
  }
}
