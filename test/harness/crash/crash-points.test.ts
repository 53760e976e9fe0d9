/**
 * Crashes at every effect that placing an order has on the world (each call of the store, the send and the receipt), and
 * at every effect of what another process then does about it. Effects that fail, or whose answer is lost, as well.
 *
 * `npm run verify crashes` runs every pair of mishaps on every service, about 340,000 schedules, in a few minutes.
 */
import { afterAll, describe, expect, it } from 'vitest'
import { sample } from '../../support/effort.ts'
import { enumerate, scenarios } from './scenarios.ts'

describe('a crash at every effect of create(), then at every effect of its recovery', () => {
  let schedules = 0
  afterAll(() => {
    console.log(`${schedules} crash schedules`)
  })

  // 37 is no multiple of what scenarios repeat by, so that a short run has some of each.
  const all = sample(scenarios(false), 37)
  for (const naming of new Set(all.map((scenario) => scenario.naming))) {
    it(`no promise breaks for orders named by ${naming.name}`, async () => {
      for (const scenario of all) {
        if (scenario.naming !== naming) continue
        for await (const [schedule, { broken }] of enumerate(scenario, false)) {
          schedules++
          // Only a failure is worth the price of an assertion here.
          if (broken.length > 0)
            expect.fail(`${scenario.name} ${JSON.stringify(schedule)}\n${broken.join('\n')}`)
        }
      }
    })
  }
})
