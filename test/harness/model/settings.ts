/** What happens at the same time in the exhaustive runs. */
import { MINUTE } from '../simulation/mishaps.ts'
import type { IntentPlan, Plan } from '../simulation/plan.ts'
import { ANONYMOUS, CREATE, KEY, PRICE, REFERENCE } from '../simulation/scenes.ts'
import type { LaneStep, Setting } from './schedules.ts'

const BOTH: IntentPlan = { ...REFERENCE, ...KEY }

export const create = (
  worker: number,
  further: { quantity?: number; otherKey?: boolean } = {},
): LaneStep => ({ ...CREATE, worker, ...further })
export const recover = (worker: number, takeOver = false): LaneStep => ({ kind: 'recover', worker, takeOver })
const resolve = (worker: number): LaneStep => ({ kind: 'resolve', worker, intent: 0, hasty: true })
const rotate = (worker: number): LaneStep => ({ kind: 'rotate', worker })
const jump = (worker: number, by: number): LaneStep => ({ kind: 'jump', worker, by })
export const pass = (minutes: number): LaneStep => ({ kind: 'pass', minutes })
export const topUp: LaneStep = { kind: 'topUp', amount: PRICE }

const setting = (
  name: string,
  intent: IntentPlan,
  lanes: Setting['lanes'],
  plan: Partial<Plan> = {},
): Setting => ({ name, intent, lanes, plan, mishaps: 0 })

const poor = { balance: 0 } as const
const remembering = { balance: 0, server: { rememberedRefusals: [402] } } as const satisfies Partial<Plan>

/** Without mishaps. */
export const SETTINGS: readonly Setting[] = [
  ...[REFERENCE, KEY, BOTH, ANONYMOUS].map((intent) =>
    setting(`two calls, ${Object.keys(intent).slice(1).join(' and ') || 'no name'}`, intent, [
      [create(0)],
      [create(1)],
    ]),
  ),
  setting('two calls of one client', REFERENCE, [[create(0)], [create(0)]]),
  setting('two calls of one client, no name', ANONYMOUS, [[create(0)], [create(0)]]),
  setting('two payloads', REFERENCE, [[create(0)], [create(1, { quantity: 2 })]]),
  setting('two keys', BOTH, [[create(0)], [create(1, { otherKey: true })]]),
  setting('a call and a recovery', REFERENCE, [[create(0)], [recover(1)]]),
  setting('a call and a recovery that takes over', REFERENCE, [[create(0)], [recover(1, true)]]),
  setting('a call and a recovery that takes over, no name', ANONYMOUS, [[create(0)], [recover(1, true)]]),
  setting('two recoveries of a dead call', REFERENCE, [
    [create(0), { kind: 'kill', worker: 0 }, recover(1, true)],
    [recover(2, true)],
  ]),
  setting('a call and a person', REFERENCE, [[create(0)], [resolve(1), create(1)]]),
  setting('a taken over call and a person', KEY, [[create(0)], [recover(1, true), resolve(1)]]),
  setting('two calls without money', REFERENCE, [[create(0)], [create(1)], [topUp]], poor),
  setting('two calls without money, refusals remembered', REFERENCE, [[create(0)], [create(1)]], remembering),
  setting('refused again, remembered', REFERENCE, [[create(0), create(0), topUp, create(1)]], remembering),
  setting('two payloads without money', KEY, [[create(0)], [create(1, { quantity: 2 }), topUp]], poor),
  setting('after the window', REFERENCE, [[create(0), pass(25), create(1), recover(0)]]),
  setting('refused, and after the window', REFERENCE, [[create(0), pass(25), topUp, create(1)]], poor),
  setting('a clock that goes back', REFERENCE, [[create(0), jump(0, -60 * MINUTE), create(0), recover(0)]]),
  setting('another API key', REFERENCE, [[create(0)], [rotate(1), create(1)]]),
  setting('stores that are not shared', REFERENCE, [[create(0)], [create(1)]], { stores: 'own' }),
]

/** Three at the same time, which take long. */
export const WIDE: readonly Setting[] = [
  setting('three calls', REFERENCE, [[create(0)], [create(1)], [create(2)]]),
  setting('two calls and a recovery', ANONYMOUS, [[create(0)], [create(1)], [recover(2, true)]]),
]
