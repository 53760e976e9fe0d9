/** Time and CPU of one request, as ratios to raw `fetch` in the same round. */
import { compare, ratio, table } from './compare.ts'
import { BASELINE, contenders } from './contenders.ts'
import { startService } from './service.ts'

const TASKS = [
  ['GET', 'get', 1],
  ['list of 50', 'list', 1],
  ['`create()`', 'create', 1],
  ['GET, 64 at a time', 'get', 64],
  ['`create()`, 64 at a time', 'create', 64],
] as const

const service = await startService()
const everybody = contenders(service.url)
const rows = new Map(everybody.map(({ name }) => [name, [name]]))
for (const [, call, at] of TASKS) {
  const subjects = new Map(everybody.map((contender) => [contender.name, contender[call]]))
  const costs = await compare({ subjects, rounds: 60, calls: Math.max(24, at), at, warmUp: 2_000 })
  const baseline = costs.get(BASELINE) ?? []
  for (const [name, found] of costs) {
    const times = ratio(
      found.map(({ time }) => time),
      baseline.map(({ time }) => time),
    )
    const cpu = ratio(
      found.map((cost) => cost.cpu),
      baseline.map((cost) => cost.cpu),
    )
    rows.get(name)?.push(`${times.toFixed(2)} (${cpu.toFixed(2)})`)
  }
}
service.close()
process.stdout.write(`Time of one call, and in brackets CPU time, as ratios to raw \`fetch\`.
All run in one process, in blocks that take turns, against a server in another process.
Only this package checks responses. Only its \`create()\` remembers orders: the others send the same body.
The distance of "again" from 1 is the noise.

${table(['', ...TASKS.map(([title]) => title)], [...rows.values()])}`)
// Exit explicitly: open connections would keep the process running.
process.exit()
