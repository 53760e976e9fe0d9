/** Lists in the docs that a change of the code could leave behind: each is compared with the code. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { answerOf } from '../../examples/hono-backend/answer.ts'
import manifest from '../../package.json' with { type: 'json' }
import { environmentName, OPTIONS } from '../../src/command/options.ts'
import { EXIT } from '../../src/command/terminal.ts'
import * as errors from '../../src/errors/classes.ts'
import { CONFLICTS, STATUSES, statusRow } from '../../src/errors/statuses.ts'
import { habitOf } from '../../src/settings/habits.ts'
import { nearestName } from '../../src/settings/readers.ts'
import { root } from '../../tools/build/ensure-built.ts'
import { readPages } from './support/pages.ts'

const pages = readPages()
const textOf = (path: string): string => pages.find((page) => page.path === path)?.text ?? ''
const sourceOf = (path: string): string => readFileSync(join(root, 'src', path), 'utf8')

/** The fields of the interfaces of a file, by the name of the interface. */
function fieldsOf(path: string): ReadonlyMap<string, readonly string[]> {
  const file = ts.createSourceFile(path, sourceOf(path), ts.ScriptTarget.Latest)
  const interfaces = file.statements.filter(ts.isInterfaceDeclaration)
  return new Map(
    interfaces.map(({ name, members }) => [
      name.text,
      members.flatMap((member) => (member.name && ts.isIdentifier(member.name) ? [member.name.text] : [])),
    ]),
  )
}

/** The string literals that a declaration of this name has anywhere in its type. */
function literalsOf(name: string, member?: string): ReadonlySet<string> {
  const found = new Set<string>()
  const declared = new RegExp(`^export (?:type|interface) ${name}\\b`, 'm')
  for (const path of globSync('**/*.ts', { cwd: join(root, 'src') }).filter((each) =>
    declared.test(sourceOf(each)),
  ))
    for (const statement of ts.createSourceFile(path, sourceOf(path), ts.ScriptTarget.Latest).statements)
      if (
        (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) &&
        statement.name.text === name
      )
        collect(statement, member === undefined)
  return found

  function collect(node: ts.Node, inside: boolean): void {
    if (inside && ts.isStringLiteral(node)) found.add(node.text)
    const named = ts.isPropertySignature(node) && ts.isIdentifier(node.name) && node.name.text === member
    ts.forEachChild(node, (child) => collect(child, inside || named))
  }
}

/** Names in backticks in the first cells of a page's tables. */
function rowsOf(text: string): readonly string[] {
  const cells = [...text.matchAll(/^\| ([^|]+) \|/gm)].map(([, cell = '']) => cell)
  return cells.flatMap((cell) => [...cell.matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name))
}

const [clientOptions = '', callOptions = ''] = (() => {
  const text = textOf('docs/guide/options.md')
  const [begin, end] = [text.indexOf('## Options of a call'), text.indexOf('## Derived clients')]
  return [text.slice(0, begin) + text.slice(end), text.slice(begin, end)]
})()

test('docs/guide/options.md has every option of the client, and no other', () => {
  const rows = rowsOf(clientOptions).map((name) => name.split('.')[0])
  const described = new Set([...rows, 'schemas'])
  expect(described).toEqual(new Set(fieldsOf('options.ts').get('ClientOptions')))
})

test('docs/guide/options.md has every option of a call, and no other', () => {
  const interfaces = [...fieldsOf('call-options.ts')].filter(([name]) => name.endsWith('Options'))
  expect(new Set(rowsOf(callOptions))).toEqual(new Set(interfaces.flatMap(([, fields]) => fields)))
})

/** The rows of the table that begins with this line. */
function table(path: string, head: string): ReadonlySet<string> {
  const [, after = ''] = textOf(path).split(head)
  return new Set(rowsOf(after.split('\n\n')[0] ?? ''))
}

test('each reason why an order needs a person has its row in docs/guide/on-call.md', () => {
  const rows = table('docs/guide/on-call.md', '| `reason` | what happened | what to do |')
  expect(rows).toEqual(new Set([...literalsOf('AttentionReason'), ...literalsOf('Hold')]))
})

test('each outcome of recover() has its row in docs/guide/recovery.md', () => {
  const rows = table('docs/guide/recovery.md', '| `outcome` | meaning | what to do |')
  expect(rows).toEqual(literalsOf('SettledEvent', 'recovery'))
})

test('each kind of reconcile() has its row in docs/guide/recovery.md', () => {
  const rows = table('docs/guide/recovery.md', '| `kind` | meaning |')
  expect(rows).toEqual(literalsOf('Reconciled', 'kind'))
})

test('each reason of a retry has its row in docs/guide/observability.md', () => {
  const rows = table('docs/guide/observability.md', '| `reason` of a retry | meaning |')
  expect(rows).toEqual(literalsOf('RetryEvent', 'reason'))
})

test('docs/guide/errors.md says what to do for each error that comes from no status', () => {
  const rows = table('docs/guide/errors.md', '| `code` | next step |')
  const ofStatuses = [...Object.values(STATUSES), ...Object.values(CONFLICTS), statusRow(500), statusRow(0)]
  const codes = Object.entries(errors)
    .filter(([name]) => /^[A-Z]\w+Error$/.test(name))
    .map(([, ErrorClass]) => new (ErrorClass as typeof errors.CustomerOrderingError)('').code)
  const shown = new Set(ofStatuses.map((row) => new row.error('', {}).code))
  expect(rows).toEqual(new Set(codes.filter((code) => code !== 'error' && !shown.has(code))))
})

test('docs/guide/command.md has every exit code of the command, and no other', () => {
  const [, table = ''] = textOf('docs/guide/command.md').split('| exit code | meaning |')
  const codes = [...table.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code))
  expect(codes).toEqual(Object.values(EXIT).sort((a, b) => a - b))
})

test('the pages name every entry point, and no missing one', () => {
  const entries = Object.keys(manifest.exports).map((path) => path.replace(/^\./, manifest.name))
  const text = pages.map((page) => page.text).join('\n')
  const named = [...text.matchAll(/(?<![\w@/-])customer-ordering-sdk\/[\w./-]*\w/g)].map(([name]) => name)
  expect(new Set(named.filter((name) => !entries.includes(name)))).toEqual(new Set())
  const missing = entries.filter((entry) => !named.includes(entry) && entry !== manifest.name)
  expect(missing).toEqual([])
})

test('the pages name every environment variable that the source reads, and no other', () => {
  const names = /\bCUSTOMER_ORDERING_[A-Z_]+\b/g
  const read = ['settings/resolve.ts', 'settings/credentials.ts', 'command/run.ts', 'command/open-store.ts']
  const options = Object.entries(OPTIONS)
    .filter(([, option]) => 'env' in option)
    .map(([name]) => environmentName(name))
  const used = new Set([...read.flatMap((path) => sourceOf(path).match(names) ?? []), ...options])
  const named = new Set(pages.flatMap(({ text }) => text.match(names) ?? []))
  expect(named).toEqual(used)
})

const refusals = Object.keys(STATUSES).filter((status) => statusRow(Number(status)).outcome === 'refused')

test('each list of refusals in the docs, TSDoc and examples has every status that is a refusal', () => {
  const sources = globSync('{src,examples}/**/*.ts', { cwd: root, exclude: ['**/node_modules'] }).map(
    (path) => ({ path, text: readFileSync(join(root, path), 'utf8') }),
  )
  const lists = [...pages, ...sources].flatMap(({ path, text }) =>
    [...text.matchAll(/\b400, 402, 404(?:,? (?:or |and )?\d{3})*/g)].map(([list]) => `${path}: ${list}`),
  )
  const found = lists.map((list) => list.split(': ')[1]?.match(/\d{3}/g)?.join())
  expect(lists.join()).toContain('examples/worker-fleet/worker.ts')
  expect(found.length).toBeGreaterThan(3)
  expect(lists.filter((_list, index) => found[index] !== refusals.join())).toEqual([])
})

test.each(refusals)('examples/hono-backend passes the refusal %s on', (status) => {
  const error = new (statusRow(Number(status)).error)('', { charged: 'no' })
  if (!errors.isCustomerOrderingError(error)) throw error
  expect(answerOf(error)).toEqual({ status: Number(status), body: { state: 'refused', reason: error.code } })
})

const [options, call] = [fieldsOf('options.ts'), fieldsOf('call-options.ts')]

test.each([
  [['ClientOptions']],
  [['RequestOptions', 'CreateOptions']],
  [['RequestOptions', 'ListOptions', 'ListParams', 'ListOrdersParams']],
])('a name of %s with one wrong letter is never taken for a habit of another SDK', (types) => {
  const known = types.flatMap((type) => call.get(type) ?? options.get(type) ?? [])
  expect(known.length).toBeGreaterThan(types.length)
  const readers = Object.fromEntries(known.map((name) => [name, true]))
  const mistaken = known.flatMap((name) =>
    misspellings(name).filter(
      (typo) =>
        !known.includes(typo) && !['', name, nearestName(typo, known)].includes(habitOf(typo, readers)),
    ),
  )
  expect(mistaken).toEqual([])
})

function misspellings(name: string): string[] {
  return [...name].flatMap((letter, at) => {
    const [before, after] = [name.slice(0, at), name.slice(at + 1)]
    const others = [...'abcdefghijklmnopqrstuvwxyz'].flatMap((other) => [
      before + other + after,
      before + other + letter + after,
    ])
    return [before + after, ...others]
  })
}

const openapi: {
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly properties: Readonly<Record<string, object>> }>>
  }
} = parse(readFileSync(join(root, 'openapi/customer-ordering.yaml'), 'utf8'))

test.each([
  ['schemas/order.ts', 'CreateOrderRequest', 'createOrderRequestSchema'],
  ['schemas/order.ts', 'Order', 'orderSchema'],
  ['schemas/service.ts', 'Service', 'serviceSchema'],
  ['schemas/balance.ts', 'Balance', 'balanceSchema'],
])('in %s, each field of %s is checked by %s, and documented in the OpenAPI file', (path, name, schema) => {
  const [, shape = ''] = sourceOf(path).split(new RegExp(`^export const ${schema}\\b.*\\{$`, 'm'))
  const checked = [...(shape.split('\n})')[0] ?? '').matchAll(/^ {2}(\w+)[:,]/gm)].map(([, field]) => field)
  expect(checked).toEqual(fieldsOf(path).get(name))
  const properties = Object.entries(openapi.components.schemas[name]?.properties ?? {})
  const documented = properties.filter(([, property]) => !('x-not-documented' in property))
  expect(documented.map(([field]) => field)).toEqual(checked)
})
