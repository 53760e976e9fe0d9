import { describe, expect, it, vi } from 'vitest'
import { FULL, isFull, type Measured, page } from '../../../bench/report.ts'

// It refuses to be loaded after undici, which would spoil measurements; nothing is measured here.
vi.mock('../../../bench/platform-fetch.ts', () => ({}))

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
  explained: 'Figures of another run.',
  load: 0,
}

describe('the page of performance', () => {
  it.each([{ rounds: 2 }, { items: 20_000 }])('a quick run gives no verdict: %j', (less) => {
    const quick = { ...nothing, ...less }
    expect(isFull(quick)).toBe(false)
    expect(page(quick)).toContain('# Performance, a quick look')
    expect(page(quick)).not.toMatch(/\bmet\b|not met|Figures of another run/)
  })

  it('a full run requires every figure', () => {
    expect(isFull(nothing)).toBe(true)
    expect(() => page(nothing)).toThrow('was not measured')
  })
})
