import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'

/** Source files: paths below src with forward slashes, and contents. */
type Sources = Readonly<Record<string, string>>

interface Import {
  readonly from: string
  /** A path below src, or a package. */
  readonly to: string
  readonly typeOnly: boolean
}

const root = new URL('../src/', import.meta.url)
const sources: Sources = Object.fromEntries(
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts'))
    .map((path) => [path, readFileSync(new URL(path, root), 'utf8')]),
)

/**
 * Lowest layer first. A file may import from lower layers and, if the entry is a folder, from its
 * own folder. The most specific entry counts, so a folder's vocabulary may be in a lower layer than
 * its other files.
 */
const LAYERS: readonly (readonly string[])[] = [
  ['identity/'],
  ['defined.ts'],
  ['errors/', 'version.ts'],
  ['stores/', 'settings/habits.ts'],
  ['hooks.ts', 'lifetime.ts', 'response-info.ts', 'money.ts', 'settings/readers.ts', 'schemas/'],
  ['quantity.ts', 'uuid-v5.ts', 'uuid-v5-without-node.ts', 'lazy.ts', 'lists/prefetch.ts'],
  ['runtime.ts'],
  ['lists/walk.ts'],
  ['lists/pages.ts'],
  ['http/'],
  ['undici/'],
  ['options.ts', 'call-options.ts'],
  ['aes-gcm.ts', 'suggested-status.ts'],
  ['settings/credentials.ts', 'settings/base-url.ts'],
  ['proxy/', 'opentelemetry/'],
  ['settings/'],
  ['lists/'],
  ['orders/record/'],
  ['orders/protocol/'],
  ['orders/sending/'],
  ['orders/commands/'],
  ['resources/'],
  ['client.ts'],
  ['index.ts', 'command/'],
]

/** The sandbox is a neighbour of the client: its own layers, beside the client's. */
const SANDBOX: readonly (readonly string[])[] = [
  ['sandbox/service/'],
  ['sandbox/http/fetch.ts'],
  ['sandbox/sandbox.ts'],
  ['sandbox/control/overview.ts'],
  ['sandbox/page/'],
  ['sandbox/control/'],
  ['sandbox/http/'],
  ['sandbox/'],
]

/** The folders that may import each package, and the names that they may import. */
const PACKAGES: Readonly<Record<string, (specifier: string, file: string) => boolean>> = {
  ky: (specifier, file) => specifier === 'ky' && /^http\/ky-(transport|on-demand)\.ts$/.test(file),
  zod: (specifier, file) => specifier === 'zod/mini' && file.startsWith('schemas/'),
  uuid: (specifier, file) => specifier === 'uuid' && /^(runtime|uuid-v5(-without-node)?)\.ts$/.test(file),
  undici: (specifier, file) => specifier === 'undici' && file.startsWith('undici/'),
  '@opentelemetry': (specifier, file) =>
    specifier === '@opentelemetry/api' && file.startsWith('opentelemetry/'),
  // The build replaces this module with its result.
  esbuild: (_specifier, file) => file === 'sandbox/page/script.ts',
  msw: (_specifier, file) => file === 'sandbox/http/msw.ts',
}

/** Files that run under Node, Bun and Deno only. */
const SERVER_ONLY =
  /^(undici\/.*|stores\/sqlite\/(database|files)|sandbox\/http\/server|command\/[\w-]+|sandbox\/control\/control-server|sandbox\/page\/script)\.ts$/

const code = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')

function importsOf(files: Sources): Import[] {
  const found: Import[] = []
  for (const [from, text] of Object.entries(files)) {
    const statements = code(text).matchAll(
      /(?:^|\n)\s*(?:import|export)\s(type\s)?[^'"`;]*?from\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s*['"]([^'"]+)['"]|\b(?:import|require|getBuiltinModule)\(\s*['"]([^'"]+)['"]/g,
    )
    for (const [, type, specifier, bare, dynamic] of statements) {
      const target = specifier ?? bare ?? dynamic ?? ''
      const to = target.startsWith('.') ? posix.join(posix.dirname(from), target) : target
      found.push({ from, to, typeOnly: type !== undefined })
    }
  }
  return found
}

const isOurs = (path: string, files: Sources): boolean => Object.hasOwn(files, path)

function placeOf(file: string): { readonly layer: number; readonly entry: string } | undefined {
  let place: { layer: number; entry: string } | undefined
  for (const [layer, entries] of (isSandbox(file) ? SANDBOX : LAYERS).entries()) {
    for (const entry of entries) {
      const fits = entry.endsWith('/') ? file.startsWith(entry) : file === entry
      if (fits && entry.length > (place?.entry.length ?? 0)) place = { layer, entry }
    }
  }
  return place
}

/** True for the two files where both meet: the command starts the sandbox. */
function startsSandbox({ from, to }: Pick<Import, 'from' | 'to'>): boolean {
  return ['command/main.ts', 'command/sandbox.ts'].includes(from) && to.startsWith('sandbox/')
}

const isSandbox = (file: string): boolean => file.startsWith('sandbox/')

function layerFaults(files: Sources): string[] {
  const faults = Object.keys(files)
    .filter((file) => placeOf(file) === undefined)
    .map((file) => `${file} has no place in the layers`)
  for (const { from, to } of importsOf(files)) {
    const [upper, lower] = [placeOf(from), placeOf(to)]
    if (upper === undefined || (!isOurs(to, files) && !to.endsWith('.ts'))) continue
    // The border between both is a rule of its own.
    if (isSandbox(from) !== isSandbox(to)) continue
    const ownFolder = upper.entry.endsWith('/') && lower?.entry === upper.entry
    if (ownFolder) continue
    if (lower === undefined || lower.layer >= upper.layer) faults.push(`${from} imports ${to}`)
  }
  return faults
}

function cycleFaults(files: Sources): string[] {
  const edges = new Map<string, string[]>()
  for (const { from, to } of importsOf(files)) edges.set(from, [...(edges.get(from) ?? []), to])
  const faults: string[] = []
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) faults.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (path.includes(file) || done.has(file)) return
    for (const next of edges.get(file) ?? []) visit(next, [...path, file])
    done.add(file)
  }
  for (const file of edges.keys()) visit(file, [])
  return faults
}

function packageFaults(files: Sources): string[] {
  return importsOf(files)
    .filter(({ from, to }) => {
      if (isOurs(to, files) || to.endsWith('.ts')) return false
      if (to.startsWith('node:')) return !SERVER_ONLY.test(from)
      const allowed = PACKAGES[to.split('/')[0] ?? '']
      return allowed === undefined || !allowed(to, from)
    })
    .map(({ from, to }) => `${from} imports ${to}`)
}

/** The border: the sandbox may use types of the API, and nothing of the sandbox is used outside. */
function borderFaults(files: Sources): string[] {
  return importsOf(files)
    .filter(({ from, to }) => isSandbox(from) !== isSandbox(to))
    .filter(({ from, to, typeOnly }) =>
      isSandbox(from)
        ? isOurs(to, files) && !(typeOnly && to.startsWith('schemas/'))
        : !startsSandbox({ from, to }),
    )
    .map(({ from, to }) => `${from} imports ${to}`)
}

/** A store may import only the interface that it implements and the errors that it throws. */
function storeFaults(files: Sources): string[] {
  return importsOf(files)
    .filter(({ from, to }) => from.startsWith('stores/') && isOurs(to, files) && !to.startsWith('stores/'))
    .filter(({ to }) => !['errors/classes.ts', 'defined.ts'].includes(to))
    .map(({ from, to }) => `${from} imports ${to}`)
}

/** Files that a program loads when it imports only this file. */
function reachable(files: Sources, entry: string): Set<string> {
  const found = new Set([entry])
  const imports = importsOf(files)
  for (const file of found)
    for (const { from, to } of imports) if (from === file && isOurs(to, files)) found.add(to)
  return found
}

function nodeFaults(files: Sources): string[] {
  return [...reachable(files, 'index.ts')]
    .filter((file) => files[file]?.includes('node:') === true)
    .map((file) => `${file} mentions node:`)
}

function nameFaults(files: Sources): string[] {
  return Object.keys(files).filter((file) => /(^|[/-])(utils?|helpers?|managers?)([/.-])/i.test(file))
}

/**
 * Platform globals that must not be used while a module loads: they differ between platforms, and
 * some bundles run before they exist.
 */
function loadFaults(files: Sources): string[] {
  const touching =
    /^(?:export )?(?:const|let|var) [^=]*= *(?:await )?(?:globalThis|process|window|document|navigator|crypto|fetch|indexedDB|performance)\b/m
  return Object.keys(files).filter(
    (file) => file !== 'command/main.ts' && touching.test(code(files[file] ?? '')),
  )
}

/** Any file of orders/. */
const ORDERS_FILE = Object.keys(sources).find((file) => file.startsWith('orders/')) ?? ''

const checks: readonly [
  rule: string,
  faultsOf: (files: Sources) => string[],
  /** Negative controls: changes that the check must detect. */
  controls: readonly Sources[],
][] = [
  [
    'imports point down',
    layerFaults,
    [
      { 'http/retry.ts': "import { Orders } from '../resources/orders.ts'" },
      { 'orders/wait-for.ts': "import type { CustomerOrderingClient } from '../client.ts'" },
      { 'errors/classes.ts': "import { VERSION } from '../version.ts'" },
      { 'schemas/order.ts': "export * from '../http/request.ts'" },
      { 'http/call.ts': "import {\n  type JournalRecord,\n} from '../orders/record.ts'" },
      { 'lists/pages.ts': "const later = import('../client.ts')" },
      { 'stray.ts': 'export {}' },
      { 'sandbox/service/wire.ts': "import { parseDataFile } from '../control/data-file.ts'" },
      { 'sandbox/http/fetch.ts': "import type { Sandbox } from '../sandbox.ts'" },
      { 'http/call.ts': `import '../${ORDERS_FILE}'` },
      { 'proxy/index.ts': "import { Orders } from '../resources/orders.ts'" },
      // Names that need a layer above the layer that uses them.
      { [ORDERS_FILE]: "import '../client.ts'", 'settings/resolve.ts': `import '../${ORDERS_FILE}'` },
    ],
  ],
  [
    'no imports go in a circle',
    cycleFaults,
    [
      { 'http/redact.ts': "import './failures.ts'" },
      { 'resources/services.ts': "import type { A } from './services.ts'" },
    ],
  ],
  [
    'each package has one home',
    packageFaults,
    [
      { 'http/call.ts': "import ky from 'ky'" },
      { 'http/ky-transport.ts': "import ky from 'ky/distribution'" },
      { 'settings/resolve.ts': "import * as z from 'zod/mini'" },
      { 'schemas/order.ts': "import * as z from 'zod'" },
      { 'schemas/list.ts': "import { z } from 'zod/v4'" },
      { 'client.ts': "import { v4 } from 'uuid'" },
      { 'sandbox/http/server.ts': "import { http } from 'msw'" },
      { 'stores/memory.ts': "import { readFileSync } from 'node:fs'" },
      { 'sandbox/service/handler.ts': "const fs = process.getBuiltinModule('node:fs')" },
      { 'client.ts': "import lodash from 'lodash'" },
    ],
  ],
  [
    'the sandbox shares only types with the client, and the client nothing with it',
    borderFaults,
    [
      { 'sandbox/service/reading.ts': "import { orderSchema } from '../../schemas/order.ts'" },
      { 'sandbox/service/wire.ts': "import type { Charged } from '../../errors/classes.ts'" },
      { 'sandbox/service/json.ts': `import '../../${ORDERS_FILE}'` },
      { 'client.ts': "import { createSandbox } from './sandbox/index.ts'" },
    ],
  ],
  [
    'stores know the interface and the errors, nothing else',
    storeFaults,
    [{ 'stores/sqlite.ts': "import type { JournalRecord } from '../orders/record/record.ts'" }],
  ],
  [
    'nothing that the main entry reaches mentions node:',
    nodeFaults,
    [
      { 'index.ts': "export { SqliteStore } from './stores/sqlite.ts'" },
      { 'http/retry.ts': "const name = 'node:fs'" },
    ],
  ],
  [
    'nothing is called a utility, a helper or a manager',
    nameFaults,
    [
      { 'utils.ts': '' },
      { 'http/retry-helpers.ts': '' },
      { 'helpers/text.ts': '' },
      { 'orders/order-manager.ts': '' },
    ],
  ],
  [
    'no module touches a platform global while loading',
    loadFaults,
    [
      { 'runtime.ts': 'const clock = performance.now()' },
      { 'http/transport.ts': 'export const send: typeof fetch = globalThis.fetch' },
    ],
  ],
]

describe.each(checks)('%s', (_rule, faultsOf, controls) => {
  it('the rule holds for src', () => {
    expect(Object.keys(sources).length).toBeGreaterThan(40)
    expect(faultsOf(sources)).toEqual([])
  })

  it.each(controls)('the rule detects %j', (change) => {
    const changed = Object.entries(change).map(([file, text]) => [file, `${sources[file] ?? ''}\n${text}\n`])
    expect(faultsOf({ ...sources, ...Object.fromEntries(changed) })).not.toEqual([])
  })
})

it.each([
  ['D1', ['stores/d1.ts', 'stores/cloudflare/engine.ts']],
  ['Durable Objects', ['stores/durable-object.ts', 'stores/cloudflare/engine.ts']],
])('the files that a store in %s needs beyond those of all SQL stores have at most 250 lines', (_, files) => {
  const lines = files.map((file) => (sources[file] ?? '').trimEnd().split('\n').length)
  expect(Math.min(...lines)).toBeGreaterThan(1)
  expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(250)
})

describe('the reading of imports', () => {
  it('the reader of imports understands every form, and ignores comments', () => {
    const text = [
      ...["import a from 'a'", "import type { B } from 'b'"],
      ...["import {\n  c,\n  type D,\n} from 'c'", "export * from 'd'"],
      ...["export type { E } from 'e'", "import 'f'", "const g = await import('g')"],
      ...["const h = require('h')", "// import i from 'i'", "/**\n * import j from 'j'\n */"],
    ].join('\n')
    const found = importsOf({ 'x.ts': text }).map(({ to, typeOnly }) => [to, typeOnly])
    expect(found).toEqual([
      ['a', false],
      ['b', true],
      ['c', false],
      ['d', false],
      ['e', true],
      ['f', false],
      ['g', false],
      ['h', false],
    ])
  })

  it('the main entry reaches the client, and no other entry does', () => {
    const reached = reachable(sources, 'index.ts')
    expect(reached.has('client.ts')).toBe(true)
    expect(reached.has('http/ky-transport.ts')).toBe(true)
    expect([...reached].filter((file) => file.startsWith('sandbox/') || file.startsWith('stores/'))).toEqual([
      'stores/memory.ts',
      'stores/store.ts',
      'stores/memory/pack.ts',
    ])
  })
})
