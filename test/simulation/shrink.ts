import type { Plan } from './plan.ts'
import { type Result, simulate } from './simulate.ts'

/** A failing run without everything that it does not need to fail. */
export interface Shrunk extends Result {
  /** What was left out. */
  readonly without: ReadonlySet<string>
}

/** Leaves out one step, fault or mishap after the other, as long as the same promise is broken. */
export async function shrink(plan: Plan): Promise<Shrunk> {
  const whole = await simulate(plan)
  const promises = new Set(whole.broken.map(promiseOf))
  let without: ReadonlySet<string> = new Set()
  for (let smaller = true; smaller; ) {
    smaller = false
    for (const part of (await simulate(plan, { without })).parts) {
      const less = new Set([...without, part])
      const { broken } = await simulate(plan, { without: less })
      if (!broken.some((text) => promises.has(promiseOf(text)))) continue
      without = less
      smaller = true
    }
  }
  return { ...(await simulate(plan, { without, traced: true })), without }
}

/** Number of the promise that a sentence says is broken, for example `I5`. */
function promiseOf(sentence: string): string {
  return sentence.split(':', 1)[0] ?? ''
}
