import type { Cell } from './blocks.ts'
import { KY_ALONE } from './contenders.ts'
import { CREATE, CREATE_OVER_UNDICI } from './create.ts'
import type { Overhead } from './overhead.ts'
import type { Measured } from './report.ts'
import type { Spread } from './statistics.ts'

/** One goal, and the result of this run. */
export interface Goal {
  readonly what: string
  readonly goal: string
  readonly found: string
  readonly met: boolean
  /** The reason for missing the goal, in one sentence. */
  readonly why: string
}

export const OURS = 'this package'
export const OVER_UNDICI = 'this package, undici'
/** The clients that must not be faster than a request over the platform's fetch. */
const OVER_FETCH = ['ky, defaults', 'openai', 'octokit request', 'axios']

function cell(overhead: Overhead, name: string, task: string): Cell {
  const found = overhead.get(name)?.get(task)
  if (found === undefined) throw new Error(`${task} of ${name} was not measured`)
  return found
}

function ratioOf(found: ReadonlyMap<string, Spread>, name: string, base: string): number {
  return (found.get(name)?.median ?? Number.NaN) / (found.get(base)?.median ?? Number.NaN)
}

/** Reasons, found with `npm run bench profile` and `npm run bench collections`. */
const WHY = {
  ky: 'ky, and the `Request` and `Headers` that Node creates for it: "ky, one attempt" shows most of this cost. [undici](guide/undici.md) avoids it.',
  noise: 'The difference is within the noise of a run (see the quartiles).',
  placing:
    '`create()` writes the record twice, serialises canonical JSON and derives seven ids ([profile](#profiles)).',
  window:
    'The responses of a window arrive together, and one thread reads them one at a time ([profile](#profiles) of a list of 50).',
  ids: 'The client keeps the ids of two pages, so it can skip rows that it has already returned. A loop over `fetch` returns rows twice if they move.',
  first:
    'The first call evaluates ky and compiles each function that it uses. `NODE_COMPILE_CACHE` saves about 40% of that.',
  packed:
    'The file contains two builds (for Node with its dependencies, for browsers), each as ESM and CommonJS, and all guides.',
  bundle:
    'Three quarters of the bundle are this package, and half of that is the order protocol: [what each feature costs](decisions/bundle-size.md).',
} as const

const atMost = (what: string, goal: number, value: number, why: string): Goal => ({
  what,
  goal: `at most ${goal}`,
  found: value.toFixed(2),
  met: value <= goal,
  why,
})

const atLeast = (what: string, goal: number, value: number, why: string): Goal => ({
  what,
  goal: `at least ${goal}`,
  found: value < 20 ? value.toFixed(2) : value.toFixed(0),
  met: value >= goal,
  why,
})

/** The goals, judged by the medians of one run. */
export function goals(measured: Measured): Goal[] {
  const { overhead, paging, imports, firstAnswer, memory, sizes, create, packed } = measured
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
      why: name === OURS ? WHY.ky : WHY.noise,
    }
  }
  const everybody = [...overhead.keys()].filter(
    (name) => !name.startsWith(OURS) && !name.startsWith('raw fetch') && name !== KY_ALONE,
  )
  const rate = (ahead: number): number => paging.ours.get(ahead)?.median ?? Number.NaN
  const tasks = ['GET', 'list of 50', 'POST'] as const
  const fetchGoals = { GET: 1.4, 'list of 50': 1.38, POST: 1.6 }
  const undiciGoals = { GET: 1, 'list of 50': 1.1, POST: 0.8 }
  const placing = (name: string): number => create.get(name)?.wall.median ?? Number.NaN
  return [
    ...tasks.map((task) => atMost(`${task} over fetch`, fetchGoals[task], wall(OURS, task), WHY.ky)),
    ...tasks.map((task) => below(OURS, OVER_FETCH, task)),
    ...tasks.map((task) =>
      atMost(`${task} over undici`, undiciGoals[task], wall(OVER_UNDICI, task), WHY.noise),
    ),
    ...tasks.map((task) => below(OVER_UNDICI, everybody, task)),
    ...['GET', 'list', 'POST'].map((task) =>
      atMost(`${task} over undici, 64 at a time`, 1, wall(OVER_UNDICI, `${task}, 64 at a time`), WHY.noise),
    ),
    atMost('`create()` over fetch', 1.6, placing(CREATE), WHY.placing),
    atMost('`create()` over undici', 0.95, placing(CREATE_OVER_UNDICI), WHY.placing),
    atLeast('pages per second, 4 in flight', 165, rate(4), WHY.window),
    atLeast('pages per second, 8 in flight', 290, rate(8), WHY.window),
    atMost(
      'peak memory of a long list, against a loop over fetch',
      1.05,
      ratioOf(memory.peak, OURS, 'a loop over fetch'),
      WHY.ids,
    ),
    atMost('import against ky alone', 0.5, ratioOf(imports, OURS, 'ky'), WHY.first),
    atMost('first response against raw fetch', 1.3, ratioOf(firstAnswer, OURS, 'raw fetch'), WHY.first),
    atMost('MB of the package, packed', 0.7, packed.packed / 1e6, WHY.packed),
    atMost('MB of the package, unpacked', 3, packed.unpacked / 1e6, WHY.packed),
    atMost('kB in a browser', 46, (sizes.get(OURS) ?? Number.NaN) / 1000, WHY.bundle),
  ]
}
