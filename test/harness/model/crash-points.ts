/** One call, what another process does about it, and the caller's next call, on many services. */
import type { SandboxBehaviour, SandboxCheck } from '../../../src/sandbox/service/behaviour.ts'
import type { FaultAction } from '../../../src/sandbox/service/faults.ts'
import { REFUSED } from '../../support/statuses.ts'
import type { IntentPlan, Plan } from '../simulation/plan.ts'
import { ANONYMOUS, KEY, onOrders, PRICE, REFERENCE } from '../simulation/scenes.ts'
import type { LaneStep, Setting } from './schedules.ts'
import { create, pass, recover, topUp } from './settings.ts'

/** When the claim of a dead call has ended, and when its key has left its window. */
const AFTER_BUSY = pass(2.1)
const PAST_WINDOW = pass(25)

/** The names of the order, and the account of the client. */
const NAMINGS: readonly (readonly [name: string, intent: IntentPlan, account: string | undefined])[] = [
  ['reference and account', REFERENCE, 'shop'],
  ['reference', REFERENCE, undefined],
  ['key', KEY, 'shop'],
  ['no name', ANONYMOUS, 'shop'],
]

const answering = (action: FaultAction, times = 1): Partial<Plan> => ({
  faults: [onOrders({ times, action })],
})

/** The service's reaction to the first request. The wallet of a refused order is filled at once, or later. */
const ENDINGS: readonly (readonly [name: string, plan: Partial<Plan>, ...next: readonly LaneStep[]])[] = [
  ['charged', {}],
  ['refused', { balance: 0 }],
  ['refused, then topped up', { balance: 0 }, topUp],
  ['201 cut', answering({ type: 'cutBody' })],
  ['201 cut thrice', answering({ type: 'cutBody' }, 3)],
  ['in progress', answering({ type: 'crash' })],
  ['charged with the last money, unheard', { balance: PRICE, ...answering({ type: 'commitThenDrop' }) }],
]

/** What another process does about the call. */
const REMEDIES: readonly (readonly [name: string, ...steps: readonly LaneStep[]])[] = [
  ['recover', AFTER_BUSY, recover(1)],
  ['take over', recover(1, true)],
  ['create', AFTER_BUSY, create(1)],
  ['recover late', PAST_WINDOW, recover(1)],
]

const CHECKS: readonly (readonly SandboxCheck[])[] = [
  ['auth', 'validation', 'service', 'balance', 'key'],
  ['auth', 'key', 'validation', 'service', 'balance'],
]
const REFUSALS = [[], REFUSED] as const
const SERVICES = REFUSALS.flatMap((rememberedRefusals) =>
  CHECKS.flatMap((checks) =>
    ([200, 201] as const).map(
      (replayStatus): Partial<SandboxBehaviour> => ({
        orphanedMarkLifetime: 2000,
        rememberedRefusals,
        checks,
        replayStatus,
      }),
    ),
  ),
)

/** Every combination, without mishaps. */
export const CRASH_POINTS: readonly Setting[] = NAMINGS.flatMap(([naming, intent, account]) =>
  ENDINGS.flatMap(([ending, plan, ...next]) =>
    REMEDIES.flatMap(([remedy, ...steps]) =>
      SERVICES.map((server) => ({
        name: `${naming}, ${ending}, ${remedy}, ${JSON.stringify(server)}`,
        intent,
        lanes: [[create(0), ...next, ...steps, AFTER_BUSY, topUp, create(2)]],
        plan: { account, server, ...plan },
        mishaps: 0,
      })),
    ),
  ),
)
