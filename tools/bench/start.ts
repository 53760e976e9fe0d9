/** CPU time of an import and of a first response, each in a fresh process. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { root } from '../build/ensure-built.ts'
import { median, shuffled, table } from './compare.ts'
import { ITEM_ID, KEY } from './orders.ts'
import { startService } from './service.ts'

const ROUNDS = 25
const service = await startService()
const item = `${service.url}/v1/orders/${ITEM_ID}`
const options = `{ baseUrl: '${service.url}', apiKey: '${KEY}' }`
const first = `const { CustomerOrderingClient } = await import('customer-ordering-sdk')
  await new CustomerOrderingClient(${options}).orders.retrieve('${ITEM_ID}')`

interface Program {
  readonly name: string
  readonly code: string
  readonly cached?: boolean
}

const IMPORTS: readonly Program[] = [
  { name: 'ky', code: "await import('ky')" },
  { name: 'this package', code: "await import('customer-ordering-sdk')" },
  { name: 'this package, `NODE_COMPILE_CACHE`', code: "await import('customer-ordering-sdk')", cached: true },
]
const RESPONSES: readonly Program[] = [
  { name: 'raw `fetch`', code: `await (await fetch('${item}')).json()` },
  { name: 'ky with its defaults', code: `await (await import('ky')).default('${item}').json()` },
  { name: 'this package', code: first },
  { name: 'this package, `NODE_COMPILE_CACHE`', code: first, cached: true },
]

async function cpuOf({ code, cached }: Program): Promise<number> {
  const program = `const before = process.cpuUsage()
    ${code}
    const { user, system } = process.cpuUsage(before)
    console.log((user + system) / 1000)
    process.exit()`
  const env = cached ? { ...process.env, NODE_COMPILE_CACHE: '.tmp/compile-cache' } : process.env
  const run = promisify(execFile)
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], { cwd: root, env })
  return Number(stdout)
}

async function rows(programs: readonly Program[]): Promise<string[][]> {
  const found = new Map(programs.map((program) => [program, [] as number[]]))
  for (let round = -1; round < ROUNDS; round++)
    for (const program of shuffled(programs)) {
      const cpu = await cpuOf(program)
      if (round >= 0) found.get(program)?.push(cpu)
    }
  const medians = [...found.values()].map(median)
  return programs.map(({ name }, index) => {
    const [cpu = Number.NaN, base = Number.NaN] = [medians[index], medians[0]]
    return [name, cpu.toFixed(0), (cpu / base).toFixed(2)]
  })
}

process.stdout.write(`CPU time in fresh processes.

${table(['import', 'ms', 'ratio to ky'], await rows(IMPORTS))}
${table(['first response', 'ms', 'ratio to raw `fetch`'], await rows(RESPONSES))}`)
service.close()
