/** Replaces Vitest in a page: collects tests by file and runs them one after the other. */
import {
  ASYMMETRIC_MATCHERS_OBJECT,
  chai,
  type ExpectStatic,
  JestAsymmetricMatchers,
  JestChaiExpect,
  setState,
} from '@vitest/expect'
import { fn, spyOn } from '@vitest/spy'
import { stringify } from '@vitest/utils/display'
import type { expect as VitestExpect } from 'vitest'

export const vi = { fn, spyOn }

type Body = (...row: unknown[]) => unknown

interface Suite {
  readonly title: string
  readonly above: Suite | undefined
  readonly beforeAll: Body[]
  readonly beforeEach: Body[]
  readonly afterEach: Body[]
  readonly afterAll: Body[]
  readonly children: (Suite | Test)[]
}

interface Test {
  readonly title: string
  readonly run: Body
}

/** The results of one file's tests. */
export interface FileReport {
  readonly file: string
  readonly passed: number
  /** Title and reason of each test that failed. */
  readonly failed: readonly string[]
}

const suiteOf = (title: string, above: Suite | undefined): Suite => ({
  title,
  above,
  beforeAll: [],
  beforeEach: [],
  afterEach: [],
  afterAll: [],
  children: [],
})

let collecting: Suite = suiteOf('', undefined)

/** Inserts a row's values into a title, as Vitest does. */
function titleOf(template: string, row: readonly unknown[]): string {
  let next = 0
  const first = row[0]
  const fields: object = typeof first === 'object' && first !== null ? first : {}
  return template.replace(/%[sijdo]|\$(\w+)/g, (place, name: string | undefined) => {
    const value: unknown = name === undefined ? row[next++] : Reflect.get(fields, name)
    return place === '%j' || place === '%o' ? stringify(value) : String(value)
  })
}

function eachOf(define: (title: string, body: Body) => void) {
  return (rows: readonly unknown[]) => (template: string, body: Body) => {
    for (const row of rows) {
      const values: readonly unknown[] = Array.isArray(row) ? row : [row]
      define(titleOf(template, values), () => body(...values))
    }
  }
}

function defineSuite(title: string, body: Body): void {
  const suite = suiteOf(title, collecting)
  collecting.children.push(suite)
  collecting = suite
  body()
  collecting = suite.above ?? suite
}

function defineTest(title: string, body: Body): void {
  collecting.children.push({ title, run: body })
}

export const describe = Object.assign(defineSuite, { each: eachOf(defineSuite) })
const it = Object.assign(defineTest, { each: eachOf(defineTest) })

export { it, it as test }
export const beforeAll = (body: Body): void => void collecting.beforeAll.push(body)
export const beforeEach = (body: Body): void => void collecting.beforeEach.push(body)
export const afterEach = (body: Body): void => void collecting.afterEach.push(body)
export const afterAll = (body: Body): void => void collecting.afterAll.push(body)

for (const plugin of [JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin)
const assertion = (value: unknown, message?: string): unknown => chai.expect(value, message)
Object.assign(
  assertion,
  chai.expect,
  (globalThis as unknown as Record<symbol, object>)[ASYMMETRIC_MATCHERS_OBJECT],
)
setState({ assertionCalls: 0, customTesters: [] }, assertion as unknown as ExpectStatic)
/** Vitest's own `expect`, without the parts that need its runner. */
export const expect = assertion as unknown as typeof VitestExpect

/** Time limit of one test, in milliseconds. */
const PATIENCE = 30_000

/** Runs the tests that `define` registers, and returns the results. */
export async function runFile(file: string, define: () => void): Promise<FileReport> {
  const root = suiteOf('', undefined)
  collecting = root
  define()
  const report = { file, passed: 0, failed: [] as string[] }
  await runSuite(root, [], report)
  return report
}

async function runSuite(
  suite: Suite,
  path: readonly string[],
  report: { passed: number; failed: string[] },
): Promise<void> {
  const lineage: Suite[] = []
  for (let link: Suite | undefined = suite; link !== undefined; link = link.above) lineage.unshift(link)
  for (const hook of suite.beforeAll) await hook()
  for (const child of suite.children) {
    const titles = [...path, child.title]
    if (!('run' in child)) {
      await runSuite(child, titles, report)
      continue
    }
    try {
      await inTime(async () => {
        for (const { beforeEach: hooks } of lineage) for (const hook of hooks) await hook()
        try {
          await child.run()
        } finally {
          for (const { afterEach: hooks } of lineage.toReversed()) for (const hook of hooks) await hook()
        }
      })
      report.passed++
    } catch (error) {
      const { message, stack = '' } = error instanceof Error ? error : new Error(String(error))
      report.failed.push(`${titles.join(' > ')}: ${message}\n${stack.split('\n').slice(0, 6).join('\n')}`)
    }
  }
  for (const hook of suite.afterAll) await hook()
}

async function inTime(body: () => Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not over after ${PATIENCE} ms`)), PATIENCE)
  })
  try {
    await Promise.race([body(), late])
  } finally {
    clearTimeout(timer)
  }
}
