/** Runs the code of docs/guide/stores/indexeddb.md in the page after a page that died. */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { CustomerOrderingClient } from '../../src/client.ts'
import { root } from '../../tools/build/ensure-built.ts'
import { Lab, order } from '../support/lab.ts'
import { programsOf } from './support/pages.ts'

interface PageCode {
  settle(client: CustomerOrderingClient): Promise<void>
}

async function pageCode(): Promise<PageCode> {
  const folder = join(root, '.tmp/browsers')
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await mkdir(folder, { recursive: true })
  const [code = ''] = programsOf('docs/guide/stores/indexeddb.md')
  const file = join(folder, 'page.ts')
  await writeFile(file, code)
  return await import(file)
}

test('a reloaded page settles the order that the dead page still holds, and charges it once', async () => {
  const { settle } = await pageCode()
  const lab = new Lab()
  const dead = lab.process({
    fetch: async (input, init) => {
      await lab.sandbox.fetch(input, init)
      return await new Promise(() => {})
    },
  })
  await lab.begin(() => dead.client.orders.create(order('r1')))
  dead.kill()
  // The page's waits use the clock of the lab.
  vi.stubGlobal('setTimeout', lab.runtime.setTimer)
  onTestFinished(() => void vi.unstubAllGlobals())
  const printed = vi.spyOn(console, 'log').mockImplementation(() => {})
  onTestFinished(() => printed.mockRestore())

  await settle(lab.elsewhere())
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'created' })
  expect(printed).toHaveBeenLastCalledWith('r1', 'created')
  lab.sandbox.expectChargedOnce('r1')
})
