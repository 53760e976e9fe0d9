/**
 * Time in µs to check a page of 1,000 orders: with this package, and with equivalent schemas of zod
 * and ajv. They alternate in one process, each time with a newly parsed page.
 *
 * npm run bench schemas -- [ROUNDS]
 */
import { Ajv } from 'ajv'
import * as zod from 'zod'
import * as mini from 'zod/mini'
import { orderSchema } from '../../src/schemas/order.ts'
import { positiveInteger, readArguments } from '../programs/arguments.ts'
import { shuffled, spread } from './statistics.ts'

const ROUNDS = readArguments(
  {
    usage: `npm run bench schemas -- [ROUNDS]
  checks a page by each in that many rounds (default 400)`,
    positionals: 1,
    options: {},
  },
  ({ positionals: [rounds = '400'] }) => positiveInteger('ROUNDS', rounds),
)
const WARM_UP = 100
const ROWS = 1_000

const page = JSON.stringify(
  Array.from({ length: ROWS }, (_, index) => ({
    id: `ord_${index}`,
    status: 'pending',
    amount: 250 + index,
    currency: 'EUR',
    serviceId: 'svc_standard',
    target: '@someone',
    quantity: 10,
    createdAt: '2026-01-01T00:00:00.000Z',
    metadata: { externalOrderId: `order-${index}`, channel: 'shop' },
  })),
)

const ofZod = zod.looseObject({
  id: zod.string().refine((text) => text.trim() !== ''),
  status: zod.string(),
  amount: zod.number().refine((value) => Number.isSafeInteger(value)),
})
const compiledByAjv = new Ajv().compile({
  type: 'array',
  items: {
    type: 'object',
    required: ['id', 'status', 'amount'],
    properties: {
      id: { type: 'string', pattern: '\\S' },
      status: { type: 'string' },
      amount: { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
    },
  },
})
const pageOfZod = zod.array(ofZod)
const pageOfMini = mini.array(orderSchema.schema())

/** Ways to check the rows of a page. Each returns true if all rows are valid. */
const ways: Readonly<Record<string, (rows: readonly unknown[]) => boolean>> = {
  'this package: compared field by field': (rows) => rows.every(orderSchema.fits),
  'zod/mini, which this package uses for invalid rows': (rows) => pageOfMini.safeParse(rows).success,
  'zod, code generated': (rows) => pageOfZod.safeParse(rows).success,
  'zod, no code generated': (rows) => pageOfZod.safeParse(rows, { jitless: true }).success,
  'ajv, code generated': (rows) => compiledByAjv(rows),
}

const PARSE = 'JSON.parse of the page, for comparison'
const times = new Map<string, number[]>([PARSE, ...Object.keys(ways)].map((name) => [name, []]))

function timed<T>(name: string, round: number, work: () => T): T {
  const startedAt = performance.now()
  const result = work()
  if (round >= 0) times.get(name)?.push((performance.now() - startedAt) * 1_000)
  return result
}

for (let round = -WARM_UP; round < ROUNDS; round++) {
  for (const [name, areAllRight] of shuffled(Object.entries(ways))) {
    const rows: readonly unknown[] = timed(PARSE, round, () => JSON.parse(page))
    if (!timed(name, round, () => areAllRight(rows))) throw new Error(`${name}: a row is invalid`)
  }
}
for (const [name, measured] of times) {
  const { median, low, high } = spread(measured)
  const [middle, from, to] = [median, low, high].map((time) => time.toFixed(0))
  process.stdout.write(`${name.padEnd(62)}${middle?.padStart(6)} µs (${from}–${to})\n`)
}
