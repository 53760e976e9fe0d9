/** `npm run bench NAME`: benchmarks. All of them need an idle machine. */
import { node, type Programs, readName, runCommands } from '../programs/named-programs.ts'

const quiet = '--disable-warning=ExperimentalWarning'
const PROGRAMS: Programs = {
  clients: {
    about: 'time, CPU, memory and size compared with other clients; writes docs/performance.md',
    commands: [node('tools/bench/run.ts')],
  },
  profile: {
    about: 'time of one call by owner and by function; --heap: its allocations',
    commands: [node('tools/bench/profile.ts')],
  },
  stores: {
    about: 'orders per second with each store',
    commands: [node(quiet, 'tools/bench/stores/throughput.ts')],
  },
  'stores-memory': {
    about: 'memory of a million orders in each store',
    commands: [node('--expose-gc', '--max-old-space-size=96', 'tools/bench/stores/memory.ts')],
  },
  sandbox: {
    about: 'the speed of the sandbox compared with the minimum that Node needs',
    commands: [node('tools/bench/sandbox/speed.ts')],
  },
  schemas: {
    about: 'time to check a page of 1,000 orders, compared field by field, and by schemas of zod and ajv',
    commands: [node('tools/bench/schemas.ts')],
  },
  collections: {
    about: 'garbage collections of long lists',
    commands: [node('tools/bench/collections.ts')],
  },
  journal: {
    about: 'the cost of the journal: CPU time, SQLite, growth',
    commands: [
      node('tools/bench/journal/cpu.ts'),
      node('tools/bench/journal/sqlite.ts'),
      node('--max-old-space-size=8192', 'tools/bench/journal/growth.ts'),
    ],
  },
}

const { name, rest } = readName('bench', PROGRAMS)
process.exitCode = runCommands(PROGRAMS[name]?.commands ?? [], rest)
