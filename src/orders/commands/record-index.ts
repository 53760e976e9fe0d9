import { hashOf } from '../../identity/keys.ts'

/** How {@link RecordIndex} marks a record. */
export const MARKS = { older: 1, matched: 2, doubtful: 4, repeated: 8 } as const

/**
 * Finds records by a name without keeping them: at most 54 bytes a record. Names are kept as 53-bit
 * hashes, so a record that was found must be read and compared.
 */
export class RecordIndex {
  #size = 0
  #hashes = new Float64Array(1024)
  #ids = new Uint32Array(4 * 1024)
  #marks = new Uint8Array(1024)
  /** Positions in the order of the hashes. */
  #sorted = new Uint32Array()

  add(name: string, rowId: string, marks: number): void {
    const position = this.#size++
    if (position === this.#hashes.length) {
      this.#hashes = grown(this.#hashes, new Float64Array(2 * position))
      this.#ids = grown(this.#ids, new Uint32Array(8 * position))
      this.#marks = grown(this.#marks, new Uint8Array(2 * position))
    }
    this.#hashes[position] = hashOf(name)
    this.#marks[position] = marks
    const digits = rowId.replaceAll('-', '')
    for (let word = 0; word < 4; word++)
      this.#ids[4 * position + word] = Number.parseInt(digits.slice(8 * word, 8 * word + 8), 16)
  }

  /** Call it once, after the last record. Of a row that was added twice, only the last one counts. */
  seal(): void {
    const positions = Uint32Array.from({ length: this.#size }, (_, position) => position)
    const byId = positions.sort((a, b) => this.#compareIds(a, b) || a - b)
    for (let at = 1; at < byId.length; at++) {
      const [earlier = 0, later = 0] = byId.subarray(at - 1, at + 1)
      if (this.#compareIds(earlier, later) === 0) this.mark(earlier, 'repeated')
    }
    this.#sorted = byId.sort((a, b) => this.#hashOf(a) - this.#hashOf(b) || a - b)
  }

  /** Yields the positions of the records that may have this name, as they were added. */
  *named(name: string): Generator<number, void, undefined> {
    const hash = hashOf(name)
    let low = 0
    for (let high = this.#sorted.length; low < high; ) {
      const middle = (low + high) >>> 1
      if (this.#hashOf(this.#sorted[middle] ?? 0) < hash) low = middle + 1
      else high = middle
    }
    for (; low < this.#sorted.length; low++) {
      const position = this.#sorted[low] ?? 0
      if (this.#hashOf(position) !== hash) return
      if (!this.is(position, 'repeated')) yield position
    }
  }

  /** Yields the positions of the records without any mark. */
  *unmarked(): Generator<number, void, undefined> {
    for (let position = 0; position < this.#size; position++) if (this.#marks[position] === 0) yield position
  }

  is(position: number, mark: keyof typeof MARKS): boolean {
    return ((this.#marks[position] ?? 0) & MARKS[mark]) !== 0
  }

  mark(position: number, mark: keyof typeof MARKS): void {
    this.#marks[position] = (this.#marks[position] ?? 0) | MARKS[mark]
  }

  rowIdOf(position: number): string {
    const words = this.#ids.subarray(4 * position, 4 * position + 4)
    const digits = Array.from(words, (word) => word.toString(16).padStart(8, '0')).join('')
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  }

  #hashOf(position: number): number {
    return this.#hashes[position] ?? 0
  }

  #compareIds(a: number, b: number): number {
    for (let word = 0; word < 4; word++) {
      const difference = (this.#ids[4 * a + word] ?? 0) - (this.#ids[4 * b + word] ?? 0)
      if (difference !== 0) return difference
    }
    return 0
  }
}

function grown<Numbers extends Float64Array | Uint32Array | Uint8Array>(
  old: Numbers,
  next: Numbers,
): Numbers {
  next.set(old)
  return next
}
