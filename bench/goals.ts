import type { Cell } from './blocks.ts'
import { KY_ALONE } from './contenders.ts'
import { CREATE } from './create.ts'
import type { Overhead } from './overhead.ts'
import type { Measured } from './report.ts'
import type { Spread } from './statistics.ts'

/** One line of what is to be reached, and what this run found. */
export interface Goal {
  readonly what: string
  readonly goal: string
  readonly found: string
  readonly met: boolean
}

const OURS = 'this package'
const OVER_UNDICI = 'this package, undici'
/** Those whose time a request over the platform's fetch is to stay below. */
const OVER_FETCH = ['ky, defaults', 'openai', 'octokit request', 'axios']

function cell(overhead: Overhead, name: string, task: string): Cell {
  const found = overhead.get(name)?.get(task)
  if (found === undefined) throw new Error(`${task} of ${name} was not measured`)
  return found
}

function ratioOf(found: ReadonlyMap<string, Spread>, name: string, base: string): number {
  return (found.get(name)?.median ?? Number.NaN) / (found.get(base)?.median ?? Number.NaN)
}

const atMost = (what: string, goal: number, value: number): Goal => ({
  what,
  goal: `at most ${goal}`,
  found: value.toFixed(2),
  met: value <= goal,
})

const atLeast = (what: string, goal: number, value: number): Goal => ({
  what,
  goal: `at least ${goal}`,
  found: value < 20 ? value.toFixed(2) : value.toFixed(0),
  met: value >= goal,
})

/** The figures that were aimed at, judged by the medians of one run. */
export function goals(measured: Measured): Goal[] {
  const { overhead, paging, imports, firstAnswer, memory, sizes, create } = measured
  const wall = (name: string, task: string): number => cell(overhead, name, task).wall.median
  const below = (name: string, rivals: readonly string[], task: string): Goal => {
    const [rival = '', least = Number.NaN] =
      rivals.map((each) => [each, wall(each, task)] as const).toSorted((a, b) => a[1] - b[1])[0] ?? []
    const value = wall(name, task)
    return {
      what: `${task}, ${name}, against the fastest of ${rivals === OVER_FETCH ? 'ky, openai, octokit and axios' : 'all others'}`,
      goal: `below ${least.toFixed(2)} (${rival})`,
      found: value.toFixed(2),
      met: value < least,
    }
  }
  const everybody = [...overhead.keys()].filter(
    (name) => !name.startsWith(OURS) && !name.startsWith('raw fetch') && name !== KY_ALONE,
  )
  const rate = (ahead: number): number => paging.ours.get(ahead)?.median ?? Number.NaN
  const [fastest = '', peerRate = Number.NaN] =
    [...paging.peers]
      .map(([name, { median }]) => [name, median] as const)
      .toSorted((a, b) => b[1] - a[1])[0] ?? []
  const tasks = ['GET', 'list of 50', 'POST'] as const
  const fetchGoals = { GET: 1.45, 'list of 50': 1.35, POST: 1.6 }
  const undiciGoals = { GET: 1, 'list of 50': 1.1, POST: 0.8 }
  return [
    ...tasks.map((task) => atMost(`${task} over fetch`, fetchGoals[task], wall(OURS, task))),
    ...tasks.map((task) => below(OURS, OVER_FETCH, task)),
    ...tasks.map((task) => atMost(`${task} over undici`, undiciGoals[task], wall(OVER_UNDICI, task))),
    ...tasks.map((task) => below(OVER_UNDICI, everybody, task)),
    ...['GET', 'list', 'POST'].map((task) =>
      atMost(`${task} over undici, 64 at a time`, 1, wall(OVER_UNDICI, `${task}, 64 at a time`)),
    ),
    atMost('list of 50, CPU', 1.45, cell(overhead, OURS, 'list of 50').cpu.median),
    atLeast('pages per second, 4 in flight', 165, rate(4)),
    atLeast(`the same against the fastest of the others (${fastest})`, 3.7, rate(4) / peerRate),
    atLeast('pages per second, 8 in flight', 290, rate(8)),
    atLeast(`the same against the fastest of the others (${fastest})`, 6.5, rate(8) / peerRate),
    atMost('peak memory, one page at a time', 0.85, ratioOf(memory.peak, OURS, 'a loop over fetch')),
    atMost(
      'peak memory, window of 4',
      1.1,
      ratioOf(memory.peak, `${OURS}, prefetch: 4`, 'a loop over fetch'),
    ),
    atMost('import against ky alone', 0.5, ratioOf(imports, OURS, 'ky')),
    atMost('first answer against raw fetch', 1.3, ratioOf(firstAnswer, OURS, 'raw fetch')),
    atMost('kB in a browser', 25, (sizes.get(OURS) ?? Number.NaN) / 1000),
    atMost('`create()` against a bare POST, CPU', 1.6, create.get(CREATE)?.cpu.median ?? Number.NaN),
  ]
}
