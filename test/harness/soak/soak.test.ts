/** The short form of `npm run verify soak`, and clients that leak on purpose. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { FULL } from '../../support/effort.ts'
import { grown, type Look } from './flat.ts'
import { soak } from './sockets.ts'
import { liveThrough } from './virtual.ts'

const RECONCILE = fileURLToPath(new URL('./reconcile.ts', import.meta.url))
const PROGRAM = fileURLToPath(new URL('./run.ts', import.meta.url))

if (FULL)
  describe('a client that lives long', () => {
    it('a client that lives long keeps nothing, in virtual time and over sockets', async () => {
      // The first third does not count, and growth needs two samples. The error of a failed run
      // contains its samples.
      const ended = promisify(execFile)(process.execPath, [PROGRAM, '6', '0.01'])
      const { stdout } = await ended.catch((error: { readonly stdout: string }) => error)
      expect(stdout).toMatch(/nothing grew\s*$/)
    })
  })

if (FULL)
  describe('a large store', () => {
    it.each([[100_000, 96]])('reconcile() of %i records runs in a heap of %i MB', async (...amounts) => {
      const { stdout } = await promisify(execFile)(process.execPath, [RECONCILE, ...amounts.map(String)])
      expect(stdout).toMatch(/passed\s*$/)
    })
  })

if (FULL)
  describe('a client that leaks on purpose', () => {
    it('a leak of 2 KB per order is detected in virtual time', async () => {
      expect(grown(await liveThrough(3, 1, 'orders'))).toContainEqual(expect.stringMatching(/^bytes .* by 2/))
    })

    it.each(['prunes', 'clients'] as const)('a leak is detected in virtual time: %s', async (leak) => {
      expect(grown(await liveThrough(3, 1, leak))).toContainEqual(expect.stringMatching(/^objects/))
    })

    it('a leak of 2 KB per order is detected over sockets', async () => {
      expect(grown(await soak(0, 5, 'orders'))).toContainEqual(expect.stringMatching(/^bytes .* by 2/))
    })

    it('clients that were closed and kept are detected over sockets', async () => {
      expect(grown(await soak(0, 3, 'clients'))).toContainEqual(expect.stringMatching(/^objects/))
    })
  })

describe('growth', () => {
  const flat: Look = {
    orders: 0,
    bytes: 2e7,
    objects: 20_000,
    listeners: 0,
    rows: 10,
    resources: { Timeout: 1 },
  }
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
