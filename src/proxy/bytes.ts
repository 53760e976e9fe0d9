/** The chunks of a body, counted while they arrive. */
export class Bytes {
  readonly #limit: number
  #chunks: Uint8Array[] = []
  #length = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Returns false and drops the chunks if they are too many. */
  add(chunk: Uint8Array): boolean {
    this.#length += chunk.byteLength
    if (this.#length > this.#limit) this.#chunks = []
    else this.#chunks.push(chunk)
    return this.#length <= this.#limit
  }

  /** Empty if the chunks were too many. */
  all(): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(this.#chunks.reduce((length, chunk) => length + chunk.byteLength, 0))
    let at = 0
    for (const chunk of this.#chunks) {
      all.set(chunk, at)
      at += chunk.byteLength
    }
    return all
  }
}
