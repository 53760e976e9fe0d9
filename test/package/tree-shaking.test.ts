/** Tests what bundlers remove from the packed package if only a part of it is used. */
import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, inject } from 'vitest'
import { root } from '../../tools/build/ensure-built.ts'
import { DEPENDENCIES, dependenciesIn } from '../../tools/checks/bundled-dependencies.ts'
import { run } from '../support/run.ts'
import { bundler, cell } from './cell.ts'
import { engines } from './node-versions.ts'

const folder = join(inject('consumer'), 'tree-shaking')

beforeAll(() => cp(join(root, 'test/package/smoke'), folder, { recursive: true }))

async function bundle(name: string, platform: string, program: string): Promise<string> {
  const out = join(folder, `${name}-${platform}-${program}`)
  const build = [join(engines, 'build.mjs'), name, join(folder, program), out, platform]
  await run(process.execPath, build, { cwd: engines })
  return out
}

for (const name of ['esbuild', 'webpack', 'Rollup']) {
  cell(bundler(name), 'amounts and errors without dependencies, for browsers', async () => {
    const light = await bundle(name.toLowerCase(), 'browser', 'light.mjs')
    const text = await readFile(light, 'utf8')
    expect(dependenciesIn(text)).toEqual([])
    expect(text.length).toBeLessThan(40_000)
    const { stdout } = await run(process.execPath, [light])
    expect(JSON.parse(stdout)).toMatchObject(['€12.50', expect.any(String), false])
  })

  for (const platform of ['browser', 'node'])
    cell(
      bundler(name),
      `code of use in Node only is ${platform === 'node' ? '' : 'not '}in a bundle for ${platform}`,
      async () => {
        const whole = await readFile(await bundle(name.toLowerCase(), platform, 'bundle.mjs'), 'utf8')
        // Strings that would be found if the code were present.
        expect(dependenciesIn(whole)).toEqual(DEPENDENCIES)
        expect(whole.includes('internal\\/deps')).toBe(platform === 'node')
      },
    )
}
