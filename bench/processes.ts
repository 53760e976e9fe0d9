/** What needs a process for each measurement: start-up and memory. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { startService } from './service.ts'
import { type Spread, shuffled, spread } from './statistics.ts'

const run = promisify(execFile)
const cwd = new URL('..', import.meta.url)

async function printed(program: string): Promise<number> {
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], {
    cwd,
    timeout: 600_000,
  })
  return Number(stdout)
}

async function interleaved(
  programs: Readonly<Record<string, string>>,
  rounds: number,
): Promise<ReadonlyMap<string, Spread>> {
  const found = new Map(Object.keys(programs).map((name) => [name, [] as number[]]))
  for (let round = 0; round < rounds; round++)
    for (const [name, program] of shuffled(Object.entries(programs)))
      found.get(name)?.push(await printed(program))
  return new Map([...found].map(([name, values]) => [name, spread(values)]))
}

const timed = (module: string): string =>
  `const before = performance.now(); await import('${module}'); console.log(performance.now() - before)`

/** Milliseconds that the import of a module takes in a fresh process. */
export function measureImports(rounds: number): Promise<ReadonlyMap<string, Spread>> {
  return interleaved(
    {
      'this package': timed('customer-ordering-sdk'),
      ky: timed('ky'),
      'zod/mini': timed('zod/mini'),
      uuid: timed('uuid'),
    },
    rounds,
  )
}

/** Milliseconds from the start of a program to its first answer. */
export async function measureFirstAnswer(rounds: number): Promise<ReadonlyMap<string, Spread>> {
  const service = await startService(0, 10)
  const client = `import('customer-ordering-sdk').then(({ CustomerOrderingClient }) => new CustomerOrderingClient({ baseUrl: '${service.url}', apiKey: 'k' }).orders.retrieve('ord_1'))`
  const program = (call: string): string =>
    `const before = performance.now(); await ${call}; console.log(performance.now() - before); process.exit()`
  const found = await interleaved(
    {
      'this package': program(client),
      'raw fetch': program(`fetch('${service.url}/v1/orders/ord_1').then((response) => response.json())`),
    },
    rounds,
  )
  service.close()
  return found
}

/** Peak memory in MB of reading so many orders at 1,000 a page. */
export async function measureMemory(items: number, rounds: number): Promise<ReadonlyMap<string, Spread>> {
  const service = await startService(0, items)
  // Not `resourceUsage().maxRSS`: on Linux, a process begins with the peak of the one that started it.
  const peak = `if (count !== ${items}) throw new Error(String(count))
    const { readFileSync } = process.getBuiltinModule('node:fs')
    const own = process.platform === 'linux' && /VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))
    console.log((own ? own[1] : process.resourceUsage().maxRSS) / 1024)
    process.exit()`
  const walk = (prefetch: number): string => `
    import { CustomerOrderingClient } from 'customer-ordering-sdk'
    const client = new CustomerOrderingClient({ baseUrl: '${service.url}', apiKey: 'k' })
    let count = 0
    for await (const _ of client.orders.list({ limit: 1000 }, { prefetch: ${prefetch} })) count++
    ${peak}`
  const plain = `
    let count = 0
    for (;;) {
      const { data } = await (await fetch('${service.url}/v1/orders?limit=1000&offset=' + count)).json()
      for (const _ of data) count++
      if (count >= ${items} || data.length === 0) break
    }
    ${peak}`
  const found = await interleaved(
    { 'this package': walk(0), 'this package, prefetch: 4': walk(4), 'a loop over fetch': plain },
    rounds,
  )
  service.close()
  return found
}
