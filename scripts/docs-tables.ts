/**
 * Writes the generated tables of README.md, docs/guide/errors.md, docs/guide/responses.md,
 * docs/protocol.md and docs/architecture.md:
 *
 * npm run docs:tables
 *
 * With `--check`, the script writes nothing. It fails if a table is out of date, or if one `create()`
 * uses too many files.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ApiError } from '../src/errors/classes.ts'
import { CONFLICTS, STATUSES, type StatusRow, statusRow } from '../src/errors/statuses.ts'
import {
  aborted,
  bodyGone,
  boughtMeanwhile,
  changedSince,
  conflictTooOld,
  damaged,
  keyTooOld,
  live,
  mayStillRun,
  named,
  nameless,
  namelessAndOld,
  namelessTwin,
  neitherRepeatableNorNamed,
  notRepeatable,
  otherApiKey,
  otherKey,
  otherOrder,
  otherPayload,
  pastWindow,
  refusedAfterDoubt,
  replaced,
  settled,
  startsFirst,
  startsNext,
  unsettled,
} from '../src/orders/conditions.ts'
import { type Meaning, OUTCOMES, type OutcomeKind, type OutcomeRow } from '../src/orders/outcome.ts'
import { type Phase, RULES } from '../src/orders/rules.ts'
import { filesOfCreate } from './create-path.ts'
import { root } from './ensure-built.ts'
import { outcomeWords } from './outcome-words.ts'

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

/** Returns the outcome table, with one line for each entry of `OUTCOMES`. */
function outcomeTable(): string {
  const entries = Object.entries(OUTCOMES) as [OutcomeKind, OutcomeRow][]
  return [
    '| an attempt ends with | `charged`, record | after an ambiguous attempt | next step |',
    '| --- | --- | --- | --- |',
    ...entries.map(
      ([kind, row]) =>
        `| ${outcomeWords(kind)} | ${meaning(row.clean)} | ${meaning(row.ambiguous)} | ${next[row.next]} |`,
    ),
  ].join('\n')
}

/** Every status that has a class of its own, then those without. */
function statusClasses(): readonly (readonly [statuses: string, StatusRow])[] {
  const own = Object.entries(STATUSES).filter(([, { error }]) => error !== ApiError)
  const conflicts = Object.entries(CONFLICTS).map(([code, row]) => [`409 ${code}`, row] as const)
  const classes = [...own, ...conflicts].sort(([a], [b]) => (a < b ? -1 : 1))
  return [...classes, ['5xx', statusRow(500)], ['any other', statusRow(0)]]
}

const chargedBy = ({ outcome }: StatusRow): string => `\`'${OUTCOMES[outcome].clean.charged}'\``
function nextStep({ advice: [next], outcome }: StatusRow): string {
  const again = OUTCOMES[outcome].clean.charged === 'no' ? 'call again' : 'make the same call again'
  const then = outcome === 'conflict' ? '' : `, then ${again}`
  return `${next[0]?.toLowerCase()}${next.slice(1)}${then}`
}

/** Returns the table of the error classes that come from a status. */
function statusTable(): string {
  return [
    '| class | `code` | status | `charged` | next step | `suggestedStatus()` |',
    '| --- | --- | --- | --- | --- | --- |',
    ...statusClasses().map(([status, row]) => {
      const { code, name } = new row.error('', {})
      return `| \`${name}\` | \`${code}\` | ${status}: ${row.meaning} | ${chargedBy(row)} | ${nextStep(row)} | ${row.suggested} |`
    }),
  ].join('\n')
}

/** Returns the short table of README.md. */
function shortTable(): string {
  return [
    '| status | `error.code` | `charged` | what to do |',
    '| --- | --- | --- | --- |',
    "| 201, unreadable | `invalid_response` | `'yes'` | the order was paid: make the same call again to read it |",
    ...statusClasses().map(
      ([status, row]) =>
        `| ${status} | \`${new row.error('', {}).code}\` | ${chargedBy(row)} | ${nextStep(row)} |`,
    ),
    "| no response | `connection`, `timeout`, `aborted` | `'unknown'` or `'no'` | make the same call again |",
  ].join('\n')
}

const PHASES: Readonly<Record<Phase, string>> = {
  absent: 'The store has no row for the order.',
  forgotten:
    '`forget()` emptied the record, but the row remains. A new record in this row gets the next version number.',
  busy: 'A call has claimed the order and may still be running.',
  open: 'The outcome is unknown, and the client may send the key again.',
  stale: 'The outcome is unknown, and the client no longer sends a key of the order.',
  created: 'The order was bought, and its content is known.',
  unread: 'The order was bought, but the client could not read it.',
  rejected: 'The record was closed without an order.',
}

/** The names of conditions in the tables. A name does not change if its function is renamed. */
const CONDITIONS: Readonly<Record<string, unknown>> = {
  otherPayload,
  otherKey,
  keyTooOld,
  conflictTooOld,
  otherApiKey,
  nameless,
  named,
  namelessTwin,
  namelessAndOld,
  boughtMeanwhile,
  damaged,
  startsFirst,
  startsNext,
  aborted,
  refusedAfterDoubt,
  replaced,
  bodyGone,
  pastWindow,
  notRepeatable,
  neitherRepeatableNorNamed,
  live,
  mayStillRun,
  settled,
  unsettled,
  changedSince,
  otherOrder,
}

/** Converts `otherPayload` to "other payload". */
const words = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

function stepText(step: object): string {
  const [name, ...more] = Object.values(step).map((value) => String(value).replaceAll('_', ' '))
  return more.length === 0 ? `**${name}**` : `**${name}** (${more.join(', ')})`
}

function entryText(entry: unknown): string {
  if (!Array.isArray(entry)) return stepText(Object(entry))
  const [condition, step]: unknown[] = entry
  const [name] = Object.entries(CONDITIONS).find(([, each]) => each === condition) ?? []
  if (name === undefined)
    throw new Error('CONDITIONS in scripts/docs-tables.ts lacks a condition of the rules: add it')
  return `${words(name)}: ${stepText(Object(step))}`
}

/** Returns a table for each phase of `RULES`, with a numbered line for each command. */
function ruleTables(): string {
  const rules: Readonly<Record<string, Readonly<Record<string, readonly unknown[]>>>> = RULES
  return Object.entries(rules)
    .map(([phase, row], index) => {
      const cells = Object.entries(row).map(([command, cell], at) => {
        const entries = cell.map(entryText)
        const text =
          entries.length === 1 ? entries[0] : `${entries.slice(0, -1).join('; ')}; else ${entries.at(-1)}`
        return `| ${index + 1}.${at + 1} | \`${command}\` | ${text} |`
      })
      const about = PHASES[phase as Phase]
      return `### ${index + 1}. ${phase}\n\n${about}\n\n| | command | step |\n| --- | --- | --- |\n${cells.join('\n')}`
    })
    .join('\n\n')
}

/** Returns the table of events. Their descriptions are the comments in `src/orders`. */
function eventTable(): string {
  const sources = globSync('src/orders/*.ts', { cwd: root }).map((path) =>
    readFileSync(join(root, path), 'utf8'),
  )
  const events = sources.flatMap((source) => [
    ...source.matchAll(/\/\*\*((?:(?!\*\/).)+)\*\/\s*\| \(?\{\s*readonly type: '(\w+)'/gs),
  ])
  if (events.length === 0)
    throw new Error('found no events in src/orders: adapt the pattern in scripts/docs-tables.ts')
  const lines = events.map(
    ([, text = '', type], index) =>
      `| E${index + 1} | \`${type}\` | ${text.replace(/\s*\n\s*\*?\s*/g, ' ').trim()} |`,
  )
  return ['| | event | what happened |', '| --- | --- | --- |', ...lines].join('\n')
}

/** Maximum number of files of src that one `create()` may use. */
const MOST_FILES = 43

/** Returns a table of the files that one `create()` uses, with one line for each folder. */
function pathTable(files: readonly string[]): string {
  const lines = ['resources/', 'settings/', 'orders/', 'stores/', 'http/', 'schemas/', ''].map((folder) => {
    const inside = files.filter((file) => file.slice(0, file.lastIndexOf('/') + 1) === folder)
    const names = inside.map((file) => `\`${file.slice(folder.length)}\``)
    return `| \`src/${folder}\` | ${names.length} | ${names.join(', ')} |`
  })
  return [`| folder | ${files.length} files | |`, '| --- | --- | --- |', ...lines].join('\n')
}

/** Replaces the generated part of a page. */
function withTable(text: string, name: string, table: string): string {
  const [begin, end] = [`<!-- ${name}: written by npm run docs:tables -->`, `<!-- end of ${name} -->`]
  const [before, rest] = text.split(begin)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined)
    throw new Error(`the page lacks the comments around the table "${name}"`)
  return `${before}${begin}\n\n${table}\n\n${end}${after}`
}

const files = await filesOfCreate()
if (files.length > MOST_FILES) {
  process.stderr.write(`one create() uses ${files.length} files of src, but the limit is ${MOST_FILES}\n`)
  process.exitCode = 1
}

const PAGES: Readonly<Record<string, readonly (readonly [name: string, table: string])[]>> = {
  'README.md': [['statuses', shortTable()]],
  'docs/guide/errors.md': [['statuses', statusTable()]],
  'docs/guide/responses.md': [['outcomes', outcomeTable()]],
  'docs/protocol.md': [
    ['rules', ruleTables()],
    ['events', eventTable()],
  ],
  'docs/architecture.md': [['files of create()', pathTable(files)]],
}
for (const [path, tables] of Object.entries(PAGES)) {
  const page = new URL(`../${path}`, import.meta.url)
  const current = readFileSync(page, 'utf8')
  const wanted = tables.reduce((text, [name, table]) => withTable(text, name, table), current)
  if (!process.argv.includes('--check')) writeFileSync(page, wanted)
  else if (current !== wanted) {
    process.stderr.write(`${path} is out of date: run npm run docs:tables\n`)
    process.exitCode = 1
  }
}
