/** Runs the soak as a program. `--help` prints the usage. */
import { decimal, readArguments, UsageError, wholeNumber } from '../../../tools/programs/arguments.ts'
import { grown, type Look } from './flat.ts'
import { soak } from './sockets.ts'
import { liveThrough } from './virtual.ts'

/**
 * Open sockets change the count by about 200 objects per sample: with few samples, chance would
 * look like a slope.
 */
const LOOKS_OVER_SOCKETS = 27

const { hours, minutes } = readArguments(
  {
    usage: `npx node test/harness/soak/run.ts [HOURS] [MINUTES]
  lives through hours of work in virtual time (default 168; 0: none), and then minutes over sockets (default 30; 0: none)`,
    positionals: 2,
    options: {},
  },
  ({ positionals: [hours = '168', minutes = '30'] }) => {
    const read = {
      hours: wholeNumber('HOURS', hours),
      minutes: decimal('MINUTES', minutes),
    }
    if (read.hours === 0 && read.minutes === 0) throw new UsageError('HOURS and MINUTES are not both 0.')
    return read
  },
)

function print({ orders, bytes, objects, listeners, rows, resources }: Look): void {
  const memory = `${(bytes / 2 ** 20).toFixed(2)} MB in ${objects} objects`
  console.log(
    `${orders} orders: ${listeners} listeners, ${rows} rows, ${JSON.stringify(resources)}, ${memory}`,
  )
}

const virtual = hours === 0 ? [] : await liveThrough(hours, 1)
virtual.forEach(print)
const real = minutes === 0 ? [] : await soak(minutes * 60_000, LOOKS_OVER_SOCKETS)
real.forEach(print)
const found = [virtual, real].filter(({ length }) => length > 0).flatMap(grown)
const ordersOf = (looks: readonly Look[]): number => looks.at(-1)?.orders ?? 0
console.log(
  `${hours} h of work in virtual time with ${ordersOf(virtual)} orders, ${minutes} min over sockets with ${ordersOf(real)}: ` +
    (found.length === 0 ? 'nothing grew' : found.join(', ')),
)
process.exitCode = found.length === 0 ? 0 : 1
