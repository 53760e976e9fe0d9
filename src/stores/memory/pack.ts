import type { StoredRow } from '../store.ts'

const QUOTE = '"'
/** Separates the fields of a row from each other. */
const SPACE = ' '
/** Comes before the end of an earlier part. */
const SAME = ' '
/** Numbers are stored as one character after the quote, in the range that needs one byte. */
const FIRST = 35
const MOST = 255 - FIRST

const coded = (number: number): string => String.fromCharCode(number + FIRST)
const decoded = (text: string, at: number): number => text.charCodeAt(at) - FIRST

/**
 * Stores closed rows as short strings. The records of one application have few shapes, and quotes
 * divide texts of one shape into the same parts. So a text is stored as the parts that differ from
 * the first text with as many parts.
 */
export class Packer {
  readonly #models = new Map<number, readonly string[]>()

  pack({ state, version, createdAt, updatedAt, data }: StoredRow): string {
    const packed = [[state, version, createdAt, updatedAt].join(SPACE)]
    let count = 1
    for (let at = data.indexOf(QUOTE); at >= 0; at = data.indexOf(QUOTE, at + 1)) count++
    if (count > MOST) packed.push('', data)
    else {
      const model = this.#models.get(count) ?? data.split(QUOTE)
      this.#models.set(count, model)
      packed.push(coded(count), ...differences(data, model))
    }
    // Unlike a concatenation, `join` keeps no reference to the longer text.
    return packed.join(QUOTE)
  }

  unpack(scope: string, id: string, packed: string): StoredRow {
    const [head = '', count = '', ...rest] = packed.split(QUOTE)
    const [state, version, createdAt, updatedAt] = head.split(SPACE)
    const model = this.#models.get(decoded(count, 0))
    return Object.freeze({
      scope,
      id,
      version: Number(version),
      open: false,
      state: state === 'created' || state === 'rejected' ? state : 'open',
      createdAt: Number(createdAt),
      updatedAt: Number(updatedAt),
      data: model === undefined ? rest.join(QUOTE) : restored(model, rest),
    })
  }
}

/** Compares in place, because most parts are equal, and `create()` waits for the result. */
function differences(text: string, model: readonly string[]): readonly string[] {
  const found: string[] = []
  const changed: { readonly index: number; readonly part: string }[] = []
  let start = 0
  for (let index = 0; index < model.length; index++) {
    const usual = model[index] ?? ''
    const quote = text.indexOf(QUOTE, start)
    const end = quote < 0 ? text.length : quote
    if (end - start !== usual.length || !text.startsWith(usual, start)) {
      const part = text.slice(start, end)
      const { length } = part
      const same = length > 4 && length <= MOST && changed.find((each) => each.part.endsWith(part))
      found.push(same ? SAME + coded(index) + coded(same.index) + coded(length) : coded(index) + part)
      changed.push({ index, part })
    }
    start = end + 1
  }
  return found
}

function restored(model: readonly string[], differences: readonly string[]): string {
  const parts = [...model]
  for (const difference of differences) {
    if (difference.startsWith(SAME)) {
      const from = parts[decoded(difference, 2)] ?? ''
      parts[decoded(difference, 1)] = from.slice(-decoded(difference, 3))
    } else parts[decoded(difference, 0)] = difference.slice(1)
  }
  return parts.join(QUOTE)
}
