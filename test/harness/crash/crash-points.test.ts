/**
 * Crashes at every effect of placing an order (each store call, send and receipt), and at every
 * effect of another process's recovery. Also covers effects that fail or whose response is lost.
 *
 * `npm run verify crashes` runs every pair of mishaps on every service, about 340,000 schedules, in
 * a few minutes.
 */
import { afterAll, describe, expect, it } from 'vitest'
import { sample } from '../../support/effort.ts'
import { enumerate, scenarios } from './scenarios.ts'

describe('a crash at every effect of create(), then at every effect of its recovery', () => {
  let schedules = 0
  afterAll(() => {
    console.log(`${schedules} crash schedules`)
  })

  // 73 shares no divisor with the scenarios' repetition, so a short run has some of each.
  const all = sample(scenarios(false), 73)
  for (const naming of new Set(all.map((scenario) => scenario.naming))) {
    it(`no promise breaks for orders named by ${naming.name}`, async () => {
      for (const scenario of all) {
        if (scenario.naming !== naming) continue
        for await (const [schedule, { broken }] of enumerate(scenario, false)) {
          schedules++
          // Assert only on a failure, because assertions are slow here.
          if (broken.length > 0)
            expect.fail(`${scenario.name} ${JSON.stringify(schedule)}\n${broken.join('\n')}`)
        }
      }
    })
  }
})
