/**
 * Shows the CPU time or the allocations of one call, by owner and by function, with the service and
 * the programs of `npm run bench clients`:
 *
 * npm run bench profile -- [TASK] [--client NAME] [--heap] [--seconds 5] [--prefetch 4] [--json]
 *
 * TASK is GET, "list of 50", "list of 1,000", POST, create or paging (this package reads 2,000
 * orders, 50 per page, with responses after 20 ms; a call is one page). NAME is "this package",
 * "this package, undici", "raw fetch", "ky, defaults" or "ky, one attempt" (create: "this package",
 * "client.request" or "raw fetch"). Calls run one at a time. The measurement starts after 3,000
 * calls (paging: 10 walks).
 *
 * A function counts without the functions that it calls. Native functions, such as a write to a
 * socket, count for their caller. Waiting for the service does not count. On an idle machine, the
 * sum of the times is the thread's CPU without the system's time for waiting and waking. On a busy
 * machine, it may be more, because a thread that waits for a processor is not idle. Allocations are
 * counted without inlining, because the engine would count them for the outermost function. This
 * changes their sum by a few per cent.
 */
import type { HeapProfiler, Profiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import { setFlagsFromString } from 'node:v8'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { isBuilt } from '../build/ensure-built.ts'
import { oneOf, positive, readArguments, wholeNumber } from '../programs/arguments.ts'
import { BASELINE, KEY, ownContenders } from './contenders.ts'
import { BARE_POST, CREATE, placers } from './create.ts'
import { IDLE, nameJsonParse, type Owner, ownerOf, PACKAGE } from './owners.ts'
import { type Service, startService } from './service.ts'

/**
 * Sampling interval: microseconds between two samples of the stack, and bytes between two samples
 * of the heap (on average).
 */
const LOOK_EVERY = 200
const LOOK_EVERY_BYTES = 2_048
const TOP = 15
const ORDERS = 2_000

const CALLS = { GET: 'get', 'list of 50': 'list', 'list of 1,000': 'longList', POST: 'post' } as const

const OURS = 'this package'
const SENDERS = ownContenders('http://localhost')
const PLACERS = [OURS, BARE_POST, BASELINE]
const TASKS = [...Object.keys(CALLS), 'create', 'paging']

const { task, client, seconds, prefetch, heap, json } = readArguments(
  {
    usage: `npm run bench profile -- [TASK] [--client NAME] [--heap] [--seconds 5] [--prefetch 4] [--json]
  TASK: ${TASKS.join('; ')}
  NAME: ${SENDERS.map(({ name }) => name).join('; ')}; of create: ${PLACERS.join('; ')}; of paging: ${OURS}
  without them: GET by ${OURS}`,
    positionals: 1,
    options: {
      client: { type: 'string', default: OURS },
      heap: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      seconds: { type: 'string', default: '5' },
      prefetch: { type: 'string', default: '4' },
    },
  },
  ({ values: { client, heap, json, seconds, prefetch }, positionals: [name = 'GET'] }) => {
    const task = oneOf('TASK', name, TASKS)
    const able = SENDERS.filter((sender) => task !== 'list of 1,000' || sender.longList !== undefined)
    const clients =
      task === 'create' ? PLACERS : task === 'paging' ? [OURS] : able.map((sender) => sender.name)
    return {
      task,
      client: oneOf(`--client of ${task}`, client, clients),
      seconds: positive('--seconds', seconds),
      prefetch: wholeNumber('--prefetch', prefetch),
      heap,
      json,
    }
  },
)
if (!isBuilt()) throw new Error('The build is missing or older than the source: npm run build')

/** The output of `--json`. */
export interface Profile {
  /** Microseconds or kB per call by owner, the largest first. */
  readonly owners: readonly (readonly [string, number])[]
  /** Microseconds of CPU per call in the thread, as counted by the system. */
  readonly cpu: number
}

/** The measured work, and its number of warm-up runs. */
interface Work {
  readonly warmUp: number
  /** Resolves to the number of calls made. */
  run(): Promise<number>
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error(`${client} has no ${task}`)
  return value
}

function workOf({ url }: Service): Work {
  const each = (call: () => Promise<unknown>, warmUp = 3_000): Work => ({
    warmUp,
    run: async () => {
      await call()
      return 1
    },
  })
  if (task === 'paging') {
    const own = new CustomerOrderingClient({ baseUrl: url, apiKey: KEY })
    const run = async (): Promise<number> => {
      let items = 0
      for await (const _ of own.orders.list({ limit: 50 }, { prefetch })) items++
      return items / 50
    }
    return { warmUp: 10, run }
  }
  if (task === 'create') {
    return each(found(placers(url).get(client === OURS ? CREATE : client)))
  }
  const call = found(Object.entries(CALLS).find(([name]) => name === task))[1]
  const send = found(ownContenders(url).find(({ name }) => name === client)?.[call])
  return each(send, call === 'longList' ? 300 : undefined)
}

/** The count of one function: microseconds or bytes of all calls. */
interface Share {
  readonly owner: Owner
  readonly amount: number
}

function times({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Share[] {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const owners = new Map<number, Owner>()
  const find = ({ id, callFrame, children = [] }: Profiler.ProfileNode, caller?: Owner): void => {
    const owner = ownerOf(callFrame, caller)
    owners.set(id, owner)
    for (const child of children) {
      const node = byId.get(child)
      if (node !== undefined) find(node, owner)
    }
  }
  if (nodes[0] !== undefined) find(nodes[0])
  // The time from one sample to the next belongs to the function of the first.
  return samples.flatMap((id, index) => {
    const owner = owners.get(id)
    return owner === undefined ? [] : [{ owner, amount: timeDeltas[index + 1] ?? 0 }]
  })
}

function bytes(node: HeapProfiler.SamplingHeapProfileNode, caller?: Owner): Share[] {
  const owner = ownerOf(node.callFrame, caller)
  return [{ owner, amount: node.selfSize }, ...node.children.flatMap((child) => bytes(child, owner))]
}

/** Sums the shares by `key`, the largest first. */
function summed(shares: readonly Share[], key: keyof Owner): [string, number][] {
  const sums = new Map<string, number>()
  for (const { owner, amount } of shares) sums.set(owner[key], (sums.get(owner[key]) ?? 0) + amount)
  return [...sums].filter(([, amount]) => amount > 0).toSorted((a, b) => b[1] - a[1])
}

if (heap) setFlagsFromString('--no-turbo-inlining --no-maglev-inlining')
nameJsonParse()
const service = await startService(task === 'paging' ? 20 : 0, ORDERS)
const work = workOf(service)
for (let count = 0; count < work.warmUp; count++) await work.run()

const session = new Session()
session.connect()
if (heap)
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: LOOK_EVERY_BYTES,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  })
else {
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: LOOK_EVERY })
  await session.post('Profiler.start')
}
let calls = 0
const cpuBefore = [process.threadCpuUsage(), process.cpuUsage()] as const
const before = performance.now()
while (performance.now() - before < seconds * 1_000) calls += await work.run()
const wall = ((performance.now() - before) * 1_000) / calls
const [ownCpu, allCpu] = [process.threadCpuUsage(cpuBefore[0]), process.cpuUsage(cpuBefore[1])].map(
  ({ user, system }) => (user + system) / calls,
)
const shares = heap
  ? bytes((await session.post('HeapProfiler.stopSampling')).profile.head)
  : times((await session.post('Profiler.stop')).profile)
service.close()

const unit = heap ? 'kB' : 'µs'
const scale = heap ? 1 / 1_000 : 1
const counted = shares
  .filter(({ owner }) => owner.name !== IDLE)
  .map(({ owner, amount }) => ({ owner, amount: (amount * scale) / calls }))
const total = counted.reduce((sum, { amount }) => sum + amount, 0)

function table(head: string, rows: readonly (readonly [string, number])[]): string {
  const lines = rows.map(
    ([name, amount]) => `| ${name} | ${amount.toFixed(1)} | ${((amount / total) * 100).toFixed(0)} % |`,
  )
  return [`| ${head} | ${unit} | |`, '| --- | ---: | ---: |', ...lines].join('\n')
}

if (json) {
  const profile: Profile = { owners: summed(counted, 'name'), cpu: ownCpu ?? Number.NaN }
  process.stdout.write(JSON.stringify(profile))
  process.exit()
}
const sender = task === 'paging' ? `${OURS}, prefetch: ${prefetch}` : client
const ours = counted.filter(({ owner }) => owner.name === PACKAGE)
const spent = `${wall.toFixed(0)} µs of wall time, ${ownCpu?.toFixed(0)} µs of CPU in the thread and ${allCpu?.toFixed(0)} µs in the process`
process.stdout.write(`**${task}, ${sender}**: ${calls} calls, Node ${process.versions.node}. Of each call, the profiler's own work included: ${spent}.

${table('owner', [...summed(counted, 'name'), ['all', total]])}

${ours.length === 0 ? '' : `${table('file of this package', summed(ours, 'file').slice(0, TOP))}\n`}
${table('function', summed(counted, 'title').slice(0, TOP))}
`)
if (!heap && total > 1.15 * (ownCpu ?? 0))
  process.stdout.write('\n**The machine was busy**: only the percentages are meaningful.\n')
// Exit explicitly: open connections of undici would keep the process running.
process.exit()
