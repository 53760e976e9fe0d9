/**
 * Changes the core in every way that Stryker knows, one change at a time, and runs the module's
 * tests for each. `survivors.json` must list every undetected change with a reason, and every
 * listed change must survive.
 *
 * Run it in the project's folder. `--help` prints the usage.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { MutantResult, PartialStrykerOptions } from '@stryker-mutator/api/core'
import { oneOf, readArguments } from '../../programs/arguments.ts'
import { MODULES, type Module } from './modules.ts'
import { nameOf, survivors } from './survivors.ts'

/** Minimum score in percent of all modules together. For a single module, only the list counts. */
const LEAST = 95
const RESULTS = '.tmp/mutation'

const { names, incremental } = readArguments(
  {
    usage: `npm run verify mutation [MODULE …] [--incremental]
  MODULE: ${MODULES.map(({ name }) => name).join('; ')}
  without one: all
  --incremental keeps what the last run found where neither the source nor its tests have changed`,
    positionals: Number.POSITIVE_INFINITY,
    options: { incremental: { type: 'boolean', default: false } },
  },
  ({ values, positionals }) => ({
    names: positionals.map((name) =>
      oneOf(
        'MODULE',
        name,
        MODULES.map((module) => module.name),
      ),
    ),
    incremental: values.incremental,
  }),
)
// Import Stryker late: it has its own package.json, which may not be installed if only the usage is
// printed.
const { Stryker } = await import('@stryker-mutator/core')
const chosen = MODULES.filter(({ name }) => names.length === 0 || names.includes(name))

mkdirSync(RESULTS, { recursive: true })
let unexpected = 0
const rows: { name: string; mutants: number; killed: number; survived: number }[] = []
const survived = new Map<string, MutantResult[]>()
for (const module of chosen) {
  const results = await mutate(module)
  // A module that does not load proves nothing, like one that does not compile.
  const broken = results.filter(({ status }) => status === 'RuntimeError').length
  if (broken > 0) console.log(`${broken} mutants did not load, and do not count`)
  const valid = results.filter(
    ({ status }) => status !== 'Ignored' && status !== 'CompileError' && status !== 'RuntimeError',
  )
  const alive = valid.filter(({ status }) => status !== 'Killed' && status !== 'Timeout')
  const killed = valid.length - alive.length
  rows.push({ name: module.name, mutants: valid.length, killed, survived: alive.length })
  survived.set(module.folder, [...(survived.get(module.folder) ?? []), ...alive])
}
for (const [folder, alive] of survived) unexpected += compare(folder, alive)

console.log('\nmodule                   mutants   killed  survived   score')
for (const { name, mutants, killed, survived } of rows)
  console.log(
    `${name.padEnd(24)} ${count(mutants)} ${count(killed)}  ${count(survived)}  ${score(killed, mutants)}`,
  )
const total = (of: 'mutants' | 'killed' | 'survived'): number => rows.reduce((sum, row) => sum + row[of], 0)
const reached = (100 * total('killed')) / total('mutants')
console.log(
  `${total('mutants')} mutants, ${total('killed')} killed, ${total('survived')} survived, score ${reached.toFixed(2)} %, ${unexpected} not as listed`,
)
const enough = names.length > 0 ? total('mutants') > 0 : reached >= LEAST
process.exitCode = unexpected === 0 && enough ? 0 : 1

async function mutate({ name, tests }: Module): Promise<MutantResult[]> {
  console.log(`\n== ${name}`)
  const file = `${RESULTS}/${name.replaceAll('/', '-')}`
  // Do not use Stryker's option testFiles: with it, version 10.1 does not activate mutants of code
  // that runs when a module loads.
  process.env['MUTATION_TESTS'] = JSON.stringify(tests)
  const options: PartialStrykerOptions = {
    testRunner: 'vitest',
    vitest: { configFile: 'tools/packages/mutation/vitest.config.ts', related: false },
    mutate: [`src/${name}.ts`],
    coverageAnalysis: 'perTest',
    concurrency: 1,
    disableTypeChecks: false,
    dryRunTimeoutMinutes: 20,
    // Longer than any test may take, so that a slow test is not mistaken for a hanging mutant.
    timeoutMS: 60_000,
    tempDirName: '.tmp/stryker',
    ignorePatterns: [
      '.tmp',
      'dist',
      '/docs',
      'examples',
      'tools/bench',
      'tools/packages/openapi',
      'tools/packages/site',
      'tools/packages/node_modules',
      'test/engines/node_modules',
      'tools/node-runtime',
    ],
    incremental,
    incrementalFile: `${file}.incremental.json`,
    reporters: ['progress-append-only'],
    clearTextReporter: { allowColor: false },
    allowConsoleColors: false,
    warnings: { slow: false, unknownOptions: true, preprocessorErrors: true, unserializableOptions: true },
  }
  const results = await new Stryker(options).runMutationTest()
  writeFileSync(`${file}.json`, JSON.stringify(results))
  return results
}

/**
 * Prints the differences from a folder's list, and returns their number. After a partial run,
 * missing survivors do not count.
 */
function compare(folder: string, alive: readonly MutantResult[]): number {
  const found = new Map<string, number>()
  const places = new Map<string, string>()
  for (const mutant of alive) {
    const { name, place } = describe(folder, mutant)
    found.set(name, (found.get(name) ?? 0) + 1)
    places.set(name, `${places.get(name) ?? ''} ${place}`)
  }
  const listed = new Map<string, number>()
  for (const survivor of survivors.filter((each) => each.folder === folder)) {
    const name = nameOf(survivor)
    listed.set(name, (listed.get(name) ?? 0) + (survivor.count ?? 1))
  }
  const isWhole = MODULES.every((module) => module.folder !== folder || chosen.includes(module))
  let differences = 0
  for (const key of new Set([...found.keys(), ...listed.keys()])) {
    const survived = found.get(key) ?? 0
    const expected = listed.get(key) ?? 0
    if (survived === expected || (survived < expected && !isWhole)) continue
    differences++
    console.log(
      `${survived > expected ? 'survives and is not listed' : 'is listed and does not survive'} (${survived}, listed ${expected}): ${key}${places.get(key) ?? ''}`,
    )
  }
  return differences
}

function describe(
  folder: string,
  { fileName, mutatorName: mutator, location, replacement = '' }: MutantResult,
): { readonly name: string; readonly place: string } {
  const path = fileName.slice(fileName.lastIndexOf('src/'))
  const { start, end } = location
  // Lines and columns count from 1.
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .slice(start.line - 1, end.line)
  lines.push((lines.pop() ?? '').slice(0, end.column - 1))
  const original = [(lines.shift() ?? '').slice(start.column - 1), ...lines].join('\n')
  return { name: nameOf({ folder, mutator, original, replacement }), place: `${path}:${start.line}` }
}

function count(value: number): string {
  return String(value).padStart(8)
}

function score(killed: number, mutants: number): string {
  return `${((100 * killed) / mutants).toFixed(1).padStart(5)} %`
}
