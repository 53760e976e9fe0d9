/** Runs seeds in a worker thread. */
import { runInThread } from '../../support/seeds.ts'
import { planOf } from './plan.ts'
import { simulate } from './simulate.ts'

export const noCounts = () => ({ seeds: 0, requests: 0, charges: 0, deaths: 0 })
export type Count = keyof ReturnType<typeof noCounts>

const REPORT = 500

await runInThread(REPORT, noCounts, async (seed, { counts, failures }) => {
  const { broken, threw, requests, charges, deaths } = await simulate(planOf(seed))
  counts.seeds++
  counts.requests += requests
  counts.charges += charges
  counts.deaths += deaths
  if (broken.length > 0) failures.push({ seed, broken, threw })
})
