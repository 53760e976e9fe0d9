import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createSandbox, parseFaultRules, sandboxPresets } from 'customer-ordering-sdk/sandbox'
import { expect, test } from 'vitest'
import { createControl } from '../../src/sandbox/control/control.ts'

const page = readFileSync(new URL('../../docs/guide/sandbox.md', import.meta.url), 'utf8')

/** Names in the first column of the table under this header row. */
function firstColumn(header: string): readonly string[] {
  const rows = page.split(`\n${header}\n`)[1]?.split('\n\n')[0]?.split('\n').slice(1) ?? []
  return rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
  )
}

/** The types that a rule of an unknown type is told. */
function actions(): readonly string[] {
  try {
    parseFaultRules('[{"action":{"type":"?"}}]')
  } catch (error) {
    return [...String(error).matchAll(/"(\w+)"/g)].map(([, type = '']) => type)
  }
  return []
}

function flags(): readonly string[] {
  const main = fileURLToPath(new URL('../../src/command/main.ts', import.meta.url))
  const help = execFileSync(process.execPath, [main, 'sandbox', '--help'], { encoding: 'utf8' })
  return [...help.matchAll(/^ {2}(--[\w-]+)/gm)].map(([, flag = '']) => flag)
}

/** The calls that the control API lists, with the names of their parameters. */
function calls(): readonly string[] {
  const control = createControl(createSandbox())
  return control({ method: 'GET', path: '/', query: new URLSearchParams(), body: '' }).body as string[]
}

test.each<[string, header: string, names: () => readonly string[]]>([
  ['switch', '| switch | values (default first) |', () => Object.keys(createSandbox().behaviour)],
  ['preset', '| preset | the service … |', () => Object.keys(sandboxPresets)],
  ['action', '| action | the service … | charged? |', actions],
  [
    'service of the catalogue',
    '| `serviceId` | price per unit | quantities | note |',
    () =>
      createSandbox()
        .services()
        .map(({ productId }) => productId),
  ],
  ['flag of the command', '| flag | effect |', flags],
  ['call of the control API', '| below `/__sandbox` | effect |', calls],
])('docs/guide/sandbox.md lists every %s, and no other', (what, header, names) => {
  const listed = firstColumn(header).map((name) =>
    what === 'flag of the command' ? name.split(' ')[0] : name.replace(/=\w+/g, ''),
  )
  expect(listed.toSorted()).toEqual([...names()].sort())
})

const switches = page.split('| switch | values (default first) |')[1]?.split('\n\n')[0] ?? ''
const defaults = Object.entries(createSandbox().behaviour).filter(([, value]) => typeof value !== 'object')

test.each(defaults)('the guide begins the values of the switch %s with the default, %s', (name, value) => {
  const [, names = '', cell = ''] =
    switches.match(new RegExp(`^\\| (.*\`${name}\`.*?) \\| (.*) \\|$`, 'm')) ?? []
  const values = cell.split(' · ')[names.split(', ').indexOf(`\`${name}\``)] ?? ''
  expect(values.replaceAll('`', '').split(/[, ]/)[0]).toBe(String(value))
})

test("docs/guide/sandbox.md shows a valid fault file, and the default seed's API key", () => {
  const [, json = ''] = /```json\n([\s\S]*?)```/.exec(page) ?? []
  expect(parseFaultRules(json)).toHaveLength(2)
  expect(page).toContain(createSandbox().apiKey)
})

test('docs/guide/testing.md shows a valid fault script', () => {
  const text = readFileSync(new URL('../../docs/guide/testing.md', import.meta.url), 'utf8')
  const script = /```json\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
  expect(parseFaultRules(script)).toHaveLength(1)
})
