/** Seeded randomness: the same seed gives the same ids, orders of rows and fault draws on every run. */
export interface Random {
  /** A number of at least 0 and below 1. */
  next(): number
  /** An identifier such as `ord_4k2v9x0m7c1d`: the prefix, an underscore and 12 letters or digits. */
  id(prefix: string): string
  /** The generator's position, a 32-bit integer; `restore` continues from it. */
  position(): number
  restore(position: number): void
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** mulberry32: small, and good enough for identifiers and coin flips. Nothing here is a secret. */
export function createRandom(seed: number): Random {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  return {
    next,
    id: (prefix) => {
      const codes: number[] = []
      for (let i = 0; i < 12; i++) codes.push(ALPHABET.charCodeAt(Math.floor(next() * ALPHABET.length)))
      return `${prefix}_${String.fromCharCode(...codes)}`
    },
    position: () => state,
    restore: (position) => {
      state = position | 0
    },
  }
}
