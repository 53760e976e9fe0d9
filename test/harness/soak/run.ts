/** Runs the soak as a program. `--help` prints the usage. */
import { decimal, oneOf, readArguments, UsageError, wholeNumber } from '../../../tools/programs/arguments.ts'
import { LEAKS } from './clients.ts'
import { grown, type Look } from './flat.ts'
import { soak } from './sockets.ts'
import { liveThrough } from './virtual.ts'

/**
 * Open sockets change the count by about 200 objects per sample: with few samples, chance would
 * look like a slope.
 */
const LOOKS_OVER_SOCKETS = 27

const { hours, minutes, leak } = readArguments(
  {
    usage: `npx node test/harness/soak/run.ts [HOURS] [MINUTES] [--leak WHAT]
  lives through hours of work in virtual time (default 168; 0: none), and then minutes over sockets (default 30; 0: none)
  --leak keeps something for ever, to see that it is noticed; WHAT: ${LEAKS.join('; ')}`,
    positionals: 2,
    options: { leak: { type: 'string' } },
  },
  ({ values, positionals: [hours = '168', minutes = '30'] }) => {
    const read = {
      hours: wholeNumber('HOURS', hours),
      minutes: decimal('MINUTES', minutes),
      leak: values.leak === undefined ? undefined : oneOf('--leak', values.leak, LEAKS),
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

const virtual = hours === 0 ? [] : await liveThrough(hours, 1, leak)
virtual.forEach(print)
const real = minutes === 0 ? [] : await soak(minutes * 60_000, LOOKS_OVER_SOCKETS, leak)
real.forEach(print)
const found = [virtual, real].filter(({ length }) => length > 0).flatMap(grown)
const ordersOf = (looks: readonly Look[]): number => looks.at(-1)?.orders ?? 0
console.log(
  `${hours} h of work in virtual time with ${ordersOf(virtual)} orders, ${minutes} min over sockets with ${ordersOf(real)}: ` +
    (found.length === 0 ? 'nothing grew' : found.join(', ')),
)
process.exitCode = found.length === 0 ? 0 : 1
