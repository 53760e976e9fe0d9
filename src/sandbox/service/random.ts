export interface Random {
  /** At least 0 and below 1. */
  next(): number
  position(): number
  restore(position: number): void
  /** For example `ord_4k2v9x0m7c1d`. */
  id(prefix: string): string
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

export function createRandom(seed: number): Random {
  // Mulberry32: good enough for a sandbox, but predictable. Never use its numbers as secrets.
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  return {
    next,
    position: () => state,
    restore: (position) => {
      state = position | 0
    },
    id: (prefix) => {
      const codes: number[] = []
      for (let i = 0; i < 12; i++) codes.push(ALPHABET.charCodeAt(Math.floor(next() * ALPHABET.length)))
      return `${prefix}_${String.fromCharCode(...codes)}`
    },
  }
}
