import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

test.each(['index', 'http/msw'])('browser code of %s.ts uses nothing that only Node has', async (entry) => {
  const { metafile, outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(`../../src/sandbox/${entry}.ts`, import.meta.url))],
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'browser',
    external: ['msw'],
    minifyWhitespace: true,
    legalComments: 'none',
  })
  const text = outputFiles[0]?.text ?? ''
  expect(text).not.toMatch(/\bnode:|\bBuffer\b|\bprocess\.|\brequire\b|\bsetImmediate\b/)
  const outside = Object.values(metafile.inputs).flatMap(({ imports }) =>
    imports.filter(({ external }) => external === true).map(({ path }) => path),
  )
  expect([...new Set(outside)]).toEqual(entry === 'http/msw' ? ['msw'] : [])
  const foreign = Object.keys(metafile.inputs).filter((path) => !path.includes('src/sandbox/'))
  expect(foreign).toEqual([])
})
