import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeWith as describeWithPostgres, HOOK_TIMEOUT } from '../stores/support/postgres.ts'
import { describeWith as describeWithRedis } from '../stores/support/redis.ts'
import type { StoreName } from './open-store.ts'
import { fleetRound, type Round, summaryOf } from './rounds.ts'
import { type SharedStore, startSharedStore } from './shared-store.ts'

/** Twenty in CI; `FLEET_ROUNDS=500` for more. `FLEET_SEED` repeats one that failed. */
const ROUNDS = Number(process.env['FLEET_ROUNDS'] ?? 20)
const FIRST_SEED = Number(process.env['FLEET_SEED'] ?? 1)

function rounds(name: StoreName): void {
  let shared: SharedStore | undefined
  beforeAll(async () => {
    shared = await startSharedStore(name)
  }, HOOK_TIMEOUT)
  afterAll(() => shared?.stop(), HOOK_TIMEOUT)

  it(
    `charges each of the 200 orders exactly once and tells nobody anything else, in ${ROUNDS} rounds`,
    async () => {
      if (shared === undefined) throw new Error('not started')
      const done: Round[] = []
      for (let seed = FIRST_SEED; seed < FIRST_SEED + ROUNDS; seed++) {
        const round = await fleetRound(shared, seed)
        done.push(round)
        if (round.violations.length > 0) expect.fail([summaryOf(round), ...round.violations].join('\n'))
      }
      const sum = (of: (round: Round) => number): number =>
        done.reduce((total, round) => total + of(round), 0)
      console.log(
        `${name}: ${done.length} rounds, ${sum(({ kills }) => kills)} processes killed, ` +
          `${sum(({ stops }) => stops)} stopped, ${sum(({ crashes }) => crashes)} ends of the server`,
      )
      // Rounds in which nobody was killed, stopped or told a refusal in the middle of work would prove nothing.
      expect(sum(({ kills }) => kills)).toBeGreaterThan(ROUNDS)
      expect(sum(({ stops }) => stops)).toBeGreaterThan(ROUNDS)
      expect(sum(({ told }) => told.unknown)).toBeGreaterThan(ROUNDS)
      expect(sum(({ told }) => told.no)).toBeGreaterThan(ROUNDS / 2)
      if (name !== 'sqlite') expect(sum(({ crashes }) => crashes)).toBe(ROUNDS)
    },
    ROUNDS * 150_000,
  )
}

describe('a fleet that shares a SqliteStore, with processes killed and stopped', () => {
  rounds('sqlite')
})

describeWithPostgres(
  'server',
  'a fleet that shares a PostgresStore, with processes killed and stopped',
  () => {
    rounds('postgres')
  },
)

describeWithRedis('server', 'a fleet that shares a RedisStore, with processes killed and stopped', () => {
  rounds('redis')
})
