/**
 * How much a harness tries: a small part in `npm test`, all of it in `npm run test:all` and in CI.
 * The commands of `npm run verify` try more than both. In a browser's page, which has no
 * environment, all of it runs.
 */
export const FULL: boolean = typeof process === 'undefined' || process.env['TEST_EFFORT'] === 'full'

/** Every `step`-th case in a short run, and all cases in a full one. */
export const sample = <Case>(cases: readonly Case[], step: number): readonly Case[] =>
  cases.filter((_, index) => FULL || index % step === 0)

/** The first number in a short run, and the second in a full one. */
export const effort = (short: number, full: number): number => (FULL ? full : short)
