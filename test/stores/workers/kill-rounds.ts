/** Kills workerd repeatedly while its workers place orders. `--help` prints the usage. */
import { oneOf, positiveInteger, readArguments } from '../../../tools/programs/arguments.ts'
import { killRound } from './kill-round.ts'

const STORES = ['d1', 'object'] as const

const { which, rounds, first } = readArguments(
  {
    usage: `npx node test/stores/workers/kill-rounds.ts [STORE|all] [ROUNDS] [FIRST_SEED]
  kills workerd that often (default 100) while its workers place orders in ${STORES.join(' or ')}, or in each (default),
  from that seed on (default 1)`,
    positionals: 3,
    options: {},
  },
  ({ positionals: [which = 'all', rounds = '100', first = '1'] }) => ({
    which: oneOf('STORE', which, [...STORES, 'all']),
    rounds: positiveInteger('ROUNDS', rounds),
    first: positiveInteger('FIRST_SEED', first),
  }),
)

let failed = 0
for (const store of STORES.filter((name) => which === 'all' || which === name)) {
  const sum = { acknowledged: 0, interrupted: 0, charges: 0, orders: 0 }
  for (let seed = first; seed < first + rounds; seed++) {
    const { broken, acknowledged, interrupted, charges } = await killRound(store, seed)
    sum.acknowledged += acknowledged
    sum.interrupted += interrupted
    sum.charges += charges
    sum.orders += acknowledged + interrupted
    for (const violation of broken) console.log(`${store}, seed ${seed}: ${violation}`)
    if (broken.length > 0) failed++
  }
  console.log(
    `${store}: ${rounds} kills, ${sum.acknowledged} orders acknowledged before and ${sum.interrupted} interrupted, ` +
      `${sum.charges} charges for ${sum.orders} orders`,
  )
}
console.log(`${failed} rounds with a broken promise`)
process.exitCode = failed === 0 ? 0 : 1
