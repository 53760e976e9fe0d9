/**
 * Writes the generated tables of docs/guide/errors.md, docs/guide/responses.md,
 * docs/protocol.md and docs/architecture.md:
 *
 * npm run docs:tables
 *
 * With `--check`, the script writes nothing. It fails if a table is out of date, if the pages lack a
 * gate's code or a suggested status, or if one `create()` uses too many files.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { ApiError } from '../../src/errors/classes.ts'
import { CONFLICTS, STATUSES, type StatusRow, statusRow } from '../../src/errors/statuses.ts'
import {
  judgeOutcome,
  OUTCOMES,
  type OutcomeKind,
  type OutcomeRow,
  type Shown,
} from '../../src/orders/protocol/outcome.ts'
import { type Command, GUARDS, type Phase, RULES } from '../../src/orders/protocol/rules.ts'
import { root } from '../build/ensure-built.ts'
import { type CreatePath, pathOfCreate } from './create-path.ts'
import { outcomeWords } from './outcome-words.ts'

const next: Readonly<Record<OutcomeRow['next'], string>> = {
  stop: 'stop',
  now: 'retry, the first time immediately',
  backoff: 'retry with backoff',
  refresh: 'retry with a fresh API key',
  poll: 'poll with the same key, until the deadline',
  replay: 'replay to read it, at most twice',
}

const CHARGED = {
  charge: 'yes',
  doubt: 'unknown',
  refused: 'no',
  not_processed: 'no',
  cancelled: 'no',
} as const
const STATE = { yes: 'created', unknown: 'open', no: 'rejected' } as const

function meaning(shows: Shown): string {
  const charged = CHARGED[shows]
  return `\`'${charged}'\`, ${STATE[charged]}`
}

/** What the outcome means after an attempt under the same key that may have been charged. */
function afterDoubt(kind: OutcomeKind): string {
  return meaning(judgeOutcome(kind, { ambiguous: true, proven: false }).shows)
}

/** Returns the outcome table, with one line for each entry of `OUTCOMES`. */
function outcomeTable(): string {
  const entries = Object.entries(OUTCOMES) as [OutcomeKind, OutcomeRow][]
  return [
    '| an attempt ends with | `charged`, record | after an ambiguous attempt | next step |',
    '| --- | --- | --- | --- |',
    ...entries.map(
      ([kind, row]) =>
        `| ${outcomeWords(kind)} | ${meaning(row.shows)} | ${afterDoubt(kind)} | ${next[row.next]} |`,
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

const chargedBy = ({ outcome }: StatusRow): string => `\`'${CHARGED[OUTCOMES[outcome].shows]}'\``
function nextStep({ advice: [next], outcome }: StatusRow): string {
  const again = CHARGED[OUTCOMES[outcome].shows] === 'no' ? 'call again' : 'make the same call again'
  const then = outcome === 'conflict' ? '' : `, then ${again}`
  return `${next[0]?.toLowerCase()}${next.slice(1)}${then}`
}

/** Returns the table of the error classes that come from a status. */
function statusTable(): string {
  return [
    '| class | `code` | status | `charged` | next step | `suggestedStatus()` if nothing was bought |',
    '| --- | --- | --- | --- | --- | --- |',
    ...statusClasses().map(([status, row]) => {
      const { code, name } = new row.error('', {})
      return `| \`${name}\` | \`${code}\` | ${status}: ${row.meaning} | ${chargedBy(row)} | ${nextStep(row)} | ${row.suggested} |`
    }),
  ].join('\n')
}

const source = (path: string): string => readFileSync(join(root, 'src/orders', path), 'utf8')

/** The lines of a comment as one line, without the tags at its end. */
function prose(comment: string): string {
  const text = comment.replace(/\s*\n\s*\*?\s*/g, ' ').replace(/[ *]*@\w+ .*/, '')
  // A link to code means nothing on a page.
  return text.replace(/\{@link (\w+)\}/g, '`$1`').trim()
}

/** The comment just before this declaration. */
function commentOf(path: string, declaration: string): string {
  const text = source(path)
  const before = text.slice(0, text.indexOf(`\n${declaration}`) + 1)
  const comment = /\/\*\*((?:(?!\*\/|\/\*\*).)+)\*\/\n$/s.exec(before)?.[1]
  if (comment === undefined) throw new Error(`src/orders/${path} lacks a comment before "${declaration}"`)
  return prose(comment)
}

/** The entries of a list in a comment: "- `open`: the outcome is unknown;". */
function entriesIn(comment: string): ReadonlyMap<string, string> {
  const entries = comment.matchAll(/- `(\w+)`: (.*?)[;.](?= - `| [A-Z]|$)/g)
  return new Map(
    [...entries].map(([, name = '', text = '']) => [name, `${text[0]?.toUpperCase()}${text.slice(1)}.`]),
  )
}

/** Converts `otherPayload` to "other payload". */
const words = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

function stepText(step: object): string {
  const [name, ...more] = Object.values(step).map((value) => String(value).replaceAll('_', ' '))
  return more.length === 0 ? `**${name}**` : `**${name}** (${more.join(', ')})`
}

function cellText(cell: readonly unknown[]): string {
  // The guards begin every cell of `create()`, and have a list of their own.
  const own = cell.filter((entry) => !GUARDS.some((guard) => guard === entry))
  const entries = own.map((entry) => {
    if (!Array.isArray(entry)) return stepText(Object(entry))
    const [when, step]: unknown[] = entry
    return `${words(Object(when).name)}: ${stepText(Object(step))}`
  })
  return entries.length === 1
    ? String(entries[0])
    : `${entries.slice(0, -1).join('<br>')}<br>else ${entries.at(-1)}`
}

/** One line for each phase, and one column for each command. */
function ruleTable(): string {
  const commands = Object.keys(RULES.absent) as Command[]
  const phases = Object.keys(RULES) as Phase[]
  return [
    `| phase | ${commands.map((command) => `\`${command}\``).join(' | ')} |`,
    `| --- |${' --- |'.repeat(commands.length)}`,
    ...phases.map(
      (phase) => `| ${phase} | ${commands.map((command) => cellText(RULES[phase][command])).join(' | ')} |`,
    ),
  ].join('\n')
}

/** The phases, and when an order is in them. */
function phaseList(): string {
  const about = entriesIn(commentOf('protocol/rules.ts', 'export type Phase'))
  return Object.keys(RULES)
    .map((phase) => `- **${phase}**: ${about.get(phase) ?? missing(phase)}`)
    .join('\n')
}

function guardList(): string {
  return GUARDS.map(([when, step], index) => `${index + 1}. ${words(when.name)}: ${stepText(step)}`).join(
    '\n',
  )
}

/** The conditions, and what makes them true. */
function conditionTable(): string {
  const entries = Object.values(RULES).flatMap((row) => Object.values<readonly unknown[]>(row).flat())
  const names = new Set(entries.flatMap((entry) => (Array.isArray(entry) ? [String(entry[0].name)] : [])))
  const lines = [...names].map((name) => {
    const declared = `const ${name}: Condition`
    const isExported = source('protocol/rules.ts').includes(`export ${declared}`)
    return `| ${words(name)} | ${commentOf('protocol/rules.ts', isExported ? `export ${declared}` : declared)} |`
  })
  return ['| condition | when it is true, and why it matters |', '| --- | --- |', ...lines].join('\n')
}

/** The transitions. Their descriptions are the comments of their functions. */
function transitionTable(): string {
  const pure = ['claim', 'settle', 'prove', 'abandon', 'distrust']
  const lines = pure.map(
    (name) => `| \`${name}\` | ${commentOf('protocol/transitions.ts', `export function ${name}(`)} |`,
  )
  const empty = commentOf('record/journal.ts', '  async empty(')
  return ['| transition | what happened |', '| --- | --- |', ...lines, `| \`empty\` | ${empty} |`].join('\n')
}

/** What the outcome of an attempt does to the record. */
function recordTable(): string {
  const entries = Object.entries(OUTCOMES) as [OutcomeKind, OutcomeRow][]
  return [
    '| outcome | alone | after an ambiguous attempt | next step | held, while open |',
    '| --- | --- | --- | --- | --- |',
    ...entries.map(
      ([kind, row]) =>
        `| \`${kind}\` | ${meaning(row.shows)} | ${afterDoubt(kind)} | ${next[row.next]} | ${row.hold ?? ''} |`,
    ),
  ].join('\n')
}

function missing(name: string): never {
  throw new Error(`no comment in src/orders describes ${name}`)
}

/** Fails if a gate is missing from the page, or names code that does not exist. */
function checkGates(page: string): void {
  const [, gates = ''] = page.split(/^## (?:The gates.*|Guards)$/m)
  const numbers = [...gates.matchAll(/^(\d+)\. .*\(`\w+` in/gm)].map(([, number]) => Number(number))
  if (numbers.length < 10 || numbers.some((number, index) => number !== index + 1))
    throw new Error(
      `docs/protocol.md has the gates ${numbers.join(', ')}: number them from 1, each with its code`,
    )
  for (const [gate, name = '', path = ''] of gates.matchAll(/\(`(\w+)` in `([\w/.-]+)`\)/g)) {
    const file = join(root, 'src', path)
    if (existsSync(file) && new RegExp(`\\b${name}\\b`).test(readFileSync(file, 'utf8'))) continue
    process.stderr.write(`src/${path} has no ${name}: correct the gate "${gate}" in docs/protocol.md\n`)
    process.exitCode = 1
  }
}

/** Fails if the page lacks a status that `suggestedStatus()` returns. */
function checkSuggested(page: string): void {
  const rows = [...page.matchAll(/^\| ([\d, ]+) \|/gm)].join()
  for (const { suggested } of Object.values(STATUSES)) {
    if (rows.includes(String(suggested))) continue
    process.stderr.write(`docs/guide/errors.md lacks ${suggested}, which suggestedStatus() returns\n`)
    process.exitCode = 1
  }
}

/** Maximum numbers of files and functions of src that one `create()` may use. */
const MOST_FILES = 30
const MOST_FUNCTIONS = 150

/** Returns a table of the files that one `create()` uses, with one line for each folder. */
function pathTable({ files, functions }: CreatePath): string {
  const folderOf = (file: string): string => file.slice(0, file.lastIndexOf('/') + 1)
  const lines = [...new Set(files.map(folderOf))].sort().map((folder) => {
    const names = files
      .filter((file) => folderOf(file) === folder)
      .map((file) => `\`${file.slice(folder.length)}\``)
    return `| \`src/${folder}\` | ${names.length} | ${names.join(', ')} |`
  })
  const head = `| folder | ${files.length} files | ${functions} functions |`
  return [head, '| --- | --- | --- |', ...lines].join('\n')
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

const path = await pathOfCreate()
if (path.files.length > MOST_FILES || path.functions > MOST_FUNCTIONS) {
  process.stderr.write(
    `one create() runs ${path.functions} functions in ${path.files.length} files of src, but the limits are ${MOST_FUNCTIONS} and ${MOST_FILES}\n`,
  )
  process.exitCode = 1
}

const PAGES: Readonly<Record<string, readonly (readonly [name: string, table: string])[]>> = {
  'docs/guide/errors.md': [['statuses', statusTable()]],
  'docs/guide/responses.md': [['outcomes', outcomeTable()]],
  'docs/protocol.md': [
    ['phases', phaseList()],
    ['guards', guardList()],
    ['rules', ruleTable()],
    ['conditions', conditionTable()],
    ['transitions', transitionTable()],
    ['outcomes', recordTable()],
  ],
  'docs/architecture.md': [['files of create()', pathTable(path)]],
}
checkGates(readFileSync(join(root, 'docs/protocol.md'), 'utf8'))
checkSuggested(readFileSync(join(root, 'docs/guide/errors.md'), 'utf8'))
for (const [name, tables] of Object.entries(PAGES))
  write(name, (current) => tables.reduce((text, [name, table]) => withTable(text, name, table), current))
write('src/version.ts', () => `export const VERSION = '${manifest.version}'\n`)

/** Writes a generated file, or with `--check` only compares it. */
function write(name: string, generate: (current: string) => string): void {
  const file = join(root, name)
  const current = readFileSync(file, 'utf8')
  const wanted = generate(current)
  if (!process.argv.includes('--check')) writeFileSync(file, wanted)
  else if (current !== wanted) {
    process.stderr.write(`${name} is out of date: run npm run docs:tables\n`)
    process.exitCode = 1
  }
}
