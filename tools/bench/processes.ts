/** Measurements that need a separate process: start-up and memory. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ITEM_ID, startService } from './service.ts'
import { type Spread, shuffled, spread } from './statistics.ts'

const run = promisify(execFile)
const cwd = new URL('../..', import.meta.url)

/** Part of the names of contenders that run with a filled compile cache of Node. */
const CACHED = 'NODE_COMPILE_CACHE'

async function printed(program: string, cache?: string): Promise<number[]> {
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], {
    cwd,
    timeout: 600_000,
    env: cache === undefined ? process.env : { ...process.env, [CACHED]: cache },
  })
  return stdout.trim().split(' ').map(Number)
}

/** Runs the programs alternately, and returns the numbers that they print. */
async function interleaved(
  programs: Readonly<Record<string, string>>,
  rounds: number,
): Promise<ReadonlyMap<string, readonly number[]>[]> {
  const found: Map<string, number[]>[] = []
  const runs = Object.entries(programs)
  const cache = mkdtempSync(join(tmpdir(), 'compile-cache-'))
  for (const [name, program] of runs) if (name.includes(CACHED)) await printed(program, cache)
  for (let round = 0; round < rounds; round++)
    for (const [name, program] of shuffled(runs))
      for (const [index, number] of (
        await printed(program, name.includes(CACHED) ? cache : undefined)
      ).entries()) {
        found[index] ??= new Map(runs.map(([each]) => [each, []]))
        found[index].get(name)?.push(number)
      }
  rmSync(cache, { recursive: true })
  return found
}

function spreads(found: ReadonlyMap<string, readonly number[]> | undefined): ReadonlyMap<string, Spread> {
  if (found === undefined) throw new Error('nothing was measured')
  return new Map([...found].map(([name, values]) => [name, spread(values)]))
}

const timed = (module: string): string =>
  `const before = performance.now(); await import('${module}'); console.log(performance.now() - before)`

/** Milliseconds to import a module in a new process. */
export async function measureImports(rounds: number): Promise<ReadonlyMap<string, Spread>> {
  const [found] = await interleaved(
    {
      'this package': timed('customer-ordering-sdk'),
      [`this package, ${CACHED}`]: timed('customer-ordering-sdk'),
      ky: timed('ky'),
      'zod/mini': timed('zod/mini'),
      uuid: timed('uuid'),
    },
    rounds,
  )
  return spreads(found)
}

/** Milliseconds from the start of a program to its first response. */
export async function measureFirstAnswer(rounds: number): Promise<ReadonlyMap<string, Spread>> {
  const service = await startService(0, 10)
  const client = `import('customer-ordering-sdk').then(({ CustomerOrderingClient }) => new CustomerOrderingClient({ baseUrl: '${service.url}', apiKey: 'k' }).orders.retrieve('${ITEM_ID}'))`
  const program = (call: string): string =>
    `const before = performance.now(); await ${call}; console.log(performance.now() - before); process.exit()`
  const [found] = await interleaved(
    {
      'this package': program(client),
      [`this package, ${CACHED}`]: program(client),
      'raw fetch': program(
        `fetch('${service.url}/v1/orders/${ITEM_ID}').then((response) => response.json())`,
      ),
    },
    rounds,
  )
  service.close()
  return spreads(found)
}

/** Memory and time for reading a long list. */
export interface Memory {
  /** Peak memory of the process, in MB. */
  readonly peak: ReadonlyMap<string, Spread>
  /** Seconds from the first request to the last row. */
  readonly seconds: ReadonlyMap<string, Spread>
}

/** Peak memory and time of reading `items` orders, 1,000 per page. */
export async function measureMemory(items: number, rounds: number): Promise<Memory> {
  const service = await startService(0, items)
  // Do not use `resourceUsage().maxRSS`: on Linux, a process inherits the peak of its parent.
  const start = 'const before = performance.now()'
  const end = `const seconds = (performance.now() - before) / 1000
    if (count !== ${items}) throw new Error(String(count))
    const { readFileSync } = process.getBuiltinModule('node:fs')
    const own = process.platform === 'linux' && /VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))
    console.log((own ? own[1] : process.resourceUsage().maxRSS) / 1024, seconds)
    process.exit()`
  const walk = (prefetch: number): string => `
    import { CustomerOrderingClient } from 'customer-ordering-sdk'
    const client = new CustomerOrderingClient({ baseUrl: '${service.url}', apiKey: 'k' })
    ${start}
    let count = 0
    for await (const _ of client.orders.list({ limit: 1000 }, { prefetch: ${prefetch} })) count++
    ${end}`
  const plain = `
    ${start}
    let count = 0
    for (;;) {
      const { data } = await (await fetch('${service.url}/v1/orders?limit=1000&offset=' + count)).json()
      for (const _ of data) count++
      if (count >= ${items} || data.length === 0) break
    }
    ${end}`
  const [peak, seconds] = await interleaved(
    { 'this package': walk(0), 'this package, prefetch: 4': walk(4), 'a loop over fetch': plain },
    rounds,
  )
  service.close()
  return { peak: spreads(peak), seconds: spreads(seconds) }
}
