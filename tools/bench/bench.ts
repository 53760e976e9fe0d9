/**
 * `npm run bench`: what users compare, as one page in Markdown. Needs an idle machine.
 *
 * `--write` puts the result into docs/performance.md; names of sections run only those.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { arch, availableParallelism, cpus, loadavg, type } from 'node:os'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { isBuilt, root } from '../build/ensure-built.ts'
import { readArguments, UsageError } from '../programs/arguments.ts'
import { install } from '../programs/install.ts'

/** Each is a program that prints a table: one process each, so that none slows down another. */
const SECTIONS: Readonly<
  Record<string, { readonly title: string; readonly flags?: readonly string[]; readonly alone?: true }>
> = {
  requests: { title: 'Requests and orders' },
  lists: { title: 'Long lists' },
  start: { title: 'Start' },
  bundle: { title: 'Bundle' },
  stores: { title: 'Stores' },
  memory: { title: 'Many orders in 256 MB', flags: ['--max-old-space-size=256', '--expose-gc'] },
  reconcile: { title: 'A million records', flags: ['--max-old-space-size=256'], alone: true },
}
const PAGE = join(root, 'docs/performance.md')
const MARKS = ['<!-- figures: npm run bench -- --write -->', '<!-- end of figures -->'] as const

const { names, write } = readArguments(
  {
    usage: `npm run bench -- [--write] [SECTION]
  prints figures for docs/performance.md, in about eight minutes; --write puts them there
  sections: ${Object.keys(SECTIONS).join(', ')}`,
    positionals: 1,
    options: { write: { type: 'boolean', default: false } },
  },
  ({ positionals, values }) => {
    for (const name of positionals)
      if (!Object.hasOwn(SECTIONS, name)) throw new UsageError(`Unknown section: ${name}.`)
    if (values.write && positionals.length > 0) throw new UsageError('--write needs all sections.')
    // A section that takes minutes runs only when it is named.
    const usual = Object.keys(SECTIONS).filter((name) => SECTIONS[name]?.alone !== true)
    return { names: positionals.length > 0 ? positionals : usual, write: values.write }
  },
)
// The clients of the databases.
if (names.includes('stores')) install('test/engines')
if (!isBuilt()) throw new Error('The build is missing or older than the source: npm run build')

function machine(): string {
  // Some virtual machines have no model name. Then the architecture remains.
  const model = cpus()[0]?.model.trim().replace(/\s+/g, ' ') ?? 'unknown processor'
  const load = ((loadavg()[0] ?? 0) / availableParallelism()).toFixed(1)
  const { node, undici } = process.versions
  return (
    `Measured on ${availableParallelism()} processors (${model}, ${arch()}, ${type()}), which had ${load} processes each before.\n` +
    `Node ${node} with undici ${undici} behind its \`fetch\`; undici ${manifest.devDependencies.undici} from npm; ky ${manifest.dependencies.ky}.`
  )
}

function figuresOf(name: string): string {
  process.stderr.write(`measuring ${name}\n`)
  const flags = ['--disable-warning=ExperimentalWarning', ...(SECTIONS[name]?.flags ?? [])]
  const { stdout, status } = spawnSync(
    process.execPath,
    [...flags, join(import.meta.dirname, `${name}.ts`)],
    {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  if (status !== 0) throw new Error(`${name} failed`)
  return `### ${SECTIONS[name]?.title}\n\n${stdout.trim()}\n\nRepeat with \`npm run bench -- ${name}\`.\n`
}

const figures = [`${machine()}\n`, ...names.map(figuresOf)].join('\n')
process.stdout.write(figures)
if (write) {
  const page = readFileSync(PAGE, 'utf8')
  const [start, end] = MARKS.map((mark) => page.indexOf(mark)) as [number, number]
  if (start < 0 || end < start) throw new Error(`${PAGE} has no place for the figures`)
  writeFileSync(PAGE, `${page.slice(0, start + MARKS[0].length)}\n\n${figures}\n${page.slice(end)}`)
}
