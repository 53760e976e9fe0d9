import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import { pageFiles } from '../../src/sandbox/page/files.ts'
import { builtPage } from '../../tools/build/built-page.ts'

test('the live page has the same script in an application that was bundled with kept names', async () => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('../../src/sandbox/page/files.ts', import.meta.url))],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    keepNames: true,
    plugins: [builtPage],
  })
  const bundled = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? '')}`)
  const script = '/__sandbox/page.js'
  expect(bundled.pageFiles.get(script).text()).not.toContain('__name')
  expect(bundled.pageFiles.get(script).text()).toBe(pageFiles.get(script)?.text())
})
