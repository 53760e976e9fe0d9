import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ownContenders } from '../../tools/bench/contenders.ts'
import { placers } from '../../tools/bench/create.ts'
import { ownerOf } from '../../tools/bench/owners.ts'
import { ITEM_ID, type Service, startService } from '../../tools/bench/service.ts'
import { root } from '../../tools/build/ensure-built.ts'

describe('what the bench measures', () => {
  let service: Service
  beforeAll(async () => {
    service = await startService(0, 100)
  })
  afterAll(() => service.close())

  it('the benchmarked service sends responses that every client accepts', async () => {
    for (const { get, list, post } of ownContenders(service.url)) {
      expect(await get()).toMatchObject({ id: ITEM_ID })
      expect(await post()).toMatchObject({ status: 'delivered' })
      await list()
    }
    for (const place of placers(service.url).values())
      expect(await place()).toMatchObject({ status: 'delivered' })
  })
})

/** The owner of the code with this text in the Node build. */
function ownerOfText(text: string): unknown {
  const folder = new URL('../../dist/node/', import.meta.url)
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.js'))) {
    const lines = readFileSync(new URL(name, folder), 'utf8').split('\n')
    const lineNumber = lines.findIndex((line) => line.includes(text))
    const frame = { functionName: 'f', url: new URL(name, folder).href, lineNumber, columnNumber: 0 }
    if (lineNumber >= 0) return ownerOf(frame, undefined)
  }
  return undefined
}

/** The source file with this text. */
function sourceOf(text: string): string | undefined {
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const found = names.find(
    (name) => name.endsWith('.ts') && readFileSync(join(root, 'src', name), 'utf8').includes(text),
  )
  return found && `src/${found}`
}

describe('a profile of the build', () => {
  it('a profile of the build names the package and the source file that own a line', () => {
    const text = 'old records could not be removed'
    expect(ownerOfText(text)).toMatchObject({ name: 'this package', file: sourceOf(text) })
    expect(ownerOfText('Retry-After')).toMatchObject({ name: 'ky' })
  })
})
