/**
 * Writes the tables of docs/guide/responses.md that have their source in the code:
 *
 *     npm run docs:tables
 *
 * With `--check` it writes nothing and fails if a table is not current.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { type Meaning, OUTCOMES, type OutcomeKind, type OutcomeRow } from '../src/orders/outcome.ts'
import { OUTCOME_WORDS } from './outcome-words.ts'

const page = new URL('../docs/guide/responses.md', import.meta.url)

const next: Readonly<Record<OutcomeRow['next'], string>> = {
  stop: 'stop',
  now: 'retry, the first time immediately',
  backoff: 'retry with backoff',
  refresh: 'retry with a fresh API key',
  poll: 'poll with the same key, until the deadline',
  replay: 'replay to read it, at most twice',
}

const rejections: Readonly<Record<NonNullable<Meaning['rejection']>, string>> = {
  refused: 'rejected',
  not_processed: 'rejected',
  conflict: 'rejected, key kept',
  cancelled: 'rejected',
  abandoned: 'rejected',
}

function meaning({ charged, state, rejection }: Meaning): string {
  return `\`'${charged}'\`, ${rejection === undefined ? state : rejections[rejection]}`
}

/** The outcome table: one line for each row of `OUTCOMES`. */
function outcomeTable(): string {
  const entries = Object.entries(OUTCOMES) as [OutcomeKind, OutcomeRow][]
  return [
    '| an attempt ends with | `charged`, record | after an ambiguous attempt | the call goes on |',
    '| --- | --- | --- | --- |',
    ...entries.map(
      ([kind, row]) =>
        `| ${OUTCOME_WORDS[kind]} | ${meaning(row.clean)} | ${meaning(row.ambiguous)} | ${next[row.next]} |`,
    ),
  ].join('\n')
}

/** The page with its generated part replaced. */
function withTable(text: string, name: string, table: string): string {
  const [begin, end] = [`<!-- ${name}: written by npm run docs:tables -->`, `<!-- end of ${name} -->`]
  const [before, rest] = text.split(begin)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined)
    throw new Error(`docs/guide/responses.md has no place for ${name}`)
  return `${before}${begin}\n\n${table}\n\n${end}${after}`
}

const current = readFileSync(page, 'utf8')
const wanted = withTable(current, 'outcomes', outcomeTable())
if (process.argv.includes('--check')) {
  if (current !== wanted) {
    process.stderr.write('docs/guide/responses.md is not current: npm run docs:tables\n')
    process.exitCode = 1
  }
} else writeFileSync(page, wanted)
