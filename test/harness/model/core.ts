/** All of `src/orders` that the exhaustive model executes or reads. */
export {
  askedContent,
  begunContent,
  claimedContent,
  nextKey,
  refusalUnder,
  repeatedContent,
  sameApiKey,
  tagOf,
} from '../../../src/orders/claim.ts'
export {
  CLOCK_SKEW,
  type Condition,
  type Facts,
  isBusy,
  isFromFuture,
  PLAIN_FACTS,
} from '../../../src/orders/conditions.ts'
export { chargedOf, type OrderContext } from '../../../src/orders/context.ts'
export { type Intent, readIntent } from '../../../src/orders/intent.ts'
export { Journal } from '../../../src/orders/journal.ts'
export { isTooLate, mayBeSentUnder } from '../../../src/orders/key-attempts.ts'
export { isAnother } from '../../../src/orders/newest.ts'
export { judgeOutcome, OUTCOMES, type OutcomeKind } from '../../../src/orders/outcome.ts'
export {
  isAskedAgain,
  isPending,
  type JournalRecord,
  type RecordContent,
  type Rejection,
} from '../../../src/orders/record.ts'
export { mayReturn } from '../../../src/orders/reply.ts'
export { type Command, decide, type Phase, phaseOf, RULES, type StepOf } from '../../../src/orders/rules.ts'
export { isShared, meaningOf, movesOn } from '../../../src/orders/send-order.ts'
export { apply, isKnown, type RecordEvent } from '../../../src/orders/transitions.ts'
