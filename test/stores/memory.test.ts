import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { describe, expect, it, vi } from 'vitest'
import { makeRow, SCOPE } from '../../src/stores/contract/rows.ts'
import { Packer } from '../../src/stores/memory/pack.ts'
import { MemoryStore } from '../../src/stores/memory.ts'

const CLOSED = { open: false, state: 'created' } as const

describe('MemoryStore', () => {
  storeContract({ test: { describe, it }, createStore: () => new MemoryStore() })

  const uuid = '3238d733-d540-4db8-b103-5da778d71489'
  it.each([
    ['', 'not JSON', '"', '\\"', '{}', '"a":', '12-3e+4', '\u0001\u0002\u0003', 'a\nb'],
    [JSON.stringify({ slot: `ref:${uuid}`, reference: uuid, again: [uuid, uuid.toUpperCase()] })],
    [JSON.stringify({ 'key1 "quoted"': '"\\', b: { c: '\u0000\n\u0001é✓', d: -1.5e-7 }, e: [true, null] })],
    [
      JSON.stringify({
        a: '00000000-0000-0000-0000-000000000000',
        b: 'ffffffff-ffff-ffff-ffff-ffffffffffff',
      }),
    ],
    [JSON.stringify({ slot: 'ref:invoice-1001', reference: 'invoice-1001', other: '1001-invoice-1001' })],
  ])('the text of a closed row is returned exactly: %j', (...texts) => {
    const packer = new Packer()
    // The second row finds what the first one has left in the tables.
    for (const number of [1, 2]) {
      for (const [at, data] of texts.entries()) {
        const row = makeRow(number, { ...CLOSED, scope: `${at}`, data, createdAt: 5, updatedAt: 3 + number })
        expect(packer.unpack(row.scope, row.id, packer.pack(row) ?? '')).toEqual(row)
      }
    }
  })

  it('old rows, which are packed, are returned, listed and replaced as they were', async () => {
    const store = new MemoryStore()
    const rows = Array.from({ length: 6_000 }, (_, at) => makeRow(at, CLOSED))
    for (const row of rows) await store.insert(row)
    for (const row of [rows[0], rows[500], rows[5_999]]) {
      if (row === undefined) throw new Error('no row')
      expect(await store.get(SCOPE, row.id)).toEqual(row)
      const next = { ...row, version: row.version + 1 }
      expect(await store.update(next, row.version)).toBe(true)
      expect(await store.get(SCOPE, row.id)).toEqual(next)
    }
    const { rows: listed } = await store.list(SCOPE, { limit: 10_000 })
    expect(listed).toHaveLength(6_000)
  })

  it('rows of more shapes than the store keeps in its tables are returned exactly', () => {
    const packer = new Packer()
    const rows = Array.from({ length: 1_200 }, (_, at) =>
      makeRow(at, { ...CLOSED, data: JSON.stringify({ [`${'k'.repeat(at % 40)}${at}x`]: `value ${at}` }) }),
    )
    const packed = rows.map((row) => packer.pack(row) ?? '')
    for (const [at, row] of rows.entries())
      expect(packer.unpack(SCOPE, row.id, packed[at] ?? '')).toEqual(row)
  })

  it('a settled order takes at most 400 bytes', async () => {
    const script = fileURLToPath(new URL('processes/memory.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', script])
    expect(Number(stdout)).toBeGreaterThan(100)
    expect(Number(stdout)).toBeLessThan(400)
  })

  it('the store warns once when it remembers 100,000 orders', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const store = new MemoryStore()
    for (let number = 1; number <= 100_002; number++) {
      expect(warn).toHaveBeenCalledTimes(number > 100_000 ? 1 : 0)
      await store.insert(makeRow(number, CLOSED))
    }
    expect(warn.mock.calls[0]?.[0]).toMatch(/^MemoryStore remembers 100000 orders, and forgets all of them/)
    warn.mockRestore()
  })
})
