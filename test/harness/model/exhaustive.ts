/**
 * Every reachable state of two processes over one record and one service, within bounds. Rules, transitions and outcome
 * table are the real ones; what is here is the order of effects: read, decide, write, send, hear, settle, and what may come
 * between them: a crash, a lost or late write, a lost or late request, a jump of the clock.
 */
import {
  type Condition,
  type Facts,
  isFromFuture,
  PLAIN_FACTS,
  startOf,
} from '../../../src/orders/conditions.ts'
import { isAskedAgain } from '../../../src/orders/create.ts'
import { judgeOutcome, OUTCOMES, type OutcomeKind } from '../../../src/orders/outcome.ts'
import {
  highestGeneration,
  isPending,
  isUnsent,
  type JournalRecord,
  type RecordContent,
  type Rejection,
} from '../../../src/orders/record.ts'
import { type Command, decide, phaseOf, RULES } from '../../../src/orders/rules.ts'
import { isTooLate, meaningOf, movesOn } from '../../../src/orders/send-order.ts'
import { apply, type IntentKey, isKnown, type RecordEvent } from '../../../src/orders/transitions.ts'

const MINUTE = 60_000
const TOTAL = 2 * MINUTE
const WINDOW = 20 * MINUTE
/** The service forgets a key soon after the window. */
const FORGETS = 21 * MINUTE
const START = 1_700_000_000_000

/** One kind of order, and one kind of service. */
export interface Setting {
  readonly name: 'ref:r' | 'key:k' | 'anon:a'
  readonly remembersRefusals: boolean
  readonly funds: boolean
  readonly commands: readonly Command[]
  readonly calls: number
  readonly faults: number
  readonly passes: number
}

interface Row {
  readonly version: number
  readonly record: JournalRecord | undefined
}

/** A request that has left its process, or a write that its process no longer waits for. */
interface Request {
  readonly by: number
  readonly key: string
  readonly body: string
}
interface Late {
  readonly base: number
  readonly row: Row
}

interface Process {
  readonly command: Command
  readonly payload: string
  readonly at: 'reads' | 'writes' | 'sends' | 'waits' | 'settles' | 'moves'
  readonly outwaited: boolean
  /** What the process has read at first. */
  readonly first: JournalRecord | undefined
  readonly base: number
  readonly content: RecordContent | undefined
  readonly mine: JournalRecord | undefined
  readonly ambiguous: boolean
  readonly proven: boolean
  readonly unused: boolean
  readonly queued: boolean
  readonly earlier: Rejection | undefined
  readonly retries: number
  readonly tells: 'no' | 'yes' | 'unknown'
  readonly sends: boolean
}

interface World {
  readonly now: number
  readonly row: Row
  readonly keys: Readonly<
    Record<string, { readonly body: string; readonly bought: boolean; readonly at: number }>
  >
  readonly funds: boolean
  readonly charges: number
  /** How often a person has allowed to buy again: by giving an order up, or by forgetting it. */
  readonly allowed: number
  readonly processes: readonly (Process | undefined)[]
  readonly wire: readonly Request[]
  readonly late: Late | undefined
  /** Keys whose last request has no definite refusal yet. */
  readonly doubtful: readonly string[]
  /** True once a call was told 'no' and nobody has asked since. */
  readonly no: boolean
  readonly drawn: number
  readonly calls: number
  readonly faults: number
  readonly passes: number
}

/** What a search has found. */
export interface Findings {
  readonly states: number
  readonly broken: string | undefined
  readonly cells: ReadonlySet<string>
  readonly events: ReadonlySet<string>
}

class Broken extends Error {}

const context = { journal: { store: { durability: 'server' } } } as Parameters<typeof movesOn>[0]

/** Walks all states; ends at the first one in which something is wrong, or at the bound. */
export function search(setting: Setting, bound: number): Findings {
  const cells = new Set<string>()
  const events = new Set<string>()
  const seen = new Set<string>()
  const anonymous = setting.name === 'anon:a'
  const caller = setting.name === 'key:k'

  const changed = (record: RecordContent | undefined, event: RecordEvent): RecordContent => {
    events.add(event.type)
    return apply(record, event)
  }
  const keyAt = (generation: number, drawn: number): IntentKey => ({
    key: caller ? 'k' : anonymous ? `random-${drawn}` : `g${generation}`,
    keyOrigin: caller ? 'caller' : anonymous ? 'random' : 'derived',
    generation,
    fields: {},
  })
  const stored = (row: Row, content: RecordContent, now: number): Row => {
    const version = row.version + 1
    // Only the claim of the next one like it takes the row of an order without a name.
    const taken = anonymous && content.state === 'open'
    if (row.record?.state === 'created' && content.state !== 'created' && !taken)
      throw new Broken('I11: a record leaves created')
    const createdAt = row.record?.createdAt ?? now
    return { version, record: { ...content, version, createdAt, updatedAt: now } }
  }

  /** The step, noting which entry of which cell it came from. */
  const decided = <C extends Command>(command: C, world: World, facts: Facts) => {
    const { record } = world.row
    const found = { ...(world.row.version > 0 && { row: rowOf(world.row) }), ...(record && { record }) }
    const phase = phaseOf(found, facts)
    const cell: readonly unknown[] = RULES[phase][command]
    const index = cell.findIndex((entry) => {
      if (!Array.isArray(entry)) return true
      const condition: Condition<JournalRecord | undefined> = entry[0]
      return condition(record, facts)
    })
    cells.add(`${phase}.${command}[${index}]`)
    return decide(command, found, facts)
  }

  const ended = (world: World, index: number, tells: Process['tells'] | undefined): World => {
    const processes = world.processes.with(index, undefined)
    const after = { ...world, processes }
    if (tells === 'yes' && world.charges === 0) throw new Broken("I5: told 'yes', and nothing was bought")
    if (tells !== 'no') return after
    const { record } = world.row
    if (record?.state === 'created')
      throw new Broken("I6: told 'no' of an order that is remembered as created")
    const asking = processes.some((other) => other?.sends === true)
    const awaited = record?.state === 'open'
    return asking || awaited ? after : { ...after, no: true }
  }

  /** Reads and decides. */
  function reads(world: World, index: number, process: Process): World {
    let { record } = world.row
    if (record !== undefined && isFromFuture(record, world.now)) {
      const { version, createdAt, updatedAt, ...content } = record
      record = {
        ...changed(content, { type: 'distrusted', busy: false, claim: 'mark' }),
        version,
        createdAt,
        updatedAt,
      }
    }
    const at = { ...world, row: { ...world.row, record } }
    const facts: Facts = {
      ...PLAIN_FACTS,
      now: world.now,
      safeRetryWindow: WINDOW,
      totalTimeout: TOTAL,
      wanted: { slot: setting.name, fingerprint: process.payload, ...(caller && { idempotencyKey: 'k' }) },
      outwaited: process.outwaited,
      asked: process.first !== undefined && isAskedAgain(process.first) ? process.first.key : undefined,
      isNotListed: world.charges === 0,
      decidedAt: world.now,
      orderId: world.charges > 0 ? 'o' : undefined,
    }
    const { command } = process
    const asked = facts.asked !== undefined && record !== undefined && record.key !== facts.asked
    if (command === 'create' && asked) return ended(world, index, 'unknown')
    const begins = (content: RecordContent, more: Partial<Process> = {}): World => ({
      ...world,
      drawn: world.drawn + 1,
      processes: world.processes.with(index, {
        ...process,
        at: 'writes',
        base: world.row.version,
        content,
        ...more,
      }),
    })
    const ask = (closed: RecordContent | undefined, moved: boolean, heard: Rejection | undefined) => {
      const generation = closed === undefined ? 0 : closed.generation
      const key =
        closed === undefined ? keyAt(0, world.drawn) : { ...keyAt(generation, world.drawn), key: closed.key }
      const order = {
        slot: setting.name,
        fingerprint: process.payload,
        body: process.payload,
        ...(setting.name === 'ref:r' && { externalOrderId: 'r' }),
      }
      return changed(closed, { type: 'asked', order, key, moved, heard, claim: `p${index}` })
    }
    const started = (from: JournalRecord, start: 'same' | 'first' | 'next'): RecordContent => {
      if (start === 'same') return from
      if (start === 'next')
        return changed(from, { type: 'moved_on', key: keyAt(highestGeneration(from) + 1, world.drawn) })
      return changed(from, { type: 'went_back', key: keyAt(0, world.drawn), createdAt: from.createdAt })
    }
    const claims = (content: RecordContent, further: Partial<Process>): World => {
      const claim = `p${index}`
      const until = world.now + TOTAL
      const claimed = changed(content, { type: 'claimed', now: world.now, until, claim, apiKeyTag: 'tag' })
      const heard =
        process.first?.key === claimed.key
          ? process.first.rejection
          : claimed.generation === 0
            ? process.first?.first?.rejection
            : undefined
      return begins(claimed, {
        sends: true,
        unused: content.firstSentAt === undefined,
        earlier: further.queued || further.earlier !== undefined ? heard : undefined,
        queued: further.queued === true,
      })
    }
    const resumed = (by: 'call' | 'recovery'): World => {
      if (record === undefined) throw new Broken('a record is resumed that is not there')
      const queued = isUnsent(record)
      const from = queued ? started(record, startOf(record, facts) ?? 'same') : record
      return claims(changed(from, { type: 'resumed', by: queued ? 'recovery' : by }), { queued })
    }
    const listed = (): World => {
      if (world.charges === 0) return ended(world, index, 'unknown')
      if (world.row.record === undefined) return ended(world, index, undefined)
      const content = changed(world.row.record, {
        type: 'proven',
        sent: undefined,
        order: { id: 'o', status: 's', amount: 1 },
        orderId: 'o',
        attempts: 0,
        claim: `p${index}`,
      })
      return ended({ ...world, row: stored(world.row, content, world.now) }, index, 'yes')
    }
    if (command === 'create') {
      const step = decided('create', at, facts)
      switch (step.step) {
        case 'wait':
          return { ...world, processes: world.processes.with(index, { ...process, outwaited: true }) }
        case 'refuse':
          return ended(world, index, moneyOf(record))
        case 'tell':
          return ended(world, index, 'yes')
        case 'read':
        case 'look_up':
          return listed()
        case 'send': {
          if (step.as === 'stored') return resumed('call')
          if (step.as === 'new') return claims(ask(undefined, false, undefined), {})
          if (record === undefined) throw new Broken('a closed order is asked for that is not there')
          const start = step.as === 'given' ? 'same' : step.as
          return claims(ask(started(record, start), false, undefined), { earlier: { kind: 'refused' } })
        }
      }
    }
    if (command === 'enqueue') {
      const step = decided('enqueue', at, facts)
      if (step.step === 'refuse' || step.step === 'tell') return ended(world, index, undefined)
      if (step.step === 'take_over') {
        if (record === undefined) throw new Broken('a record is taken over that is not there')
        return begins(changed(record, { type: 'taken_over', claim: `p${index}` }))
      }
      return begins(
        ask(step.as === 'new' ? undefined : record, false, step.as === 'new' ? undefined : record?.rejection),
      )
    }
    if (command === 'recover') {
      const step = decided('recover', at, facts)
      if (step.step === 'send') return resumed('recovery')
      return step.step === 'look_up' ? listed() : ended(world, index, undefined)
    }
    if (command === 'resolve') {
      const step = decided('resolve', at, facts)
      return step.step === 'verify' && world.charges > 0 ? listed() : ended(world, index, undefined)
    }
    if (command === 'abandon') {
      const step = decided('abandon', at, facts)
      if (step.step !== 'close' || record === undefined) return ended(world, index, undefined)
      const key = caller ? undefined : keyAt(highestGeneration(record) + 1, world.drawn)
      return begins(changed(record, { type: 'abandoned', key, claim: `p${index}` }))
    }
    const step = decided('forget', at, facts)
    if (step.step !== 'empty') return ended(world, index, undefined)
    if (record !== undefined && isPending(record)) throw new Broken('I2: an order in doubt is forgotten')
    const row = { version: world.row.version + 1, record: undefined }
    return ended({ ...world, row, allowed: world.allowed + 1, doubtful: [] }, index, undefined)
  }

  function writes(world: World, index: number, process: Process): World {
    const { content, base } = process
    if (content === undefined) throw new Broken('nothing is to be written')
    if (world.row.version !== base)
      return { ...world, processes: world.processes.with(index, { ...process, at: 'reads' }) }
    const row = stored(world.row, content, world.now)
    const after = { ...world, row }
    if (process.command === 'abandon')
      return ended({ ...after, allowed: world.allowed + 1, doubtful: [] }, index, undefined)
    if (!process.sends) return ended(after, index, undefined)
    const mine = row.record
    return {
      ...after,
      processes: world.processes.with(index, {
        ...process,
        at: 'sends',
        mine,
        ambiguous: content.ambiguous,
        proven: content.state === 'created',
      }),
    }
  }

  function sends(world: World, index: number, process: Process): World {
    const { mine } = process
    if (mine === undefined) throw new Broken('I3: nothing is written down')
    if (isTooLate(mine, (mine.firstSentAt ?? world.now) + WINDOW, world.now))
      return judged(world, index, process, undefined)
    const { key, body } = mine
    if (body === undefined) throw new Broken('I4: an order without a body is sent')
    if (world.doubtful.some((other) => other !== key))
      throw new Broken('I7: a new key is sent while an earlier one is in doubt')
    const known = world.keys[key]
    if (known?.bought === true && known.body !== body) throw new Broken('I4: one key, two bodies')
    return {
      ...world,
      wire: [...world.wire, { by: index, key, body }],
      doubtful: [...new Set([...world.doubtful, key])],
      processes: world.processes.with(index, { ...process, at: 'waits' }),
    }
  }

  /** What the service makes of a request, and what it says. */
  function arrives(
    world: World,
    { key, body }: Request,
  ): { readonly world: World; readonly kind: OutcomeKind } {
    const known = world.keys[key]
    const remembered = known !== undefined && world.now - known.at < FORGETS
    if (remembered && (known.bought || setting.remembersRefusals)) {
      if (known.body !== body) return { world, kind: 'conflict' }
      return { world, kind: known.bought ? 'created' : 'refused' }
    }
    const keys = { ...world.keys, [key]: { body, bought: world.funds, at: world.now } }
    if (!world.funds) return { world: { ...world, keys }, kind: 'refused' }
    if (world.charges + 1 > world.allowed) throw new Broken('I1: charged twice')
    if (world.no) throw new Broken("I5: charged after 'no', and nobody has asked again")
    return { world: { ...world, keys, charges: world.charges + 1 }, kind: 'created' }
  }

  /** The process hears how its attempt has ended, or has ended without one. */
  function judged(world: World, index: number, process: Process, kind: OutcomeKind | undefined): World {
    const { mine } = process
    if (mine === undefined) throw new Broken('a response to nothing')
    const before = { ambiguous: process.ambiguous, proven: process.proven }
    const verdict = kind === undefined ? undefined : judgeOutcome(kind, before)
    const { ambiguous, proven } = verdict?.history ?? before
    const unused = process.unused && !(kind !== undefined && isLookedAt(kind))
    const once = process.command === 'recover'
    const heardBy = { ...process, ambiguous, proven, unused }
    // A conflict that the order's own refused payloads explain is one more refusal.
    const explained = kind === 'conflict' && mine.refused
    const definite = kind === 'created' || ((kind === 'refused' || explained) && !before.ambiguous)
    const after = definite ? { ...world, doubtful: world.doubtful.filter((key) => key !== mine.key) } : world
    if (
      verdict !== undefined &&
      verdict.next !== 'stop' &&
      kind !== 'created' &&
      process.retries > 0 &&
      !once
    )
      return {
        ...after,
        processes: world.processes.with(index, { ...heardBy, at: 'sends', retries: process.retries - 1 }),
      }
    const meaning = meaningOf(verdict, { ambiguous, proven }, mine)
    const settles = (
      content: RecordContent,
      tells: Process['tells'],
      at: 'settles' | 'moves' = 'settles',
    ): World => ({
      ...after,
      processes: world.processes.with(index, { ...heardBy, at, content, tells }),
    })
    if (meaning.state === 'created') {
      const order = kind === 'created' ? { id: 'o', status: 's', amount: 1 } : undefined
      const proof = { sent: mine, order, orderId: order?.id, attempts: 1, claim: mine.claim }
      const newest = world.row.record ?? mine
      const displaced =
        anonymous && newest.key !== mine.key && (newest.state === 'created' || isPending(newest))
      if (displaced || isKnown(newest, proof)) return ended(after, index, 'yes')
      const content = changed(newest, { type: 'proven', ...proof })
      return ended({ ...after, row: stored(after.row, content, after.now) }, index, 'yes')
    }
    const heard = meaning.rejection === undefined ? undefined : { kind: meaning.rejection }
    if (heard !== undefined && movesOn(context, mine, heard, process.earlier)) {
      const left = changed(mine, { type: 'refused', rejection: { kind: 'refused' }, attempts: 1 })
      const next = changed(left, { type: 'moved_on', key: keyAt(highestGeneration(left) + 1, world.drawn) })
      const { busyUntil: until = 0, claim } = mine
      return settles(
        changed(next, { type: 'claimed', now: world.now, until, claim, apiKeyTag: 'tag' }),
        'unknown',
        'moves',
      )
    }
    const refused = kind !== undefined && OUTCOMES[kind].hold === 'refused'
    if (heard !== undefined && process.queued && !refused)
      return settles(
        changed(mine, { type: 'requeued', heard: process.earlier, attempts: 1, unused }),
        'unknown',
      )
    return settles(
      changed(
        mine,
        heard === undefined
          ? { type: 'left_open', ambiguous, hold: verdict?.hold, attempts: 1 }
          : { type: 'closed', rejection: heard, attempts: 1, shared: false, unused },
      ),
      meaning.charged,
    )
  }

  function settlesNow(world: World, index: number, process: Process): World {
    const { content, mine } = process
    if (content === undefined || mine === undefined) throw new Broken('nothing is to be settled')
    if (world.row.version !== mine.version) return ended(world, index, 'unknown')
    const row = stored(world.row, content, world.now)
    const after = { ...world, row }
    if (process.at === 'settles') return ended(after, index, process.tells)
    return {
      ...after,
      processes: world.processes.with(index, {
        ...process,
        at: 'sends',
        mine: row.record,
        earlier: undefined,
        unused: true,
        ambiguous: false,
      }),
    }
  }

  /** Everything that may happen next. */
  function* next(world: World): Generator<readonly [string, () => World]> {
    const { processes, row } = world
    if (row.record?.state === 'created' && world.charges === 0)
      throw new Broken('I6: created, and nothing was bought')
    const quiet = processes.every((process) => process === undefined) && world.wire.length === 0
    if (quiet && world.charges > 0 && world.allowed === 1 && world.late === undefined) {
      const { record } = row
      if (record === undefined || !(record.state === 'created' || isPending(record)))
        throw new Broken('I2: a charge that nobody remembers')
    }
    for (const [index, process] of processes.entries()) {
      if (process === undefined) {
        if (world.calls === 0) continue
        for (const command of setting.commands)
          for (const payload of command === 'create' ? ['a', ...(anonymous ? [] : ['b'])] : ['a'])
            yield [`${index} begins ${command} ${payload}`, () => begin(world, index, command, payload)]
        continue
      }
      const { at } = process
      if (at === 'reads') yield [`${index} reads`, () => reads(world, index, process)]
      if (at === 'writes') {
        yield [`${index} writes`, () => writes(world, index, process)]
        const { content, base } = process
        if (
          world.faults > 0 &&
          world.late === undefined &&
          content !== undefined &&
          world.row.version === base
        )
          yield [
            `${index} writes late`,
            () => ({
              ...ended({ ...world, faults: world.faults - 1 }, index, 'unknown'),
              late: { base, row: stored(world.row, content, world.now) },
            }),
          ]
      }
      if (at === 'sends') yield [`${index} sends`, () => sends(world, index, process)]
      if (at === 'settles' || at === 'moves')
        yield [`${index} settles`, () => settlesNow(world, index, process)]
      if (world.faults > 0) {
        const less = { ...world, faults: world.faults - 1 }
        yield [`${index} is killed`, () => ({ ...less, processes: processes.with(index, undefined) })]
        if (at === 'waits') {
          const others = world.wire.filter(({ by }) => by !== index)
          for (const kind of ['rate_limited', 'server_error', 'unreachable'] as const)
            yield [
              `${index} hears ${kind}`,
              () =>
                judged(
                  {
                    ...less,
                    wire: others,
                    doubtful: kind === 'server_error' ? world.doubtful : stillDoubtful(world, process),
                  },
                  index,
                  process,
                  kind,
                ),
            ]
          for (const kind of ['timed_out', 'aborted'] as const)
            yield [`${index} hears ${kind}`, () => judged(less, index, process, kind)]
        }
      }
    }
    for (const request of world.wire) {
      const wire = world.wire.filter((other) => other !== request)
      const process = processes[request.by]
      const waits = process?.at === 'waits' && process.mine?.key === request.key ? process : undefined
      yield [
        `the request of ${request.by} arrives`,
        () => {
          const { world: after, kind } = arrives({ ...world, wire }, request)
          return waits === undefined ? after : judged(after, request.by, waits, kind)
        },
      ]
      if (waits !== undefined && world.faults > 0) {
        yield [
          `the response to ${request.by} is lost`,
          () =>
            judged(
              arrives({ ...world, wire, faults: world.faults - 1 }, request).world,
              request.by,
              waits,
              'connection_lost',
            ),
        ]
        yield [
          `the response to ${request.by} is cut`,
          () => {
            const { world: after, kind } = arrives({ ...world, wire, faults: world.faults - 1 }, request)
            return judged(after, request.by, waits, kind === 'created' ? 'created_unreadable' : kind)
          },
        ]
      }
    }
    if (world.late !== undefined) {
      const { base, row: late } = world.late
      yield [
        'the late write arrives',
        () => ({ ...world, late: undefined, row: world.row.version === base ? late : world.row }),
      ]
    }
    if (!world.funds && world.passes > 0)
      yield ['the wallet is filled', () => ({ ...world, funds: true, passes: world.passes - 1 })]
    if (world.passes > 0) {
      const passed = { ...world, passes: world.passes - 1, wire: [] }
      yield ['25 minutes pass', () => ({ ...passed, now: world.now + 25 * MINUTE })]
      yield [
        'the clock goes back',
        () => ({ ...world, passes: world.passes - 1, now: world.now - 60 * MINUTE }),
      ]
    }
  }

  function begin(world: World, index: number, command: Command, payload: string): World {
    const process: Process = {
      command,
      payload,
      at: 'reads',
      outwaited: false,
      first: world.row.record,
      base: 0,
      content: undefined,
      mine: undefined,
      ambiguous: false,
      proven: false,
      unused: false,
      queued: false,
      earlier: undefined,
      retries: 1,
      tells: 'unknown',
      sends: command === 'create',
    }
    const asks = command === 'create' || command === 'enqueue'
    // Each order without a name is one of its own, unless the one before it is in doubt or was never readable.
    const { record } = world.row
    const another = anonymous && command === 'create' && !(record !== undefined && isAskedAgain(record))
    return {
      ...world,
      calls: world.calls - 1,
      no: asks ? false : world.no,
      allowed: world.allowed + (another ? 1 : 0),
      processes: world.processes.with(index, process),
    }
  }

  const { calls, faults, passes, funds } = setting
  const origin: World = {
    now: START,
    row: { version: 0, record: undefined },
    keys: {},
    funds,
    charges: 0,
    allowed: anonymous ? 0 : 1,
    processes: [undefined, undefined],
    wire: [],
    late: undefined,
    doubtful: [],
    no: false,
    drawn: 0,
    calls,
    faults,
    passes,
  }
  const waiting: { readonly world: World; readonly way: Way | undefined }[] = [
    { world: origin, way: undefined },
  ]
  seen.add(nameOf(origin))
  for (let step = waiting.pop(); step !== undefined && seen.size < bound; step = waiting.pop()) {
    let doing = ''
    try {
      for (const [what, act] of next(step.world)) {
        doing = what
        const world = act()
        const name = nameOf(world)
        if (seen.has(name)) continue
        seen.add(name)
        waiting.push({ world, way: { what, before: step.way } })
      }
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      const steps = [doing]
      for (let way = step.way; way !== undefined; way = way.before) steps.unshift(way.what)
      return { states: seen.size, broken: `${error.message}\n${steps.join('\n')}`, cells, events }
    }
  }
  return { states: seen.size, broken: undefined, cells, events }
}

interface Way {
  readonly what: string
  readonly before: Way | undefined
}

function nameOf(world: World): string {
  return JSON.stringify(world)
}

function rowOf({ version }: Row) {
  return {
    scope: 's',
    id: 'i',
    version,
    open: false,
    state: 'open' as const,
    createdAt: 0,
    updatedAt: 0,
    data: '',
  }
}

function isLookedAt(kind: OutcomeKind): boolean {
  const { rejection } = OUTCOMES[kind].clean
  return rejection !== 'not_processed' && rejection !== 'cancelled'
}

/** The service looked at nothing, so nothing is in doubt that was not before. */
function stillDoubtful({ doubtful, wire }: World, { mine, ambiguous }: Process): readonly string[] {
  const other = wire.filter(({ key }) => key === mine?.key).length > 1
  return ambiguous || other ? doubtful : doubtful.filter((key) => key !== mine?.key)
}

function moneyOf(record: JournalRecord | undefined): Process['tells'] {
  if (record === undefined) return 'no'
  if (record.state === 'created') return 'yes'
  return record.state === 'open' || record.rejection?.kind === 'conflict' ? 'unknown' : 'no'
}
