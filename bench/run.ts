/**
 * Measures this package against `fetch`, ky and clients of other services, and writes docs/performance.md:
 *
 *     npm run bench [-- --rounds 30 --items 1000000]
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { isBuilt } from '../scripts/ensure-built.ts'
import { measureFootprint } from './footprint.ts'
import { measureOverhead } from './overhead.ts'
import { measurePaging } from './paging.ts'
import { measureFirstAnswer, measureImports, measureMemory } from './processes.ts'
import { chart, page } from './report.ts'
import { measureSizes } from './sizes.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '30' }, items: { type: 'string', default: '1000000' } },
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
const say = (what: string): void => {
  noteLoad()
  process.stderr.write(`measuring ${what}\n`)
}

say('requests')
const overhead = await measureOverhead(rounds)
say('lists')
const paging = await measurePaging(Math.ceil(rounds / 5))
say('imports')
const imports = await measureImports(Math.ceil(rounds / 3))
say('the first answer')
const firstAnswer = await measureFirstAnswer(Math.ceil(rounds / 3))
say('memory')
const memory = await measureMemory(items, Math.ceil(rounds / 15))
say('sizes')
const sizes = await measureSizes()
const footprint = measureFootprint()
noteLoad()

const load = loads.reduce((sum, value) => sum + value, 0) / loads.length
const docs = new URL('../docs/', import.meta.url)
const node = process.versions.node
const explained = readFileSync(new URL('explained.md', import.meta.url), 'utf8')
const measured = {
  rounds,
  items,
  node,
  overhead,
  paging,
  imports,
  firstAnswer,
  memory,
  sizes,
  footprint,
  explained,
  load,
}
writeFileSync(new URL('performance.md', docs), page(measured))
writeFileSync(new URL('performance.svg', docs), chart(overhead))
// undici's connections and those of other clients would be waited for.
process.exit()
