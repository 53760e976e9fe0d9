import { expect, it } from 'vitest'
import { Cycles, ENDS, runCycles } from './kill-cycles.ts'
import { Chromium } from './support/chromium.ts'
import { tearLogs } from './support/leveldb-logs.ts'
import { describeWithChromium } from './support/needs-chromium.ts'
import { serveSite } from './support/site.ts'

/** `npm run verify browser` runs 500 cycles, or those from a given seed. */
const CYCLES = 20
const FIRST_SEED = 1

describeWithChromium('A page that ends while it places orders', () => {
  it(
    `every order is charged once at most, none is lost, and no charged one is reported as 'no', in ${CYCLES} cycles from seed ${FIRST_SEED}`,
    async () => {
      const { ends, charges, broken } = await runCycles(CYCLES, FIRST_SEED)
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

describeWithChromium('Chromium that was killed in the middle of a write', () => {
  /**
   * Writes a row, kills the browser in the middle of the next write, writes another row, and kills
   * the browser again. Resolves to the rows that are left of the acknowledged ones.
   */
  const rowsLeft = async (repairs: boolean): Promise<{ rows: string[]; tornLogs: number }> => {
    const site = await serveSite('store')
    const browser = await Chromium.start()
    const inPage = async <T>(action: (id: string) => Promise<T>, id: string): Promise<T> => {
      const page = await browser.context.newPage()
      await page.goto(site.pageOf('store'))
      const result = await page.evaluate(action, id)
      await page.close()
      return result
    }
    const insert = (id: string) =>
      inPage((row) => new window.IndexedDbStore({ name: 'torn' }).insert(window.makeRow(row)), id)
    try {
      expect(await insert('1')).toEqual({ inserted: true })
      await browser.kill()
      tearLogs(browser.profile)
      await browser.restart({ repairs })
      expect(await insert('2')).toEqual({ inserted: true })
      await browser.kill()
      await browser.restart({ repairs })
      const found = await inPage(
        (limit) => new window.IndexedDbStore({ name: 'torn' }).list('scope', { limit: Number(limit) }),
        '10',
      )
      return { rows: found.rows.map(({ id }) => id), tornLogs: browser.tornLogs }
    } finally {
      await browser.stop()
      await site.close()
    }
  }

  it.each([
    ['Chromium forgets all rows two starts after it was killed', false, [], 0],
    [
      'the harness cuts off the incomplete write, so that every acknowledged row is left',
      true,
      ['1', '2'],
      1,
    ],
  ])(
    '%s',
    async (_title, repairs, rows, tornLogs) => {
      expect(await rowsLeft(repairs)).toEqual({ rows, tornLogs })
    },
    120_000,
  )
})
