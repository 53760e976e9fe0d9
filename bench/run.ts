/**
 * Measures this package against `fetch`, ky and clients of other services, and writes docs/performance.md:
 *
 *     npm run bench [-- --rounds 120 --items 1000000]
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { isBuilt } from '../scripts/ensure-built.ts'
import { measureCreate } from './create.ts'
import { measureFootprint } from './footprint.ts'
import { machine, versions } from './machine.ts'
import { measureOverhead } from './overhead.ts'
import { measurePaging } from './paging.ts'
import { measureFirstAnswer, measureImports, measureMemory } from './processes.ts'
import { measureProfiles } from './profiles.ts'
import { chart, type Measured, page } from './report.ts'
import { measureSizes } from './sizes.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '120' }, items: { type: 'string', default: '1000000' } },
})
const rounds = Number(values.rounds)
const items = Number(values.items)
if (!(Number.isSafeInteger(rounds) && rounds > 0 && Number.isSafeInteger(items) && items > 0))
  throw new TypeError('--rounds and --items are positive integers')
if (!isBuilt()) throw new Error('The build is missing or older than the source: npm run build')
if (!existsSync(new URL('peers/node_modules', import.meta.url)))
  throw new Error('The other clients are missing: npm ci --prefix bench/peers')

const loads: number[] = []
const noteLoad = (): void => void loads.push((loadavg()[0] ?? 0) / availableParallelism())

async function measured<T>(what: string, measure: () => T | Promise<T>): Promise<T> {
  noteLoad()
  process.stderr.write(`measuring ${what}\n`)
  return await measure()
}

const figures = {
  overhead: await measured('requests', () => measureOverhead(rounds)),
  create: await measured('orders', () => measureCreate(rounds)),
  paging: await measured('lists', () => measurePaging(Math.ceil(rounds / 12))),
  imports: await measured('imports', () => measureImports(Math.ceil(rounds / 5))),
  firstAnswer: await measured('the first answer', () => measureFirstAnswer(Math.ceil(rounds / 5))),
  memory: await measured('memory', () => measureMemory(items, Math.min(3, rounds))),
  profiles: await measured('profiles', measureProfiles),
  sizes: await measured('sizes', measureSizes),
  footprint: measureFootprint(),
}
noteLoad()

const docs = new URL('../docs/', import.meta.url)
const all: Measured = {
  ...figures,
  rounds,
  items,
  machine: machine(),
  versions: versions(),
  explained: readFileSync(new URL('explained.md', import.meta.url), 'utf8'),
  load: loads.reduce((sum, value) => sum + value, 0) / loads.length,
}
writeFileSync(new URL('performance.md', docs), page(all))
writeFileSync(new URL('performance.svg', docs), chart(all.overhead))
// undici's connections and those of other clients would be waited for.
process.exit()
