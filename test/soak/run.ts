/** The soak as a program; `--help` tells how it is called. */
import { decimal, positiveInteger, readArguments } from '../../scripts/arguments.ts'
import { grown } from './flat.ts'
import { soak } from './sockets.ts'
import { liveThrough } from './virtual.ts'

const { hours, minutes } = readArguments(
  {
    usage: `npx node --expose-gc test/soak/run.ts [HOURS] [MINUTES]
  lives through hours of virtual time (default 168), and then minutes over sockets (default 30; 0: none)`,
    positionals: 2,
    options: {},
  },
  ({ positionals: [hours = '168', minutes = '30'] }) => ({
    hours: positiveInteger('HOURS', hours),
    minutes: decimal('MINUTES', minutes),
  }),
)
const { gc } = globalThis
if (gc === undefined) throw new Error('start it with --expose-gc')
const collect = (): number => {
  gc()
  return process.memoryUsage().heapUsed
}
const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MB`

const virtual = await liveThrough(hours, 1, collect)
for (const { hours, timers, listeners, rows, heap } of virtual)
  console.log(`${hours} h: ${timers} timers, ${listeners} listeners, ${rows} rows, ${megabytes(heap)}`)
const collectAll = async (): Promise<void> => {
  // What finalizers let go of goes in the next round.
  for (let round = 0; round < 3; round++) {
    gc()
    await new Promise((resolve) => setImmediate(resolve))
  }
}
const real = minutes === 0 ? [] : await soak(minutes * 60_000, collectAll)
for (const { orders, listeners, resources, heap } of real)
  console.log(`${orders} orders: ${listeners} listeners, ${JSON.stringify(resources)}, ${megabytes(heap)}`)
const found = [...grown(virtual), ...(minutes === 0 ? [] : grown(real))]
console.log(
  `${hours} h of virtual time, ${minutes} min over sockets with ${real.at(-1)?.orders ?? 0} orders: ` +
    (found.length === 0 ? 'nothing grew' : found.join(', ')),
)
process.exitCode = found.length === 0 ? 0 : 1
