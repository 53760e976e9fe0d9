import { describe, expect, it, vi } from 'vitest'
import { FULL, isFull, type Measured, page } from '../../../tools/bench/report.ts'

// The module throws if undici is loaded first, because that would distort measurements. This test measures nothing.
vi.mock('../../../tools/bench/platform-fetch.ts', () => ({}))

const nothing: Measured = {
  rounds: FULL.rounds,
  items: FULL.items,
  machine: 'a machine',
  versions: new Map(),
  overhead: new Map(),
  create: new Map(),
  paging: { ours: new Map(), peers: new Map() },
  imports: new Map(),
  firstAnswer: new Map(),
  memory: { peak: new Map(), seconds: new Map() },
  profiles: new Map(),
  sizes: new Map(),
  footprint: new Map(),
  packed: { packed: 0, unpacked: 0, files: 0 },
  explained: 'Figures of another run.',
  load: 0,
}

describe('the performance page', () => {
  it.each([{ rounds: 2 }, { items: 20_000 }])('gives no verdicts for a quick look of %j', (less) => {
    const quick = { ...nothing, ...less }
    expect(isFull(quick)).toBe(false)
    expect(page(quick)).toContain('# Performance, a quick look')
    expect(page(quick)).not.toMatch(/Goals that we|Figures of another run/)
  })

  it('gives verdicts for a full run, and fails if a figure is missing', () => {
    expect(isFull(nothing)).toBe(true)
    expect(() => page(nothing)).toThrow('was not measured')
  })
})
