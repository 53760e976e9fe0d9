/** Runs the soak as a program. `--help` prints the usage. */
import { decimal, readArguments, UsageError } from '../../../tools/programs/arguments.ts'
import { grown, type Look } from './flat.ts'
import { soak } from './soak.ts'

/**
 * Open sockets change the count by about 200 objects per sample: with few samples, chance would
 * look like a slope.
 */
const LOOKS = 27

const minutes = readArguments(
  {
    usage: `npx node test/harness/soak/run.ts [MINUTES]
  places orders over sockets for that many minutes (default 30)`,
    positionals: 1,
    options: {},
  },
  ({ positionals: [minutes = '30'] }) => {
    const read = decimal('MINUTES', minutes)
    if (read === 0) throw new UsageError('MINUTES is not 0.')
    return read
  },
)

function print({ orders, bytes, objects, listeners, rows, resources }: Look): void {
  const memory = `${(bytes / 2 ** 20).toFixed(2)} MB in ${objects} objects`
  console.log(
    `${orders} orders: ${listeners} listeners, ${rows} rows, ${JSON.stringify(resources)}, ${memory}`,
  )
}

const looks = await soak(minutes * 60_000, LOOKS)
looks.forEach(print)
const found = grown(looks)
console.log(
  `${minutes} min over sockets with ${looks.at(-1)?.orders} orders: ` +
    (found.length === 0 ? 'nothing grew' : found.join(', ')),
)
process.exitCode = found.length === 0 ? 0 : 1
