/** What may survive, and how a mutant is told from another one. */
import { readFileSync } from 'node:fs'

export interface Survivor {
  /** One of the folders in `modules.ts`. */
  readonly folder: string
  readonly mutator: string
  readonly original: string
  readonly replacement: string
  /** How many of that description there are; default one. */
  readonly count?: number
  readonly reason: string
}

export const survivors: readonly Survivor[] = JSON.parse(
  readFileSync(new URL('survivors.json', import.meta.url), 'utf8'),
)

type Mutation = Pick<Survivor, 'folder' | 'mutator' | 'original' | 'replacement'>

/** The same for the same mutation, wherever it stands in its folder and whatever its names are: both may change. */
export function nameOf({ folder, mutator, original, replacement }: Mutation): string {
  return `${folder}, ${mutator}: ${shapeOf(original)} → ${shapeOf(replacement)}`
}

const WORDS = new Set(
  'as async await catch const else false for function if in instanceof let new null of return this throw true try typeof undefined void'.split(
    ' ',
  ),
)

/** Code without names, comments and line breaks. Strings stay: they are what the rules are about. */
function shapeOf(code: string): string {
  return code
    .replace(/(['"`])(?:\\.|(?!\1)[^\\])*\1|\/\/.*|\/\*[\s\S]*?\*\/|#?[A-Za-z_$][\w$]*/g, (token) => {
      if (token.startsWith('/')) return ''
      return /^['"`]/.test(token) || WORDS.has(token) ? token : '_'
    })
    .replace(/\s+/g, ' ')
    .trim()
}
