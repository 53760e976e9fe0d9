import { expect, test } from 'vitest'
import { type Page, proseOf, readPages } from './support/pages.ts'
import { comments, messages, sentencesOf } from './support/source.ts'

/** Pages whose tables hold figures, generated rules, or the names of tests: their rows are long. */
const LONG_ROWS = new Set(['docs/performance.md', 'docs/protocol.md', 'docs/verification.md'])
const pages = readPages()

/** Words that we do not use, with their replacements. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\banswer(s|ed|ing)?\b/i, 'response, respond'],
  [/\bat once\b/i, 'immediately, or concurrent'],
  [/\bnow or later\b/i, 'sync or async'],
  [/\bwhoever\b/i, 'the caller, the application, who'],
  [/\bwhat became of\b/i, 'the outcome'],
  [/\bfill the wallet\b/i, 'top up the wallet'],
  [/\basks? again\b/i, 'retry, poll, call again'],
  [/\b(?:is|are|was|were) looked at\b/i, 'checked, polled'],
  [/\bmust be given\b/i, 'required, missing'],
]

/** Numbered lines of text without tables, inline code and addresses. */
function linesOf({ path, text }: Page): readonly { readonly at: string; readonly line: string }[] {
  let fenced = false
  return text.split('\n').flatMap((line, index) => {
    if (/^ *```/.test(line)) {
      fenced = !fenced
      return []
    }
    return fenced ? [] : [{ at: `${path}:${index + 1}`, line }]
  })
}
const lines = pages.flatMap(linesOf)
const plain = (line: string): string => line.replaceAll(/`[^`]*`/g, 'code').replaceAll(/\]\([^)]*\)/g, ']')

test('no line of a page is longer than 200 characters', () => {
  // Table rows of files, printed by `npm run docs:tables`.
  const long = lines.filter(
    ({ at, line }) =>
      line.length > 200 &&
      !line.startsWith('| `src/') &&
      !(line.startsWith('|') && LONG_ROWS.has(at.split(':')[0] ?? '')),
  )
  expect(long.map(({ at }) => at)).toEqual([])
})

test('a line of a page holds one sentence, or a few short ones', () => {
  const crowded = lines.filter(({ line }) => {
    if (/^[|#!]|^ *[-*\d]/.test(line)) return false
    const sentences = plain(line).split(/[.!?:] (?=[A-Z*[])/)
    return sentences.length > 3
  })
  expect(crowded.map(({ at }) => at)).toEqual([])
})

test('no sentence of a page has more than 32 words', () => {
  const long = lines.flatMap(({ at, line }) =>
    /^\|/.test(line)
      ? []
      : plain(line)
          .split(/[.!?;:]\s/)
          .filter((sentence) => sentence.split(/\s+/).length > 32)
          .map(() => at),
  )
  expect(long).toEqual([])
})

test('pages use the words of CONTRIBUTING.md', () => {
  const wrong = pages.flatMap(({ path, text }) =>
    path === 'CONTRIBUTING.md'
      ? []
      : proseOf({ path, text })
          .split('\n')
          .flatMap((line) =>
            WORDS.filter(([word]) => word.test(plain(line))).map(
              ([word, better]) => `${path}: ${word} -> ${better}: ${line}`,
            ),
          ),
  )
  expect(wrong).toEqual([])
})

const source = [...comments, ...messages]

test('comments and messages of src use the words of CONTRIBUTING.md', () => {
  const wrong = source.flatMap(({ at, text }) =>
    WORDS.filter(([word]) => word.test(text)).map(([word, better]) => `${at}: ${word} -> ${better}`),
  )
  expect(wrong).toEqual([])
})

test('no sentence of a comment or message of src has more than 32 words', () => {
  const long = source.flatMap((words) =>
    sentencesOf(words)
      .filter((sentence) => sentence.split(' ').length > 32)
      .map((sentence) => `${words.at}: ${sentence}`),
  )
  expect(long).toEqual([])
})
