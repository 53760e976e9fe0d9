/** The mutants that may survive, and how they are identified. */
import { readFileSync } from 'node:fs'

export interface Survivor {
  /** One of the folders in `modules.ts`. */
  readonly folder: string
  readonly mutator: string
  readonly original: string
  readonly replacement: string
  /** Number of mutants with this description. Default: 1. */
  readonly count?: number
  readonly reason: string
}

export const survivors: readonly Survivor[] = JSON.parse(
  readFileSync(new URL('survivors.json', import.meta.url), 'utf8'),
)

type Mutation = Pick<Survivor, 'folder' | 'mutator' | 'original' | 'replacement'>

/**
 * Identifies a mutation independently of its file in the folder and of the names in its code, which
 * may change.
 */
export function nameOf({ folder, mutator, original, replacement }: Mutation): string {
  return `${folder}, ${mutator}: ${shapeOf(original)} → ${shapeOf(replacement)}`
}

const WORDS = new Set(
  'as async await catch const else false for function if in instanceof let new null of return this throw true try typeof undefined void'.split(
    ' ',
  ),
)

/** Code without names, comments and line breaks. Strings stay, because the rules depend on them. */
function shapeOf(code: string): string {
  return code
    .replace(/(['"`])(?:\\.|(?!\1)[^\\])*\1|\/\/.*|\/\*[\s\S]*?\*\/|#?[A-Za-z_$][\w$]*/g, (token) => {
      if (token.startsWith('/')) return ''
      return /^['"`]/.test(token) || WORDS.has(token) ? token : '_'
    })
    .replace(/\s+/g, ' ')
    .trim()
}
