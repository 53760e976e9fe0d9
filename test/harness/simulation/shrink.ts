import type { Plan } from './plan.ts'
import { type Result, simulate } from './simulate.ts'

export { simulate }

/** A failing run without the parts that it does not need to fail. */
export interface Shrunk extends Result {
  /** The plan. Its service has only the settings that matter, and defaults otherwise. */
  readonly plan: Plan
  readonly without: ReadonlySet<string>
}

/**
 * Omits one step, fault, mishap or setting of the service after the other, as long as the same
 * promise is broken.
 */
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

/** The plan with one setting of its service at its default. */
export function withoutSwitch(plan: Plan, name: string): Plan {
  const server = Object.fromEntries(Object.entries(plan.server).filter(([other]) => other !== name))
  return { ...plan, server }
}

/** Number of the promise in a sentence about a broken promise, for example `I5`. */
function promiseOf(sentence: string): string {
  return sentence.split(':', 1)[0] ?? ''
}
