import { type Mulberry32, mulberry32 } from '../../mulberry32.ts'

export interface Random extends Mulberry32 {
  /** For example `ord_4k2v9x0m7c1d`. */
  id(prefix: string): string
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

export function createRandom(seed: number): Random {
  const numbers = mulberry32(seed)
  const { next } = numbers
  return {
    ...numbers,
    id: (prefix) => {
      const codes: number[] = []
      for (let i = 0; i < 12; i++) codes.push(ALPHABET.charCodeAt(Math.floor(next() * ALPHABET.length)))
      return `${prefix}_${String.fromCharCode(...codes)}`
    },
  }
}
