import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ownContenders } from '../../bench/contenders.ts'
import { placers } from '../../bench/create.ts'
import { ownerOf } from '../../bench/owners.ts'
import { ITEM_ID, type Service, startService } from '../../bench/service.ts'

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

describe('a profile of the build', () => {
  it.each([
    ['Journal = class', { name: 'this package', file: 'src/orders/journal.ts' }],
    ['Retry-After', { name: 'ky' }],
  ])('a profile of the build names the owner of %s', (text, owner) => {
    expect(ownerOfText(text)).toMatchObject(owner)
  })
})
