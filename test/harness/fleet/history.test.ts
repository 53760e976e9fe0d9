import { expect, it } from 'vitest'
import { runLogOf } from './history.ts'

it('a call of the fleet begins when its client has read the clock, even if writing the log takes long', () => {
  const wall = 1_700_000_000_000
  const log = runLogOf({
    references: ['r1', 'r2'],
    lives: [
      {
        name: 'process-1',
        events: [
          { event: 'began', call: 'slow', kind: 'create', reference: 'r1', at: 10, wall },
          { event: 'called', call: 'slow', at: 95, wall },
          {
            event: 'told',
            call: 'slow',
            told: { charged: 'unknown', code: 'timeout' },
            waiting: false,
            at: 120,
            wall,
          },
          { event: 'began', call: 'killed', kind: 'create', reference: 'r2', at: 130, wall },
        ],
        endedAt: 140,
        killed: true,
        stops: [],
        limits: { timeout: 100, totalTimeout: 1000, maxRetries: 0, safeRetryWindow: 1100 },
      },
    ],
    arrivals: [],
    readings: [],
    ledger: [],
    rows: [],
  })
  expect(log.calls).toMatchObject([
    { intent: 'r1', time: 95, endedTime: 120 },
    { intent: 'r2', time: 130, died: true },
  ])
})
