import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'
import { expect, test } from 'vitest'
import { pageFiles } from '../../src/sandbox/page/files.ts'
import { builtPage } from '../../tools/build/built-page.ts'

/** A file of the sandbox, bundled. */
async function bundled(file: string, options: BuildOptions) {
  const entryPoints = [fileURLToPath(new URL(`../../src/sandbox/${file}.ts`, import.meta.url))]
  const made = await build({
    ...options,
    entryPoints,
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
  })
  return { inputs: made.metafile.inputs, text: made.outputFiles[0]?.text ?? '' }
}

test.each(['index', 'http/msw'])('browser code of %s.ts uses nothing that only Node has', async (entry) => {
  const { inputs, text } = await bundled(entry, {
    platform: 'browser',
    external: ['msw'],
    minifyWhitespace: true,
    legalComments: 'none',
  })
  expect(text).not.toMatch(/\bnode:|\bBuffer\b|\bprocess\.|\brequire\b|\bsetImmediate\b/)
  const outside = Object.values(inputs).flatMap(({ imports }) =>
    imports.filter(({ external }) => external === true).map(({ path }) => path),
  )
  expect([...new Set(outside)]).toEqual(entry === 'http/msw' ? ['msw'] : [])
  expect(Object.keys(inputs).filter((path) => !path.includes('src/sandbox/'))).toEqual([])
})

test('the live page has the same script in an application that was bundled with kept names', async () => {
  const { text } = await bundled('page/files', { platform: 'node', keepNames: true, plugins: [builtPage] })
  const made = await import(`data:text/javascript,${encodeURIComponent(text)}`)
  const script = '/__sandbox/page.js'
  expect(made.pageFiles.get(script).text()).not.toContain('__name')
  expect(made.pageFiles.get(script).text()).toBe(pageFiles.get(script)?.text())
})
