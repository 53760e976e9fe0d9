/** The kinds of orders and services that the search walks through. */
import type { Call, Fault, Pass, Setting } from './world.ts'

const create = { command: 'create' } as const
const createB = { command: 'create', payload: 'b' } as const
const enqueue = { command: 'enqueue' } as const
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

const both = (setting: Omit<Setting, 'funds' | 'remembersRefusals'>): readonly Setting[] =>
  [true, false].flatMap((funds) =>
    [true, false].map((remembersRefusals) => ({
      ...setting,
      name: `${setting.name}, ${funds ? 'funds' : 'no funds'}, refusals ${remembersRefusals ? 'remembered' : 'forgotten'}`,
      funds,
      remembersRefusals,
    })),
  )

const NAMED: readonly Call[] = [create, createB, enqueue, recover, ...PEOPLE]
const EVERYTHING: readonly Call[] = [
  ...NAMED,
  { command: 'enqueue', payload: 'b' },
  { command: 'create', misfit: true },
  { command: 'enqueue', misfit: true },
  { command: 'recover', all: true },
  { command: 'recover', takesOver: true },
]
const GIVEN: readonly Call[] = [
  { command: 'create', key: 'k' },
  { command: 'create', key: 'l' },
  { command: 'enqueue', key: 'k' },
  { command: 'enqueue', key: 'l' },
]

const HIDDEN: readonly Pass[] = ['25 minutes pass', 'the row is damaged', 'the API key changes']

/** Small settings, which together use every rule, and wide ones. */
export const SETTINGS: readonly Setting[] = [
  // Sequential calls.
  ...[true, false].map((funds) => ({
    ...PLAIN,
    name: `one call after the other, ${funds ? 'funds' : 'no funds'}`,
    order: 'ref:r' as const,
    processes: 1 as const,
    calls: EVERYTHING,
    faults: ['a response is lost', 'a response cannot be read', 'a call is aborted'] as const,
    passes: HIDDEN,
    funds,
    most: { calls: 2, faults: 1, passes: 1 },
  })),
  {
    ...PLAIN,
    name: 'refused again and again',
    order: 'ref:r',
    processes: 1,
    calls: [create, enqueue, recover, { command: 'create', misfit: true }],
    faults: [],
    passes: ['25 minutes pass', 'the wallet is filled'],
    funds: false,
    most: { calls: 4, faults: 0, passes: 1 },
  },
  {
    ...PLAIN,
    name: 'old, and damaged or of another API key',
    order: 'ref:r',
    processes: 1,
    calls: [create, recover, { command: 'recover', all: true }],
    faults: ['a call is aborted'],
    passes: HIDDEN,
    most: { calls: 2, faults: 1, passes: 2 },
  },
  {
    ...PLAIN,
    name: 'a key, one call after the other',
    order: 'key:k',
    processes: 1,
    calls: [create, createB, enqueue, recover, ...PEOPLE],
    faults: ['a response is lost', 'the service fails'],
    funds: false,
    most: { calls: 2, faults: 1, passes: 1 },
  },
  ...(
    [
      ['refused', [], ['the wallet is filled'], { calls: 3, faults: 0, passes: 1 }],
      ['never sent', ['nothing is sent'], [], { calls: 2, faults: 2, passes: 0 }],
      ['left open', ['a call is aborted'], ['25 minutes pass'], { calls: 2, faults: 1, passes: 1 }],
      [
        'never readable',
        ['a response cannot be read'],
        ['the wallet is filled'],
        { calls: 2, faults: 1, passes: 1 },
      ],
    ] as const
  ).map(([what, faults, passes, most]) => ({
    ...PLAIN,
    name: `keys given to a reference, ${what}`,
    order: 'ref:r' as const,
    processes: 1 as const,
    calls: GIVEN,
    faults,
    passes,
    funds: false,
    most,
  })),
  {
    ...PLAIN,
    name: 'a key that another order has, one call after the other',
    order: 'key:k',
    processes: 1,
    taken: true,
    calls: [create, enqueue, recover],
    faults: [],
    passes: ['25 minutes pass'],
    most: { calls: 2, faults: 0, passes: 1 },
  },
  ...([true, undefined] as const).map((oneClient) => ({
    ...PLAIN,
    name: `a key that another order has, ${oneClient ? 'one client' : 'two clients'}`,
    order: 'key:k' as const,
    ...(oneClient && { oneClient }),
    taken: true as const,
    calls: oneClient ? [create, recover, ...PEOPLE] : [create, { command: 'abandon' } as const],
    faults: [],
    passes: [],
    most: { calls: oneClient ? 3 : 2, faults: 0, passes: 0 },
  })),
  {
    ...PLAIN,
    name: 'a store that is restored',
    order: 'ref:r',
    processes: 1,
    calls: [create, recover, enqueue],
    passes: ['25 minutes pass', 'the store is restored'],
    most: { calls: 3, faults: 0, passes: 2 },
  },
  // Two concurrent calls.
  {
    ...PLAIN,
    name: 'two orders of one name at the same time',
    order: 'ref:r',
    calls: [...GIVEN, createB, { command: 'enqueue', payload: 'b' }],
    faults: [],
    passes: [],
    most: { calls: 2, faults: 0, passes: 0 },
  },
  ...[true, false].map((funds) => ({
    ...PLAIN,
    name: `calls without a name after each other, ${funds ? 'funds' : 'no funds'}`,
    order: 'anon' as const,
    processes: 1 as const,
    calls: [create, recover, { command: 'create', misfit: true } as const],
    faults: ['a call is aborted', 'a response cannot be read'] as const,
    passes: ['16 minutes pass', 'the row is damaged'] as const,
    funds,
    most: { calls: 3, faults: 1, passes: 1 },
  })),
  {
    ...PLAIN,
    name: 'calls without a name at the same time',
    order: 'anon',
    calls: [create, recover],
    faults: ['a call is aborted'],
    passes: [],
    most: { calls: 3, faults: 1, passes: 0 },
  },
  {
    ...PLAIN,
    name: 'a person decides meanwhile',
    order: 'ref:r',
    calls: [
      { ...create, by: 0 },
      { command: 'abandon', by: 1 },
    ],
    faults: ['a call is aborted'],
    passes: ['the clock goes back'],
    most: { calls: 3, faults: 1, passes: 1 },
  },
  {
    ...PLAIN,
    name: 'a person gives a queued order up meanwhile',
    order: 'ref:r',
    calls: [enqueue, recover, { command: 'abandon' }],
    faults: [],
    passes: [],
    most: { calls: 2, faults: 0, passes: 0 },
  },
  {
    ...PLAIN,
    name: 'another API key',
    order: 'ref:r',
    calls: [create, recover],
    faults: ['a response is lost', 'a response cannot be read'],
    passes: ['the API key changes'],
    most: { calls: 2, faults: 1, passes: 1 },
  },
  {
    ...PLAIN,
    name: 'calls of one client',
    order: 'ref:r',
    oneClient: true,
    calls: [create, recover, ...PEOPLE],
    faults: ['a call is aborted'],
    passes: [],
    most: { calls: 3, faults: 1, passes: 0 },
  },
  {
    ...PLAIN,
    name: 'stores that are not shared',
    order: 'ref:r',
    unshared: true,
    calls: [create, recover, enqueue],
    passes: [],
    most: { calls: 2, faults: 1, passes: 0 },
  },
  // Wide settings.
  ...(['ref:r', 'key:k'] as const).flatMap((order) =>
    both({
      ...PLAIN,
      name: `two at the same time, ${order}`,
      order,
      wide: true,
      calls: NAMED,
      most: { calls: 2, faults: 1, passes: 1 },
    }),
  ),
  ...both({
    ...PLAIN,
    name: 'two at the same time, no name',
    order: 'anon',
    wide: true,
    calls: [create, recover, { command: 'create', misfit: true }],
    passes: [...TIME, '16 minutes pass', 'the row is damaged'],
    most: { calls: 3, faults: 1, passes: 1 },
  }),
  ...(['ref:r', 'key:k'] as const).flatMap((order) =>
    both({
      ...PLAIN,
      name: `three after each other, ${order}`,
      order,
      wide: true,
      processes: 1,
      calls: EVERYTHING,
      passes: [...TIME, ...HIDDEN],
      most: { calls: 3, faults: 1, passes: 1 },
    }),
  ),
  ...both({
    ...PLAIN,
    name: 'keys given to a reference again and again',
    order: 'ref:r',
    wide: true,
    processes: 1,
    calls: [...GIVEN, create, { command: 'abandon' }],
    faults: ['a response is lost', 'nothing is sent'],
    most: { calls: 4, faults: 1, passes: 1 },
  }),
  {
    ...PLAIN,
    name: 'three over stores that are not shared',
    order: 'ref:r',
    wide: true,
    unshared: true,
    calls: [create, recover, enqueue],
    passes: [],
    most: { calls: 3, faults: 1, passes: 0 },
  },
]
