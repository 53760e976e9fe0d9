/**
 * How much a harness does: a taste of it in `npm test`, a whole programme in `npm run test:all` and in CI. The commands of
 * `npm run verify` go on for longer than both. In the page of a browser, which has no environment, it is whole, too.
 */
export const FULL: boolean = typeof process === 'undefined' || process.env['TEST_EFFORT'] === 'full'

/** Every `step`-th of some cases in a short run, all of them in a full one. */
export const sample = <Case>(cases: readonly Case[], step: number): readonly Case[] =>
  cases.filter((_, index) => FULL || index % step === 0)

/** The one number in a short run and the other in a full one. */
export const effort = (short: number, full: number): number => (FULL ? full : short)
