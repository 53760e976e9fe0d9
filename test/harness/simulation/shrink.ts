import type { Plan } from './plan.ts'
import { type Result, simulate } from './simulate.ts'

export { simulate }

/** A failing run without everything that it does not need to fail. */
export interface Shrunk extends Result {
  /** The plan, whose service has only those switches that matter; all others are as they usually are. */
  readonly plan: Plan
  /** What was left out. */
  readonly without: ReadonlySet<string>
}

/** Leaves out one step, fault, mishap or switch of the service after the other, as long as the same promise is broken. */
export async function shrink(whole: Plan): Promise<Shrunk> {
  const promises = new Set((await simulate(whole)).broken.map(promiseOf))
  let plan = whole
  let without: ReadonlySet<string> = new Set()
  const fails = async (smaller: Plan, less: ReadonlySet<string>): Promise<boolean> =>
    (await simulate(smaller, { without: less })).broken.some((text) => promises.has(promiseOf(text)))
  for (let smaller = true; smaller; ) {
    smaller = false
    for (const part of (await simulate(plan, { without })).parts) {
      const less = new Set([...without, part])
      if (!(await fails(plan, less))) continue
      without = less
      smaller = true
    }
    for (const name of Object.keys(plan.server)) {
      const less = withoutSwitch(plan, name)
      if (!(await fails(less, without))) continue
      plan = less
      smaller = true
    }
  }
  return { ...(await simulate(plan, { without, traced: true })), plan, without }
}

/** The plan with one switch of its service as it usually is. */
export function withoutSwitch(plan: Plan, name: string): Plan {
  const server = Object.fromEntries(Object.entries(plan.server).filter(([other]) => other !== name))
  return { ...plan, server }
}

/** Number of the promise that a sentence says is broken, for example `I5`. */
function promiseOf(sentence: string): string {
  return sentence.split(':', 1)[0] ?? ''
}
