import { describe, expect, it } from 'vitest'
import { afterMicrotasks, nextLoop, VirtualTime } from '../../support/virtual-time.ts'

describe.each([
  ['the event loop', nextLoop],
  ['microtasks', afterMicrotasks],
])('virtual time, with turns of %s', (_, turn) => {
  const never = new Promise<void>(() => {})

  it('virtual time ends a run in which everyone waits endlessly', async () => {
    await expect(new VirtualTime(turn).run(never)).rejects.toMatchObject({ name: 'Deadlock' })
  })

  it('virtual time ends an endless run', async () => {
    const time = new VirtualTime(turn, 10_000)
    const again = (): void => void time.setTimer(time, again, 0)
    again()
    await expect(time.run(never)).rejects.toMatchObject({ name: 'Livelock' })
  })

  it('virtual time passes only after everything that can happen earlier', async () => {
    const time = new VirtualTime(turn)
    const begin = time.now
    const times: number[] = []
    const act = async (): Promise<void> => {
      for (const wait of [1000, 1, 0]) {
        await time.sleep(time, wait)
        for (let step = 0; step < 500; step++) await Promise.resolve()
        times.push(time.now - begin)
      }
    }
    time.setTimer(time, () => times.push(-1), 1001)
    await time.run(act())
    expect(times).toEqual([1000, -1, 1001, 1001])
  })
})
