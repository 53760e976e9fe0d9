/** The possible next events in a world: the calls' steps, the service, and faults. */

import { calls, rawKey, type Watch } from './calls.ts'
import { isPending, type OutcomeKind } from './core.ts'
import {
  broken,
  type Call,
  type Fault,
  FORGETS,
  MINUTE,
  type Pass,
  type Process,
  type Request,
  type Setting,
  TOTAL,
  type World,
} from './world.ts'

const START = 1_700_000_000_000

export type Happening = readonly [what: string, act: () => World]

/** A setting as a graph of worlds. */
export interface Worlds {
  readonly origin: World
  next(world: World): Generator<Happening>
}

/** The service's response without a check of the order, by fault. */
const FAILURES: Readonly<Partial<Record<Fault, readonly OutcomeKind[]>>> = {
  'the service fails': ['rate_limited', 'server_error'],
  'nothing is sent': ['unreachable'],
  'a call is aborted': ['aborted'],
}

export function worldsOf(setting: Setting, watch: Watch): Worlds {
  const { intentOf, reads, writes, sends, hears, settles, leaves, fences, writesLate, isLive } = calls(
    setting,
    watch,
  )
  const anonymous = setting.order === 'anon'
  const intents = new Map(setting.calls.map((call) => [call, intentOf(call)]))

  const STEPS = { reads, writes, sends, settles, moves: settles, leaves, fences } as const

  /** The service's result and response for a request. */
  function arrives(
    world: World,
    { key, body }: Request,
  ): { readonly world: World; readonly kind: OutcomeKind } {
    const known = world.keys[key]
    const remembered = known !== undefined && world.clock - known.at < FORGETS
    if (remembered && (known.bought || setting.remembersRefusals)) {
      if (known.body !== body) return { world, kind: 'conflict' }
      return { world, kind: known.bought ? 'created' : 'refused' }
    }
    const keys = { ...world.keys, [key]: { body, bought: world.funds, at: world.clock } }
    if (!world.funds) return { world: { ...world, keys }, kind: 'refused' }
    if (world.bought.length + 1 > world.allowed) broken('I1: charged twice')
    // The request of an abandoned order may still be in transit.
    if (world.no && !world.heard.includes(rawKey(key)))
      broken("I5: charged after 'no', and nobody has asked again")
    return { world: { ...world, keys, bought: [...world.bought, { key, body }] }, kind: 'created' }
  }

  /** The promises that hold in every state. */
  function judge(world: World): void {
    const { rows, bought, processes, wire, late } = world
    if (bought.length === 0 && rows.some(({ record }) => record?.state === 'created'))
      broken('I6: created, and nothing was bought')
    const quiet = processes.every((process) => process === undefined) && wire.length === 0
    if (!quiet || late !== undefined) return
    for (const { key } of bought) {
      const isKnown = rows.some(
        ({ record }) =>
          record !== undefined &&
          (record.state === 'created' || isPending(record)) &&
          (!anonymous || record.key === rawKey(key)),
      )
      if (!isKnown && !world.heard.includes(rawKey(key))) broken('I2: a charge that nobody remembers')
    }
  }

  function begin(world: World, index: number, call: Call): World {
    const { command } = call
    const asks = command === 'create'
    const sent = [...world.doubtful, ...world.bought.map(({ key }) => key)].map(rawKey)
    const process: Process = {
      call,
      intent: intents.get(call),
      at: 'reads',
      began: world.now,
      ends: world.clock + TOTAL,
      reads: 0,
      sent: 0,
      outwaited: false,
      asked: undefined,
      older: undefined,
      base: 0,
      content: undefined,
      mine: undefined,
      apiKey: world.apiKey,
      ambiguous: false,
      proven: false,
      unused: false,
      earlier: undefined,
      retries: 0,
      overdue: false,
      tells: undefined,
      gives: asks || command === 'recover' ? [] : sent,
    }
    return {
      ...world,
      // A write in the same millisecond as a decision may be from before or after it.
      now: world.now + (asks || command === 'recover' ? 0 : 1),
      calls: world.calls - 1,
      no: asks ? false : world.no,
      // A person who repeats everything accepts that the service may have forgotten the key.
      allowed: world.allowed + (call.all ? 1 : 0),
      processes: world.processes.with(index, process),
    }
  }

  function pass(world: World, what: Pass): World | undefined {
    const passed = { ...world, passes: world.passes - 1 }
    const [row] = world.rows
    switch (what) {
      case '16 minutes pass':
      case '25 minutes pass': {
        const time = Number(what.slice(0, 2)) * MINUTE
        return { ...passed, now: world.now + time, clock: world.clock + time, wire: [] }
      }
      case 'the clock goes back':
        return { ...passed, now: world.now - 60 * MINUTE }
      case 'the wallet is filled':
        return world.funds ? undefined : { ...passed, funds: true }
      case 'the API key changes':
        return { ...passed, apiKey: 1 - world.apiKey }
      case 'the row is damaged':
        return row?.record === undefined
          ? undefined
          : { ...passed, rows: world.rows.with(0, { ...row, damaged: true }) }
    }
  }

  function* faultsOf(world: World, index: number, process: Process): Generator<Happening> {
    const less = { ...world, faults: world.faults - 1 }
    const { at } = process
    const may = (fault: Fault): boolean => setting.faults.includes(fault)
    if (may('a process is killed'))
      yield [`${index} is killed`, () => ({ ...less, processes: world.processes.with(index, undefined) })]
    const row = world.rows[setting.unshared ? index : 0]
    if (
      may('a write comes late') &&
      at === 'writes' &&
      world.late === undefined &&
      row?.version === process.base
    )
      yield [`${index} writes late`, () => writesLate(less, index, process)]
    if (may('a call is aborted') && process.call.command === 'create' && (at === 'reads' || at === 'writes'))
      yield [`${index} is aborted`, () => leaves(less, index, process)]
    if (at !== 'waits') return
    for (const [fault, kinds] of Object.entries(FAILURES)) {
      if (!setting.faults.some((each) => each === fault)) continue
      for (const kind of kinds)
        yield [
          `${index} hears ${kind}`,
          () => {
            // The request is lost, or still in transit.
            const kept = kind === 'aborted' ? world.wire : world.wire.filter(({ by }) => by !== index)
            return hears({ ...less, wire: kept }, index, process, kind)
          },
        ]
    }
  }

  function* next(world: World): Generator<Happening> {
    judge(world)
    const { processes, wire, late } = world
    for (const [index, process] of processes.entries()) {
      if (process === undefined) {
        if (world.calls > 0)
          // A call joins another call of the same client for the same order.
          for (const call of setting.calls)
            if ((call.by ?? index) === index && !(call.command === 'create' && isLive(world, index)))
              yield [`${index} begins ${JSON.stringify(call)}`, () => begin(world, index, call)]
        continue
      }
      const { at } = process
      if (at !== 'waits') yield [`${index} ${at}`, () => STEPS[at](world, index, process)]
      else if (!wire.some(({ by }) => by === index))
        yield [`${index} times out`, () => hears(world, index, process, 'timed_out')]
      if (world.faults > 0) yield* faultsOf(world, index, process)
    }
    for (const request of wire) yield* responses(world, request)
    if (late !== undefined)
      yield [
        'the late write arrives',
        () => {
          const { store, base, row } = late
          const isNewest = world.rows[store]?.version === base
          return { ...world, late: undefined, rows: isNewest ? world.rows.with(store, row) : world.rows }
        },
      ]
    if (world.passes === 0) return
    for (const what of setting.passes) {
      const after = pass(world, what)
      if (after !== undefined) yield [what, () => after]
    }
  }

  function* responses(world: World, request: Request): Generator<Happening> {
    const wire = world.wire.filter((other) => other !== request)
    const { by } = request
    const process = world.processes[by]
    // Exclude writes that an earlier call has abandoned.
    const isOwn = rawKey(request.key) === process?.mine?.key && request.body === process.mine.body
    const waits = process?.at === 'waits' && isOwn ? process : undefined
    yield [
      `the request of ${by} arrives`,
      () => {
        const { world: after, kind } = arrives({ ...world, wire }, request)
        return waits === undefined ? after : hears(after, by, waits, kind)
      },
    ]
    if (waits === undefined || world.faults === 0) return
    const less = { ...world, wire, faults: world.faults - 1 }
    if (setting.faults.includes('a response is lost')) {
      yield [
        `the response to ${by} is lost`,
        () => hears(arrives(less, request).world, by, waits, 'connection_lost'),
      ]
      yield [`${by} hears too late`, () => hears({ ...world, faults: less.faults }, by, waits, 'timed_out')]
    }
    if (setting.faults.includes('a response cannot be read'))
      for (const cut of ['created_unreadable', 'created_flawed'] as const)
        yield [
          `the response to ${by} is ${cut}`,
          () => {
            const { world: after, kind } = arrives(less, request)
            return hears(after, by, waits, kind === 'created' ? cut : kind)
          },
        ]
  }

  const { funds, most, processes, taken, unshared } = setting
  const empty = { version: 0, record: undefined, damaged: false }
  const origin: World = {
    now: START,
    clock: 0,
    rows: unshared ? [empty, empty] : [empty],
    apiKey: 0,
    keys: taken ? { '0 k': { body: 'of another order', bought: true, at: 0 } } : {},
    funds,
    bought: [],
    abandoned: [],
    allowed: anonymous ? 0 : 1,
    processes: processes === 1 ? [undefined] : [undefined, undefined],
    wire: [],
    late: undefined,
    doubtful: [],
    heard: [],
    no: false,
    drawn: 0,
    ...most,
  }
  return { origin, next }
}
