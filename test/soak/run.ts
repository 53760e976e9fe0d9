/**
 * The soak as a program: `npx node --expose-gc test/soak/run.ts [HOURS OF VIRTUAL TIME] [MINUTES OF REAL TIME]`.
 */
import { grown } from './flat.ts'
import { soak } from './sockets.ts'
import { liveThrough } from './virtual.ts'

const [hours = 24 * 7, minutes = 30] = process.argv.slice(2).map(Number)
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
const real = await soak(minutes * 60_000, async () => {
  // What finalizers let go of goes in the next round.
  for (let round = 0; round < 3; round++) {
    gc()
    await new Promise((resolve) => setImmediate(resolve))
  }
})
for (const { orders, listeners, resources, heap } of real)
  console.log(`${orders} orders: ${listeners} listeners, ${JSON.stringify(resources)}, ${megabytes(heap)}`)
const found = [...grown(virtual), ...grown(real)]
console.log(
  `${hours} h of virtual time, ${minutes} min over sockets with ${real.at(-1)?.orders} orders: ` +
    (found.length === 0 ? 'nothing grew' : found.join(', ')),
)
process.exitCode = found.length === 0 ? 0 : 1
