/** The short form of `npm run verify soak`, and clients that leak on purpose. */
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { FULL } from '../../support/effort.ts'
import { run } from '../../support/run.ts'
import { grown, type Look } from './flat.ts'
import { soak } from './soak.ts'

const RECONCILE = fileURLToPath(new URL('./reconcile.ts', import.meta.url))
const PROGRAM = fileURLToPath(new URL('./run.ts', import.meta.url))

if (FULL)
  describe('a client that lives long', () => {
    it('a client that lives long keeps nothing', async () => {
      // The first third does not count, and growth needs two samples. The error of a failed run
      // contains its samples.
      const ended = run(process.execPath, [PROGRAM, '0.01'])
      const { stdout } = await ended.catch((error: { readonly stdout: string }) => error)
      expect(stdout).toMatch(/nothing grew\s*$/)
    })

    it.each([[100_000, 96]])('reconcile() of %i records runs in a heap of %i MB', async (...amounts) => {
      const { stdout } = await run(process.execPath, [RECONCILE, ...amounts.map(String)])
      expect(stdout).toMatch(/passed\s*$/)
    })

    it.each([
      ['2 KB per order', 'orders', 5, /^bytes .* by 2/],
      ['clients that were closed and kept', 'clients', 3, /^objects/],
    ] as const)('a leak is detected: %s', async (_what, leak, samples, grows) => {
      expect(grown(await soak(0, samples, leak))).toContainEqual(expect.stringMatching(grows))
    })
  })

describe('growth', () => {
  const held = { objects: 20_000, listeners: 0, rows: 10, resources: { Timeout: 1 } }
  const flat: Look = { orders: 0, bytes: 2e7, ...held }
  const looks = (change: (number: number) => Partial<Look>): Look[] =>
    Array.from({ length: 9 }, (_, number) => ({ ...flat, orders: number * 64, ...change(number) }))

  it('growth is an increase from sample to sample', () => {
    expect(grown(looks(() => ({})))).toEqual([])
    for (const change of [
      (number: number) => ({ bytes: flat.bytes + number * 64 * 2048 }),
      (number: number) => ({ objects: flat.objects + number * 50 }),
      (number: number) => ({ listeners: number }),
      (number: number) => ({ rows: number * 8 }),
      (number: number) => ({ resources: { Timeout: number } }),
    ])
      expect(grown(looks(change)), String(change)).toHaveLength(1)
  })

  it('initial memory and temporary memory are not growth', () => {
    expect(grown(looks((number) => ({ bytes: flat.bytes + Math.min(number, 3) * 1e6 })))).toEqual([])
    expect(grown(looks((number) => ({ bytes: flat.bytes + (number % 2) * 1e6 })))).toEqual([])
    expect(grown(looks((number) => (number === 8 ? { objects: 30_000, bytes: 3e7 } : {})))).toEqual([])
  })

  it('one sample does not show growth', () => {
    expect(grown([])).toHaveLength(1)
    expect(grown([flat])).toHaveLength(1)
  })
})
