/** The short form of `npm run verify:soak`: hours of virtual time, and seconds over sockets. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { grown } from './flat.ts'
import { liveThrough } from './virtual.ts'

const PROGRAM = fileURLToPath(new URL('./run.ts', import.meta.url))

describe('a client that lives long', () => {
  it('leaves no timer, listener or row behind in eight hours of virtual time', async () => {
    const samples = await liveThrough(8, 1)
    expect(grown(samples)).toEqual([])
    expect(samples).toHaveLength(8)
    expect(samples.every(({ timers, listeners }) => timers === 0 && listeners === 0)).toBe(true)
  })

  it('keeps heap, handles and listeners flat, with the garbage collected by force', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', PROGRAM, '8', '0.1'])
    expect(stdout).toMatch(/nothing grew\s*$/)
  })

  it('would be found to grow', () => {
    const flat = { heap: 1e7, listeners: 0, rows: 10, timers: 0, resources: { TCPSocketWrap: 4 } }
    expect(grown([flat, flat])).toEqual([])
    expect(grown([])).toHaveLength(1)
    for (const change of [
      { heap: 2e7 },
      { listeners: 1 },
      { rows: 90 },
      { timers: 1 },
      { resources: { Timeout: 30 } },
    ])
      expect(grown([flat, flat, { ...flat, ...change }]).length, JSON.stringify(change)).toBe(1)
  })
})
