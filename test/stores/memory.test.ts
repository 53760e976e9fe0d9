import { fileURLToPath } from 'node:url'
import { storeContract } from 'customer-ordering-sdk/stores/contract'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { makeRow, SCOPE } from '../../src/stores/contract/rows.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import { FULL } from '../support/effort.ts'
import { run } from '../support/run.ts'

const CLOSED = { open: false, state: 'created' } as const

describe('MemoryStore', () => {
  storeContract({ test: { describe, it }, createStore: () => new MemoryStore() })

  const uuid = '3238d733-d540-4db8-b103-5da778d71489'
  const texts = [
    ['', 'not JSON', '"', '\\"', '{}', '"a":', '12-3e+4', '!', ' ', '! "! " "#'],
    ['\u0001\u0002\u0003', 'a\nb'],
    [JSON.stringify({ slot: `ref:${uuid}`, reference: uuid, again: [uuid, uuid.toUpperCase()] })],
    [JSON.stringify({ 'key1 "quoted"': '"\\', b: { c: '\u0000\n\u0001é✓😀', d: -1.5e-7 }, e: [true, null] })],
    [JSON.stringify({ slot: 'ref:invoice-1001', reference: 'invoice-1001', other: '1001-invoice-1001' })],
    [JSON.stringify({ slot: `ref:${'x'.repeat(300)}`, reference: 'x'.repeat(300), short: 'xxx' })],
    // Too many parts to number.
    [JSON.stringify(Array.from({ length: 150 }, (_, at) => `part ${at}`))],
    // As many parts, with values of other texts at the same place.
    [JSON.stringify({ a: '#', b: '!', c: ' %$#' }), JSON.stringify({ a: '!', b: ' #$%', c: '#' })],
  ].flat()
  it.each(texts)('the text of a closed row is returned exactly: %j', async (data) => {
    const store = new MemoryStore()
    // The store compares each row with the first one of its kind.
    const rows = ['', data, data.replaceAll('3', '4'), data].map((text, at) =>
      makeRow(at, { ...CLOSED, data: text, createdAt: 5.5, updatedAt: 3 + at }),
    )
    for (const row of rows) await store.insert(row)
    expect((await store.list(SCOPE, { limit: 10 })).rows).toEqual(rows)
  })

  it('any rows are returned exactly', async () => {
    const text = fc.oneof(
      fc.json(),
      fc.string({ unit: fc.constantFrom('"', '!', ' ', '#', 'part', '\u{1f600}') }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 8 }), async (all) => {
        const store = new MemoryStore()
        const rows = all.map((data, at) => makeRow(at, { ...CLOSED, data }))
        for (const row of rows) await store.insert(row)
        expect((await store.list(SCOPE, { limit: 10 })).rows).toEqual(rows)
      }),
      { numRuns: 500 },
    )
  })

  it('closed rows are replaced and reopened as they were', async () => {
    const store = new MemoryStore()
    const rows = Array.from({ length: 50 }, (_, at) => makeRow(at, CLOSED))
    for (const row of rows) await store.insert(row)
    for (const row of [rows[0], rows[20], rows[49]]) {
      if (row === undefined) throw new Error('no row')
      expect(await store.get(SCOPE, row.id)).toEqual(row)
      const next = { ...row, version: row.version + 1, open: row === rows[20] }
      expect(await store.update(next, row.version)).toBe(true)
      expect(await store.get(SCOPE, row.id)).toEqual(next)
    }
    expect((await store.list(SCOPE, { limit: 100 })).rows).toHaveLength(50)
  })

  if (FULL)
    it('a settled order takes at most 400 bytes', async () => {
      const script = fileURLToPath(new URL('processes/memory.ts', import.meta.url))
      const { stdout } = await run(process.execPath, ['--expose-gc', script])
      expect(Number(stdout)).toBeGreaterThan(100)
      expect(Number(stdout)).toBeLessThan(400)
    })

  if (FULL)
    it('the store warns once when it remembers 100,000 orders', async () => {
      const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
      const store = new MemoryStore()
      const insert = (number: number) => store.insert(makeRow(number, CLOSED))
      for (let number = 1; number < 100_000; number++) await insert(number)
      expect(warn).not.toHaveBeenCalled()
      for (let number = 100_000; number <= 100_002; number++) await insert(number)
      expect(warn).toHaveBeenCalledOnce()
      expect(warn.mock.calls[0]?.[0]).toMatch(/^MemoryStore remembers 100000 orders, and forgets all of them/)
      warn.mockRestore()
    })
})
