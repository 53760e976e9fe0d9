/**
 * Orders per second with each store, 1, 16 and 64 at a time, and the time of an order as a ratio to
 * two bare writes of the same engine. The service is the sandbox in the same process, so its time
 * is in every figure. `no store` uses a store that keeps nothing.
 *
 * npm run bench stores            15 rounds npm run bench stores -- 40
 *
 * A round runs one block of each in random order, so that other load affects all of them. Figures
 * are medians over the rounds, with quartiles.
 */

import { CustomerOrderingClient } from '../../../src/client.ts'
import { createSandbox } from '../../../src/sandbox/index.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { positiveInteger, readArguments } from '../../programs/arguments.ts'
import { noStore } from '../no-store.ts'
import { openEngines } from './engines.ts'

const ROUNDS = readArguments(
  {
    usage: `npm run bench stores -- [ROUNDS]
  measures each store in that many rounds (default 15)`,
    positionals: 1,
    options: {},
  },
  ({ positionals: [rounds = '15'] }) => positiveInteger('ROUNDS', rounds),
)
const WARM_UP = 2
const ORDERS = 192
const CONCURRENCY = [1, 16, 64] as const

let number = 0

/** Runs a task once for each order of a block. Returns the milliseconds of each. */
async function block(concurrency: number, task: () => Promise<unknown>): Promise<number> {
  let left = ORDERS
  const worker = async (): Promise<void> => {
    while (left-- > 0) await task()
  }
  const begin = performance.now()
  await Promise.all(Array.from({ length: concurrency }, worker))
  return (performance.now() - begin) / ORDERS
}

/** Creates a new client and service for each block, so that neither grows. */
function placing(store: OrderStore): () => Promise<unknown> {
  const { baseUrl, apiKey, fetch } = createSandbox({ balance: 1e12 })
  const client = new CustomerOrderingClient({
    baseUrl,
    apiKey,
    fetch,
    account: 'bench',
    server: 'bench',
    store,
  })
  return () =>
    client.orders.create({
      serviceId: 'svc_standard',
      target: '@someone',
      quantity: 1,
      metadata: { externalOrderId: `order-${process.pid}-${++number}` },
    })
}

const quartiles = (values: readonly number[]): readonly [low: number, median: number, high: number] => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.round((sorted.length - 1) * share)] ?? Number.NaN
  return [at(0.25), at(0.5), at(0.75)]
}

const engines = await openEngines()
const contenders = CONCURRENCY.flatMap((concurrency) => [
  { name: 'no store', concurrency, kind: 'order', run: () => block(concurrency, placing(noStore)) },
  ...engines.flatMap(({ name, store, bare }) => [
    { name, concurrency, kind: 'order', run: () => block(concurrency, placing(store)) },
    { name, concurrency, kind: 'bare', run: () => block(concurrency, () => bare(`bare-${++number}`)) },
  ]),
])
const times = new Map<string, number[]>()
for (let round = -WARM_UP; round < ROUNDS; round++) {
  for (const { name, concurrency, kind, run } of contenders.toSorted(() => Math.random() - 0.5)) {
    const time = await run()
    const key = `${name} ${concurrency} ${kind}`
    if (round >= 0) times.set(key, [...(times.get(key) ?? []), time])
  }
}
for (const { close } of engines) await close()

const of = (name: string, concurrency: number, kind: string): number[] =>
  times.get(`${name} ${concurrency} ${kind}`) ?? []
console.log(`${ROUNDS} rounds of ${ORDERS} orders; quartiles in brackets\n`)
console.log('| store | at a time | orders/s | two bare writes/s | time as a ratio to these |')
console.log('| --- | --- | --- | --- | --- |')
for (const name of ['no store', ...engines.map((engine) => engine.name)]) {
  for (const concurrency of CONCURRENCY) {
    const orders = of(name, concurrency, 'order')
    const bare = of(name, concurrency, 'bare')
    const [low, median, high] = quartiles(orders.map((time, round) => time / (bare[round] ?? Number.NaN)))
    const perSecond = (all: readonly number[]): string =>
      Math.round(1000 / quartiles(all)[1]).toLocaleString('en')
    const ratio = `${median.toFixed(1)} (${low.toFixed(1)}–${high.toFixed(1)})`
    // A map in memory takes almost no time, so a ratio to it is meaningless.
    const compared = bare.length === 0 || name === 'memory' ? '– | –' : `${perSecond(bare)} | ${ratio}`
    console.log(`| ${name} | ${concurrency} | ${perSecond(orders)} | ${compared} |`)
  }
}
