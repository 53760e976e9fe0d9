/** Lists in the docs that a change of the code could leave behind: each is compared with the code. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { root } from '../../scripts/ensure-built.ts'
import { EXIT } from '../../src/command/terminal.ts'
import { VERSION } from '../../src/version.ts'
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
  const leaving = new Set(['replay', 'service'])
  expect(new Set(rowsOf(callOptions))).toEqual(
    new Set(interfaces.flatMap(([, fields]) => fields).filter((name) => !leaving.has(name))),
  )
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
  const used = new Set(read.flatMap((path) => sourceOf(path).match(names) ?? []))
  const named = new Set(pages.flatMap(({ text }) => text.match(names) ?? []))
  expect(named).toEqual(used)
})

test('the version is the one of package.json', () => {
  expect(VERSION).toBe(manifest.version)
})
