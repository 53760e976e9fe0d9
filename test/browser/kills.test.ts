import { expect, it } from 'vitest'
import { Cycles, ENDS } from './kill-cycles.ts'
import { describeWithChromium } from './support/needs-chromium.ts'

/** `npm run verify browser` runs 500 cycles, or those from a given seed. */
const CYCLES = 20
const FIRST_SEED = 1

describeWithChromium('A page that ends while it places orders', () => {
  it(
    `every order is charged once at most, none is lost, and no charged one is reported as 'no', in ${CYCLES} cycles from seed ${FIRST_SEED}`,
    async () => {
      const broken: string[] = []
      const ends = { tab: 0, renderer: 0, browser: 0 }
      let charges = 0
      const cycles = await Cycles.start()
      try {
        for (let seed = FIRST_SEED; seed < FIRST_SEED + CYCLES; seed++) {
          const cycle = await cycles.run(seed)
          ends[cycle.end] += cycle.ends
          charges += cycle.charges
          broken.push(...cycle.violations.map((text) => `seed ${seed}: ${text}`))
        }
      } finally {
        await cycles.stop()
      }
      console.log(`${CYCLES} cycles from seed ${FIRST_SEED}: ${JSON.stringify(ends)}, ${charges} charges`)
      expect(broken).toEqual([])
      // Cycles without a kill in the middle of an order would prove nothing.
      for (const end of ENDS) expect(ends[end], end).toBeGreaterThanOrEqual(Math.floor(CYCLES / 4))
      expect(charges).toBeGreaterThan(CYCLES)
    },
    120_000 + CYCLES * 30_000,
  )

  it('the harness detects a store that forgets', async () => {
    const cycles = await Cycles.start()
    try {
      for (const [index, end] of ENDS.entries()) {
        const { violations } = await cycles.run(ENDS.length * FIRST_SEED + index, { forgetful: true })
        expect(violations.join('; '), end).toMatch(/was acknowledged, and there is none/)
      }
    } finally {
      await cycles.stop()
    }
  })
})
