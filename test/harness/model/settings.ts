/** The kinds of orders and services that the search walks through. */
import type { Call, Fault, Pass, Setting } from './world.ts'

const create = { command: 'create' } as const
const createB = { command: 'create', payload: 'b' } as const
const recover = { command: 'recover' } as const
const PEOPLE: readonly Call[] = [
  { command: 'resolve' },
  { command: 'resolve', otherOrder: true },
  { command: 'abandon' },
  { command: 'forget' },
]
const FAULTS: readonly Fault[] = [
  'a process is killed',
  'a write comes late',
  'a call is aborted',
  'a response is lost',
  'a response cannot be read',
  'the service fails',
  'nothing is sent',
]
const TIME: readonly Pass[] = ['25 minutes pass', 'the clock goes back', 'the wallet is filled']

const PLAIN = { faults: FAULTS, passes: TIME, processes: 2, funds: true, remembersRefusals: true } as const

/** With at most that many calls, faults and passes. */
const setting = (
  name: string,
  order: Setting['order'],
  [calls, faults, passes]: readonly [calls: number, faults: number, passes: number],
  given: Partial<Setting>,
): Setting => ({ ...PLAIN, calls: [], name, order, most: { calls, faults, passes }, ...given })

const withAndWithoutFunds = (setting: Setting): readonly Setting[] =>
  [true, false].map((funds) => ({
    ...setting,
    name: `${setting.name}, ${funds ? 'funds' : 'no funds'}`,
    funds,
  }))

/** A setting that is too large for `npm test`, with every service. */
const wide = (...[name, ...given]: Parameters<typeof setting>): readonly Setting[] =>
  withAndWithoutFunds({ ...setting(name, ...given), wide: true }).flatMap((each) =>
    [true, false].map((remembersRefusals) => ({
      ...each,
      name: `${each.name}, refusals ${remembersRefusals ? 'remembered' : 'forgotten'}`,
      remembersRefusals,
    })),
  )

const NAMED: readonly Call[] = [create, createB, recover, ...PEOPLE]
const EVERYTHING: readonly Call[] = [
  ...NAMED,
  { command: 'create', misfit: true },
  { command: 'recover', all: true },
  { command: 'recover', takesOver: true },
]
const GIVEN: readonly Call[] = [
  { command: 'create', key: 'k' },
  { command: 'create', key: 'l' },
]

const HIDDEN: readonly Pass[] = ['25 minutes pass', 'the row is damaged', 'the API key changes']

/** Small settings, which together use every rule, and wide ones. */
export const SETTINGS: readonly Setting[] = [
  // Sequential calls.
  ...withAndWithoutFunds(
    setting('one call after the other', 'ref:r', [2, 1, 1], {
      processes: 1,
      calls: EVERYTHING,
      faults: ['a response is lost', 'a response cannot be read', 'a call is aborted'],
      passes: HIDDEN,
    }),
  ),
  setting('refused again and again', 'ref:r', [4, 0, 1], {
    processes: 1,
    calls: [create, recover, { command: 'create', misfit: true }],
    faults: [],
    passes: ['25 minutes pass', 'the wallet is filled'],
    funds: false,
  }),
  setting('old, and damaged or of another API key', 'ref:r', [2, 1, 2], {
    processes: 1,
    calls: [create, recover, { command: 'recover', all: true }],
    faults: ['a call is aborted'],
    passes: HIDDEN,
  }),
  setting('a key, one call after the other', 'key:k', [2, 1, 1], {
    processes: 1,
    calls: [create, createB, recover, ...PEOPLE],
    faults: ['a response is lost', 'the service fails'],
    funds: false,
  }),
  ...(
    [
      ['refused', [3, 0, 1], [], ['the wallet is filled']],
      ['never sent', [2, 2, 0], ['nothing is sent'], []],
      ['left open', [2, 1, 1], ['a call is aborted'], ['25 minutes pass']],
      ['never readable', [2, 1, 1], ['a response cannot be read'], ['the wallet is filled']],
    ] as const
  ).map(([what, most, faults, passes]) =>
    setting(`keys given to a reference, ${what}`, 'ref:r', most, {
      processes: 1,
      calls: GIVEN,
      faults,
      passes,
      funds: false,
    }),
  ),
  setting('a key that another order has, one call after the other', 'key:k', [2, 0, 1], {
    processes: 1,
    taken: true,
    calls: [create, recover],
    faults: [],
    passes: ['25 minutes pass'],
  }),
  setting('a key that another order has, one client', 'key:k', [3, 0, 0], {
    oneClient: true,
    taken: true,
    calls: [create, recover, ...PEOPLE],
    faults: [],
    passes: [],
  }),
  setting('a key that another order has, two clients', 'key:k', [2, 0, 0], {
    taken: true,
    calls: [create, { command: 'abandon' }],
    faults: [],
    passes: [],
  }),
  // Two concurrent calls.
  setting('two orders of one name at the same time', 'ref:r', [2, 0, 0], {
    calls: [...GIVEN, createB],
    faults: [],
    passes: [],
  }),
  ...withAndWithoutFunds(
    setting('calls without a name after each other', 'anon', [3, 1, 1], {
      processes: 1,
      calls: [create, recover, { command: 'create', misfit: true }],
      faults: ['a call is aborted', 'a response cannot be read'],
      passes: ['16 minutes pass', 'the row is damaged'],
    }),
  ),
  setting('calls without a name at the same time', 'anon', [3, 1, 0], {
    calls: [create, recover],
    faults: ['a call is aborted'],
    passes: [],
  }),
  setting('a person decides meanwhile', 'ref:r', [3, 1, 1], {
    calls: [
      { ...create, by: 0 },
      { command: 'abandon', by: 1 },
    ],
    faults: ['a call is aborted'],
    passes: ['the clock goes back'],
  }),
  setting('a person decides after another call took the order over', 'ref:r', [3, 1, 0], {
    calls: [
      { ...create, by: 0 },
      { command: 'recover', takesOver: true, by: 1 },
      { command: 'abandon', by: 1 },
    ],
    faults: ['nothing is sent'],
    passes: [],
  }),
  setting('another API key', 'ref:r', [2, 1, 1], {
    calls: [create, recover],
    faults: ['a response is lost', 'a response cannot be read'],
    passes: ['the API key changes'],
  }),
  setting('calls of one client', 'ref:r', [3, 1, 0], {
    oneClient: true,
    calls: [create, recover, ...PEOPLE],
    faults: ['a call is aborted'],
    passes: [],
  }),
  setting('stores that are not shared', 'ref:r', [2, 1, 0], {
    unshared: true,
    calls: [create, recover],
    passes: [],
  }),
  // Wide settings.
  ...(['ref:r', 'key:k'] as const).flatMap((order) =>
    wide(`two at the same time, ${order}`, order, [2, 1, 1], { calls: NAMED }),
  ),
  ...wide('two at the same time, no name', 'anon', [3, 1, 1], {
    calls: [create, recover, { command: 'create', misfit: true }],
    passes: [...TIME, '16 minutes pass', 'the row is damaged'],
  }),
  ...(['ref:r', 'key:k'] as const).flatMap((order) =>
    wide(`three after each other, ${order}`, order, [3, 1, 1], {
      processes: 1,
      calls: EVERYTHING,
      passes: [...TIME, ...HIDDEN],
    }),
  ),
  ...wide('keys given to a reference again and again', 'ref:r', [4, 1, 1], {
    processes: 1,
    calls: [...GIVEN, create, { command: 'abandon' }],
    faults: ['a response is lost', 'nothing is sent'],
  }),
  setting('three over stores that are not shared', 'ref:r', [3, 1, 0], {
    wide: true,
    unshared: true,
    calls: [create, recover],
    passes: [],
  }),
]
