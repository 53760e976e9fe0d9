import { describe, expect, it } from 'vitest'
import { effort } from '../../support/effort.ts'
import { describeWith } from '../support/services.ts'
import { type KillRound, killRound } from './kill-round.ts'

/** `npm run verify workers` runs 100 rounds. */
const ROUNDS = effort(2, 6)

describeWith('clients', 'workerd that is killed while its workers place orders', () => {
  describe.each(['d1', 'object'] as const)('with its orders in %s', (store) => {
    it(`an acknowledged order is remembered, and each order is charged once, in at least ${ROUNDS} rounds`, async () => {
      const rounds: KillRound[] = []
      // Rounds that interrupt no order would prove little. A slow machine needs more of them.
      const provesLittle = (): boolean => rounds.every(({ interrupted }) => interrupted === 0)
      for (let seed = 1; seed <= ROUNDS || (provesLittle() && seed <= 5 * ROUNDS); seed++)
        rounds.push(await killRound(store, seed))
      expect(rounds.flatMap(({ broken }) => broken)).toEqual([])
      expect(provesLittle()).toBe(false)
    })

    it('a round detects that the disk was lost', async () => {
      const { broken } = await killRound(store, 3, true)
      expect(broken).toContainEqual(expect.stringContaining('was acknowledged and sent again'))
    })
  })
})
