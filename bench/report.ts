import type { Footprint } from './footprint.ts'
import { goals } from './goals.ts'
import { type Overhead, TASKS } from './overhead.ts'
import type { Paging } from './paging.ts'
import type { Spread } from './statistics.ts'

/** Everything that one run has measured. */
export interface Measured {
  readonly rounds: number
  readonly items: number
  readonly node: string
  readonly overhead: Overhead
  readonly paging: Paging
  readonly imports: ReadonlyMap<string, Spread>
  readonly firstAnswer: ReadonlyMap<string, Spread>
  readonly memory: ReadonlyMap<string, Spread>
  readonly sizes: ReadonlyMap<string, number>
  readonly footprint: ReadonlyMap<string, Footprint>
  /** Text of bench/explained.md: where the time goes, by hand. */
  readonly explained: string
  /** Processes that were running or waiting, per processor, on average: above 1 the machine had other work. */
  readonly load: number
}

const ratio = ({ median, low, high }: Spread): string =>
  `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`
const whole = ({ median, low, high }: Spread): string =>
  `${median.toFixed(0)} (${low.toFixed(0)}–${high.toFixed(0)})`

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map((_, index) => (index === 0 ? '---' : '---:'))), ...rows.map(line)].join(
    '\n',
  )
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
  return [...found].map(([name, value]) => [name, whole(value), (value.median / base).toFixed(2)])
}

const walkName = (prefetch: number): string =>
  prefetch === 0 ? 'this package, one page when it is needed' : `this package, \`prefetch: ${prefetch}\``

/** The page, written anew by each run. */
export function page(measured: Measured): string {
  const { overhead, paging, load } = measured
  const busy =
    load > 1
      ? `**Measured under load**: other programs kept ${load.toFixed(1)} processes per processor busy or waiting. Ratios scatter far too much to judge anything by but factors of two; run it again on an idle machine.`
      : `Load of the machine: ${load.toFixed(1)} processes per processor.`
  const fastest = Math.max(...[...paging.peers.values()].map(({ median }) => median))
  return `# Performance

Written by \`npm run bench\`; see [repeating it](#repeating-it). Node ${measured.node}, ${measured.rounds} rounds. Medians, quartiles in brackets.

${busy}

![Time of a request as a ratio to raw fetch](performance.svg)

## Time of one request

As ratios to raw \`fetch\` and JSON in the same round; all contenders run in one process, a few requests of each in a new order every round. This package checks every answer, the others check none. "Again" is the
same code as raw fetch: how far it is from 1 is the noise.

${overheadTable(overhead, 'wall', TASKS.slice(0, 3))}

${overheadTable(overhead, 'wall', TASKS.slice(3))}

## CPU of one request

User and system time of the client's process, the same way.

${overheadTable(overhead, 'cpu', TASKS.slice(0, 3))}

${overheadTable(overhead, 'cpu', TASKS.slice(3))}

## Lists

2,000 orders at 50 a page from a service that takes 20 ms to answer. The others read one page at a time, by the iterators that they have.

${table(
  ['', 'pages per second', 'ratio to the fastest of the others'],
  [...[...paging.ours].map(([prefetch, rate]) => [walkName(prefetch), rate] as const), ...paging.peers].map(
    ([name, rate]) => [name, whole(rate), (rate.median / fastest).toFixed(2)],
  ),
)}

Peak memory of a process that reads ${measured.items.toLocaleString('en')} orders at 1,000 a page, in MB:

${table(['', 'MB', 'ratio'], compared(measured.memory, 'a loop over fetch'))}

## Start

Milliseconds in a fresh process.

${table(['import', 'ms', 'ratio to ky alone'], compared(measured.imports, 'ky'))}

${table(['first answer', 'ms', 'ratio to raw fetch'], compared(measured.firstAnswer, 'raw fetch'))}

## Size in a browser

Minified by esbuild and compressed by gzip, everything included, in kB.

${table(
  ['import', 'kB'],
  [...measured.sizes].map(([name, bytes]) => [name, (bytes / 1000).toFixed(1)]),
)}

## Installed

Packages, files and MB that an installation brings, dependencies included.

${table(
  ['', 'packages', 'files', 'MB'],
  [...measured.footprint].map(([name, { packages, files, bytes }]) => [
    name,
    String(packages),
    String(files),
    (bytes / 1_000_000).toFixed(2),
  ]),
)}

## Figures to reach

Ratios to raw fetch where nothing else is said, judged by the medians above.

${table(
  ['what', 'goal', 'this run', ''],
  goals(measured).map(({ what, goal, found, met }) => [what, goal, found, met ? 'met' : '**not met**']),
)}

\`create()\` with a \`MemoryStore\` against a bare POST is measured by \`npm run bench:journal\`.

${measured.explained.trim()}

## Repeating it

\`\`\`sh
npm run build
npm ci --prefix bench/peers
npm run bench
\`\`\`

It takes some minutes and writes this page and its chart; \`npm run bench -- --rounds 10 --items 100000\` is a quick look. Compare figures within one run only.
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
