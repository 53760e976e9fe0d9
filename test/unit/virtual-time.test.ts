import { describe, expect, it } from 'vitest'
import { VirtualTime } from '../support/virtual-time.ts'

describe('virtual time', () => {
  it('ends a run in which everybody waits for ever, and one that goes on for ever', async () => {
    const never = new Promise<void>(() => {})
    await expect(new VirtualTime().run(never)).rejects.toMatchObject({ name: 'Deadlock' })
    const time = new VirtualTime()
    const again = (): void => void time.setTimer(time, again, 0)
    again()
    await expect(time.run(never)).rejects.toMatchObject({ name: 'Livelock' })
  })
})
