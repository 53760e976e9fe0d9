/** `npm run bench NAME`: benchmarks. All of them need an idle machine. */
import { node, type Programs, readName, runCommands } from './named-programs.ts'

const quiet = '--disable-warning=ExperimentalWarning'
const PROGRAMS: Programs = {
  clients: {
    about: 'time, CPU, memory and size compared with other clients; writes docs/performance.md',
    commands: [node('bench/run.ts')],
  },
  profile: {
    about: 'time of one call by owner and by function; --heap: its allocations',
    commands: [node('bench/profile.ts')],
  },
  stores: {
    about: 'orders per second with each store',
    commands: [node(quiet, 'bench/stores/throughput.ts')],
  },
  'stores-memory': {
    about: 'memory of a million orders in each store',
    commands: [node('--expose-gc', '--max-old-space-size=96', 'bench/stores/memory.ts')],
  },
  sandbox: {
    about: 'the speed of the sandbox compared with the minimum that Node needs',
    commands: [node('bench/sandbox/speed.ts')],
  },
  schemas: {
    about: 'time to check a page of 1,000 orders, compared field by field, and by schemas of zod and ajv',
    commands: [node('bench/schemas.ts')],
  },
  collections: {
    about: 'garbage collections of long lists',
    commands: [node('bench/collections.ts')],
  },
  journal: {
    about: 'the cost of the journal: CPU time, SQLite, growth',
    commands: [
      node('bench/journal/cpu.ts'),
      node('bench/journal/sqlite.ts'),
      node('--max-old-space-size=8192', 'bench/journal/growth.ts'),
    ],
  },
}

const { name, rest } = readName('bench', PROGRAMS)
process.exitCode = runCommands(PROGRAMS[name]?.commands ?? [], rest)
