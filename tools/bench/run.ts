/**
 * Compares this package with `fetch`, ky and clients of other services, and writes
 * docs/performance.md:
 *
 * npm run bench clients
 *
 * A run with fewer rounds or items is a quick run, and writes its page to .tmp.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isBuilt } from '../build/ensure-built.ts'
import { positiveInteger, readArguments } from '../programs/arguments.ts'
import { measureCreate } from './create.ts'
import { measureFootprint, measurePacked } from './footprint.ts'
import { machine, versions } from './machine.ts'
import { measureOverhead } from './overhead.ts'
import { measurePaging } from './paging.ts'
import { measureFirstAnswer, measureImports, measureMemory } from './processes.ts'
import { measureProfiles } from './profiles.ts'
import { chart, FULL, isFull, type Measured, page } from './report.ts'
import { measureSizes } from './sizes.ts'

const { rounds, items } = readArguments(
  {
    usage: `npm run bench clients
  measures everything, ${FULL.rounds} rounds and lists of ${FULL.items.toLocaleString('en')} orders; writes docs/performance.md and its chart
npm run bench clients -- [--rounds N] [--items N]
  with other numbers a quick look: writes to .tmp, without verdicts`,
    options: {
      rounds: { type: 'string', default: String(FULL.rounds) },
      items: { type: 'string', default: String(FULL.items) },
    },
  },
  ({ values }) => ({
    rounds: positiveInteger('--rounds', values.rounds),
    items: positiveInteger('--items', values.items),
  }),
)
if (!isBuilt()) throw new Error('The build is missing or older than the source: npm run build')
if (!existsSync(new URL('../packages/node_modules', import.meta.url)))
  throw new Error('The other clients are missing: npx node tools/programs/install.ts tools/packages')

const loads: number[] = []
const noteLoad = (): void => void loads.push((loadavg()[0] ?? 0) / availableParallelism())

async function measured<T>(what: string, measure: () => T | Promise<T>): Promise<T> {
  noteLoad()
  process.stderr.write(`measuring ${what}\n`)
  return await measure()
}

const packed = measurePacked()
const figures = {
  overhead: await measured('requests', () => measureOverhead(rounds)),
  create: await measured('orders', () => measureCreate(rounds)),
  paging: await measured('lists', () => measurePaging(Math.ceil(rounds / 12))),
  imports: await measured('imports', () => measureImports(Math.ceil(rounds / 5))),
  firstAnswer: await measured('the first answer', () => measureFirstAnswer(Math.ceil(rounds / 5))),
  memory: await measured('memory', () => measureMemory(items, Math.min(3, rounds))),
  profiles: await measured('profiles', measureProfiles),
  sizes: await measured('sizes', measureSizes),
  packed,
  footprint: measureFootprint(packed),
}
noteLoad()

const all: Measured = {
  ...figures,
  rounds,
  items,
  machine: machine(),
  versions: versions(),
  explained: readFileSync(new URL('explained.md', import.meta.url), 'utf8'),
  load: loads.reduce((sum, value) => sum + value, 0) / loads.length,
}
const folder = fileURLToPath(new URL(isFull(all) ? '../../docs/' : '../../.tmp/', import.meta.url))
mkdirSync(folder, { recursive: true })
const written = join(folder, 'performance.md')
writeFileSync(written, page(all))
writeFileSync(join(folder, 'performance.svg'), chart(all.overhead))
process.stdout.write(`written: ${written}\n`)
// Exit explicitly: open connections of undici and other clients would keep the process running.
process.exit()
