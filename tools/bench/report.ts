import type { Cell } from './blocks.ts'
import { BASELINE } from './contenders.ts'
import { BARE_POST, CREATE } from './create.ts'
import type { Footprint, PackedSize } from './footprint.ts'
import { type Goal, goals, OURS, OVER_UNDICI } from './goals.ts'
import { LONG_LIST, type Overhead, TASKS } from './overhead.ts'
import type { Paging } from './paging.ts'
import type { Memory } from './processes.ts'
import type { Profiles } from './profiles.ts'
import type { Spread } from './statistics.ts'

/** The results of one run. */
export interface Measured {
  readonly rounds: number
  readonly items: number
  /** Processors, memory, system and Node. */
  readonly machine: string
  /** Versions of the compared packages. */
  readonly versions: ReadonlyMap<string, string>
  readonly overhead: Overhead
  readonly create: ReadonlyMap<string, Cell>
  readonly paging: Paging
  readonly imports: ReadonlyMap<string, Spread>
  readonly firstAnswer: ReadonlyMap<string, Spread>
  readonly memory: Memory
  readonly profiles: Profiles
  readonly sizes: ReadonlyMap<string, number>
  readonly footprint: ReadonlyMap<string, Footprint>
  readonly packed: PackedSize
  /** Text of tools/bench/explained.md, the handwritten explanation of the results. */
  readonly explained: string
  /**
   * Average number of running or waiting processes per processor. Above 1, the machine had other
   * work.
   */
  readonly load: number
}

/** The minimum run for the page. A shorter run is too noisy for verdicts. */
export const FULL = { rounds: 120, items: 1_000_000 } as const

/** True if a run may become the page, with verdicts. */
export function isFull({ rounds, items }: Pick<Measured, 'rounds' | 'items'>): boolean {
  return rounds === FULL.rounds && items === FULL.items
}

const ratio = ({ median, low, high }: Spread): string =>
  `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`
const precise = ({ median, low, high }: Spread): string =>
  median < 20 ? `${median.toFixed(1)} (${low.toFixed(1)}–${high.toFixed(1)})` : whole({ median, low, high })
const whole = ({ median, low, high }: Spread): string =>
  `${median.toFixed(0)} (${low.toFixed(0)}–${high.toFixed(0)})`

function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  left: readonly number[] = [0],
): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const align = head.map((_, index) => (left.includes(index) ? '---' : '---:'))
  return [line(head), line(align), ...rows.map(line)].join('\n')
}

function overheadTable(
  overhead: Overhead,
  key: 'wall' | 'cpu',
  tasks: readonly { readonly name: string }[],
): string {
  return table(
    ['', ...tasks.map(({ name }) => name)],
    [...overhead].map(([name, cells]) => [
      name,
      ...tasks.map((task) => {
        const cell = cells.get(task.name)
        return cell === undefined ? '–' : ratio(cell[key])
      }),
    ]),
  )
}

function compared(found: ReadonlyMap<string, Spread>, baseline: string): string[][] {
  const base = found.get(baseline)?.median ?? Number.NaN
  return [...found].map(([name, value]) => [name, precise(value), (value.median / base).toFixed(2)])
}

/** Peak memory and times of a long list, with their ratios to the baseline. */
function walks({ peak, seconds }: Memory, baseline: string): string[][] {
  const times = new Map(compared(seconds, baseline).map(([name, ...cells]) => [name, cells]))
  return compared(peak, baseline).map(([name = '', ...cells]) => [name, ...cells, ...(times.get(name) ?? [])])
}

/** Microseconds of one task by owner, with a column for each client. */
function profileTable(task: string, profiles: Profiles): string {
  const columns = [...(profiles.get(task) ?? [])].map(
    ([client, { owners, cpu }]) => ({ client, cpu, owners: new Map(owners) }) as const,
  )
  const cells = (of: (column: (typeof columns)[number]) => number | undefined): string[] =>
    columns.map((column) => of(column)?.toFixed(1) ?? '')
  const names = [...new Set(columns.toReversed().flatMap(({ owners }) => [...owners.keys()]))]
  return table(
    [task === 'create' ? '`create()`' : task, ...columns.map(({ client }) => client)],
    [
      ...names.map((name) => [name, ...cells(({ owners }) => owners.get(name))]),
      ['all', ...cells(({ owners }) => [...owners.values()].reduce((sum, amount) => sum + amount, 0))],
      ['CPU of the thread', ...cells(({ cpu }) => cpu)],
    ],
  )
}

const walkName = (prefetch: number): string =>
  prefetch === 0 ? 'this package, no `prefetch`' : `this package, \`prefetch: ${prefetch}\``

/** Returns the tables of goals: first the missed goals with their reasons, then the others. */
function toReach(measured: Measured): string {
  const all = goals(measured)
  const missed = all.filter(({ met }) => !met)
  const row = ({ what, goal, found }: Goal): string[] => [what, goal, found]
  return `## Goals that we miss

A goal without a unit is a ratio to raw \`fetch\`. Medians decide.

${table(
  ['what', 'goal', 'this run', 'what stands in the way'],
  missed.map((goal) => [...row(goal), goal.why]),
  [0, 3],
)}

## Goals that we meet

${table(['what', 'goal', 'this run'], all.filter(({ met }) => met).map(row))}`
}

/** The most important figures for choosing a client. */
function inShort({ overhead, create, paging, memory, imports, firstAnswer, sizes }: Measured): string {
  const times = (name: string, tasks: readonly string[]): string => {
    const ratios = tasks.map((task) => overhead.get(name)?.get(task)?.wall.median ?? Number.NaN)
    return `${Math.min(...ratios).toFixed(1)} to ${Math.max(...ratios).toFixed(1)} times raw \`fetch\``
  }
  const of = (found: ReadonlyMap<string, Spread>, name: string): string =>
    (found.get(name)?.median ?? Number.NaN).toFixed(0)
  const rate = (ahead: number): string => (paging.ours.get(ahead)?.median ?? Number.NaN).toFixed(0)
  const tasks = TASKS.slice(0, 3).map(({ name }) => name)
  const placing = create.get(CREATE)?.wall.median ?? Number.NaN
  return table(
    ['', 'costs', 'which means'],
    [
      ['a request over `fetch`', times(OURS, tasks), '0.1 to 0.2 ms more, like ky'],
      [
        'a request over [undici](guide/undici.md)',
        times(OVER_UNDICI, tasks),
        'no cost; switch this on first',
      ],
      [
        'placing an order over `MemoryStore`',
        `${placing.toFixed(1)} times a POST by raw \`fetch\``,
        '0.2 to 0.4 ms more; with a durable store, its writes take most of the time',
      ],
      [
        'a long list, 20 ms per page',
        `${rate(0)} pages a second, ${rate(4)} with \`prefetch: 4\`, ${rate(8)} with 8`,
        'no other client in this comparison reads ahead',
      ],
      [
        `${measuredItems(FULL.items)} rows of a list, peak memory`,
        `${of(memory.peak, OURS)} MB; a loop over \`fetch\` ${of(memory.peak, 'a loop over fetch')} MB`,
        'the client keeps no page in memory',
      ],
      [
        'importing the package',
        `${of(imports, OURS)} ms; ky alone ${of(imports, 'ky')} ms`,
        'modules are evaluated on their first use',
      ],
      [
        'the first response of a process',
        `${of(firstAnswer, OURS)} ms; raw \`fetch\` ${of(firstAnswer, BASELINE)} ms`,
        'the time for loading `fetch` is in both',
      ],
      [
        'in a browser',
        `${((sizes.get(OURS) ?? Number.NaN) / 1000).toFixed(0)} kB, minified and compressed`,
        '[what each feature costs](decisions/bundle-size.md)',
      ],
    ],
    [0, 1, 2],
  )
}

const measuredItems = (items: number): string => items.toLocaleString('en')

/**
 * The page, which each full run replaces: the cost of the client, the missed goals with reasons,
 * then all figures.
 */
export function page(measured: Measured): string {
  const { overhead, paging, load } = measured
  const busy =
    load > 1
      ? `**Measured under load**: other programs kept ${load.toFixed(1)} processes per processor running or waiting. Trust only differences of a factor of two, and repeat the run on an idle machine.`
      : `Load of the machine: ${load.toFixed(1)} processes per processor.`
  const fastest = Math.max(...[...paging.peers.values()].map(({ median }) => median))
  const full = isFull(measured)
  return `# Performance${full ? '' : ', a quick look'}

What does this client cost you? Apart from lists at 20 ms per page, the figures exclude the response time of your service.
To make it faster, see the [guide](guide/performance.md).

${inShort(measured)}

![Time of a request as a ratio to raw fetch](performance.svg)

${full ? `${toReach(measured)}\n\n${measured.explained.trim()}` : 'A quick look gives no verdicts: its figures scatter too much, and short lists need different amounts of memory.'}

## Appendix: every figure

\`npm run bench clients\` writes this page (see [how to repeat it](#how-to-repeat-it)). The run has ${measured.rounds} rounds. Each figure is a median, with its quartiles in brackets.

Measured on ${measured.machine}.
Versions: ${[...measured.versions].map(([name, version]) => `${name} ${version}`).join(', ')}.

${busy}

### Time of one request

Figures are ratios to raw \`fetch\` with JSON in the same round.
All clients run in one process; each round makes a few requests with every client, in a new order.
This package checks every response; the others check none.
"Raw fetch, again" runs the same code as raw fetch: its distance from 1 is the noise.
"ky, one attempt" is ky with the options that this package passes, an abort controller and a timer: the minimum cost of a call over ky.

${overheadTable(overhead, 'wall', TASKS.slice(0, 3))}

${overheadTable(overhead, 'wall', TASKS.slice(3))}

### CPU of one request

These tables show user and system time of the client's process, as ratios to raw \`fetch\`.

${overheadTable(overhead, 'cpu', TASKS.slice(0, 3))}

${overheadTable(overhead, 'cpu', TASKS.slice(3))}

### A page of 1,000 rows

Time and CPU, as ratios to raw \`fetch\`, for the longest page that the service returns. This package checks every row.

${table(
  ['', 'time', 'CPU'],
  [...overhead].flatMap(([name, cells]) => {
    const cell = cells.get(LONG_LIST.name)
    return cell === undefined ? [] : [[name, ratio(cell.wall), ratio(cell.cpu)]]
  }),
)}

### Placing an order

\`orders.create()\` with its default store and a different order each time, compared with sending the same body without a record, by raw \`fetch\` and by \`${BARE_POST}\` of the same client.

${table(
  ['', 'time', 'CPU'],
  [...measured.create].map(([name, { wall, cpu }]) => [name, ratio(wall), ratio(cpu)]),
)}

### Lists

2,000 orders at 50 per page, from a service that responds after 20 ms.
The others read one page at a time: stripe, openai and notion with their own iterators, fetch and ky in a plain loop.

${table(
  ['', 'pages per second', 'ratio to the fastest of the others'],
  [...[...paging.ours].map(([prefetch, rate]) => [walkName(prefetch), rate] as const), ...paging.peers].map(
    ([name, rate]) => [name, whole(rate), (rate.median / fastest).toFixed(2)],
  ),
)}

A process that reads ${measuredItems(measured.items)} orders at 1,000 per page: peak memory in MB, and seconds from the first request to the last row.

${table(['', 'MB', 'ratio', 'seconds', 'ratio'], walks(measured.memory, 'a loop over fetch'))}

### Start

The figures are milliseconds in a fresh process.

${table(['import', 'ms', 'ratio to ky alone'], compared(measured.imports, 'ky'))}

${table(['first response', 'ms', 'ratio to raw fetch'], compared(measured.firstAnswer, 'raw fetch'))}

### Size in a browser

The figures are for the whole client with its dependencies, minified by esbuild and compressed by gzip.

${table(
  ['import', 'kB'],
  [...measured.sizes].map(([name, bytes]) => [name, (bytes / 1000).toFixed(1)]),
)}

### Installed

The figures are what \`npm install\` adds, including dependencies.

${table(
  ['', 'packages', 'files', 'MB'],
  [...measured.footprint].map(([name, { packages, files, bytes }]) => [
    name,
    String(packages),
    String(files),
    (bytes / 1_000_000).toFixed(2),
  ]),
)}

### Profiles

The figures are microseconds of one call, by the owner of the running function, with one call at a time.
The time of native functions, such as writing to a socket, is added to the time of their caller. Waiting time is not included.
The times include the profiler's own work.
"CPU of the thread" also includes the system's time for waiting and waking.
\`npm run bench profile -- GET\` prints one profile with its files and functions. \`--heap\` prints allocations instead of times.

${[...measured.profiles.keys()].map((task) => profileTable(task, measured.profiles)).join('\n\n')}

### How to repeat it

\`\`\`sh
npm run build
npx node tools/programs/install.ts tools/packages
npm run bench clients
\`\`\`

The last command takes about ten minutes, and writes this page and its chart.
\`npm run bench clients -- --rounds 10 --items 100000\` is a quick look, which changes neither the page nor the chart, and writes a page without verdicts to \`.tmp\`.
Compare figures only within one run: the speed of a shared machine varies, and the ratios with it.
`
}

const COLOURS = ['#2f6f9f', '#e08a2e', '#5a9e5a'] as const

/** Bars of the first three tasks, one group for each contender. */
export function chart(overhead: Overhead): string {
  const tasks = TASKS.slice(0, 3)
  const rows = [...overhead].filter(([name]) => !name.endsWith('again'))
  const most = Math.max(
    ...rows.flatMap(([, cells]) => tasks.map(({ name }) => cells.get(name)?.wall.median ?? 0)),
  )
  const scale = 420 / most
  const bars = rows.map(([name, cells], row) => {
    const top = 40 + row * 54
    const inside = tasks.map((task, index) => {
      const value = cells.get(task.name)?.wall.median ?? 0
      const y = top + index * 14
      return `  <rect x="180" y="${y}" width="${(value * scale).toFixed(1)}" height="12" fill="${COLOURS[index]}"/>
  <text x="${(186 + value * scale).toFixed(1)}" y="${y + 10}" font-size="10">${value.toFixed(2)}</text>`
    })
    return `  <text x="172" y="${top + 25}" text-anchor="end">${name}</text>\n${inside.join('\n')}`
  })
  const legend = tasks.map(
    ({ name }, index) =>
      `  <rect x="${180 + index * 110}" y="14" width="12" height="12" fill="${COLOURS[index]}"/>
  <text x="${197 + index * 110}" y="24">${name}</text>`,
  )
  const height = 50 + rows.length * 54
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 ${height}" width="660" height="${height}" font-family="sans-serif" font-size="12" role="img">
  <title>Time of a request as a ratio to raw fetch, shorter is faster</title>
  <rect width="660" height="${height}" fill="#ffffff"/>
${legend.join('\n')}
${bars.join('\n')}
  <line x1="${(180 + scale).toFixed(1)}" x2="${(180 + scale).toFixed(1)}" y1="34" y2="${height - 10}" stroke="#555" stroke-dasharray="3 3"/>
</svg>
`
}
