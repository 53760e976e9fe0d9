/**
 * The steps of each call over the state of a world. Rules, transitions, outcome table and keys are
 * the real ones. Only the order of effects is implemented here: read, decide, write, send, receive,
 * settle.
 */

import { platformRuntime } from '../../../src/runtime.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { orderContext } from '../../support/order-context.ts'
import { fakeRuntime } from '../../support/runtime.ts'
import { storeOver } from '../../support/store-over.ts'
import {
  apply,
  askedContent,
  begunContent,
  CLOCK_SKEW,
  type Command,
  type Condition,
  chargedOf,
  claimedContent,
  decide,
  type Facts,
  type Intent,
  isAnother,
  isAskedAgain,
  isBusy,
  isFromFuture,
  isKnown,
  isPending,
  isShared,
  isTooLate,
  Journal,
  type JournalRecord,
  judgeOutcome,
  mayBeSentUnder,
  mayReturn,
  meaningOf,
  movesOn,
  nextKey,
  type OrderContext,
  OUTCOMES,
  type OutcomeKind,
  PLAIN_FACTS,
  phaseOf,
  type RecordContent,
  type RecordEvent,
  type Rejection,
  RULES,
  readIntent,
  refusalUnder,
  repeatedContent,
  type StepOf,
  sameApiKey,
  tagOf,
} from './core.ts'
import {
  API_KEYS,
  ATTEMPT,
  broken,
  type Call,
  type Process,
  type Row,
  type Setting,
  TOTAL,
  WINDOW,
  type World,
} from './world.ts'

/** The places where a rule or an event is used. */
export interface Watch {
  readonly entry: (cell: readonly unknown[], index: number) => void
  readonly event: (type: RecordEvent['type']) => void
}

const ORDER = { id: 'o', serviceId: 's', target: 't', quantity: 1, amount: 1, currency: 'EUR', status: 's' }

/** Effects that may lead to a charge after the end of a call. */
const SENDING: ReadonlySet<Command> = new Set(['create', 'recover'])

/** Cache the ids: equal names give equal ids, and each costs a hash. */
const ids = new Map<string, string>()
function deriveId(name: string): string {
  const id = ids.get(name) ?? platformRuntime.deriveId(name)
  ids.set(name, id)
  return id
}

/** A closed record has no body. */
const bodies = new Map<string, string>()

export function calls(setting: Setting, watch: Watch) {
  const anonymous = setting.order === 'anon'
  let time = 0
  let randomKey = ''
  const runtime = { ...fakeRuntime(), now: () => time, randomId: () => randomKey, deriveId }
  const store = storeOver(new MemoryStore(), { durability: setting.unshared ? 'memory' : 'server' })
  const journal = new Journal({ store, scope: 's', codec: undefined, runtime })
  const context: OrderContext = orderContext({ journal, safeRetryWindow: WINDOW }, { runtime })
  const storeOf = (index: number): number => (setting.unshared ? index : 0)
  const rowOf = (world: World, index: number): Row =>
    world.rows[storeOf(index)] ?? broken('there is no store')
  const credentialOf = ({ apiKey }: World): string => API_KEYS[apiKey] ?? broken('there is no API key')

  function intentOf({ command, payload = 'a', key, misfit }: Call): Intent | undefined {
    if (command !== 'create') return undefined
    const request = {
      serviceId: 's',
      target: 't',
      quantity: payload === 'a' ? 1 : 2,
      ...(setting.order === 'ref:r' && { metadata: { externalOrderId: 'r' } }),
    }
    const idempotencyKey = setting.order === 'key:k' ? 'k' : key
    const intent = readIntent(deriveId, request, { idempotencyKey })
    bodies.set(intent.fingerprint, intent.body)
    return misfit ? { ...intent, misfit: { path: 'quantity', message: 'is too much' } } : intent
  }

  function changed(record: RecordContent | undefined, event: RecordEvent): RecordContent {
    watch.event(event.type)
    return apply(record, event)
  }

  /** Ids of written values depend only on the process, not on the order of draws. */
  function by(index: number, content: RecordContent): RecordContent {
    return { ...content, claim: `p${index}` }
  }

  function written(world: World, index: number, content: RecordContent | 'emptied', base?: number): World {
    const row = rowOf(world, index)
    const before = row.record
    const version = (base ?? row.version) + 1
    if (content === 'emptied') {
      if (before !== undefined && isPending(before)) broken('I2: an order in doubt is forgotten')
      return stored(world, index, { version, record: undefined, damaged: false })
    }
    // Only the claim of the next anonymous order takes the row.
    const taken = anonymous && content.state === 'open' && content.key !== before?.key
    if (before?.state === 'created' && content.state !== 'created' && !taken)
      broken('I11: a record leaves created')
    if (JSON.stringify(content).includes('secret-')) broken('I8: the API key is stored')
    const createdAt = before?.createdAt ?? world.now
    const record = { ...content, version, createdAt, updatedAt: world.now }
    return stored(world, index, { version, record, damaged: false })
  }

  function stored(world: World, index: number, row: Row): World {
    const { record } = row
    const drawn = world.drawn + (record?.key === `random-${world.drawn}` ? 1 : 0)
    // A tick, which separates earlier writes from later ones.
    return { ...world, now: world.now + 1, rows: world.rows.with(storeOf(index), row), drawn }
  }

  function goOn(world: World, index: number, process: Process, changes: Partial<Process>): World {
    return { ...world, processes: world.processes.with(index, { ...process, ...changes }) }
  }

  function isLive(world: World, index: number): boolean {
    if (!setting.oneClient) return false
    return world.processes.some((other, at) => {
      if (other === undefined || at === index) return false
      return other.call.command === 'create' || (other.call.command === 'recover' && other.at !== 'reads')
    })
  }

  /** The step, with the entry of the cell that it comes from. */
  function decided<C extends Command>(command: C, row: Row, facts: Facts): StepOf[C] {
    const found = foundOf(row)
    const cell: readonly unknown[] = RULES[phaseOf(found, facts)][command]
    const index = cell.findIndex((entry) => {
      if (!Array.isArray(entry)) return true
      const condition: Condition<JournalRecord | undefined> = entry[0]
      return condition(row.record, facts)
    })
    watch.entry(cell, index)
    return decide(command, found, facts)
  }

  function ended(world: World, index: number, tells?: Process['tells'], returned?: string): World {
    const process = world.processes[index] ?? broken('a call ends that is not there')
    const processes = world.processes.with(index, undefined)
    const { record } = rowOf(world, index)
    if (tells === 'yes' && world.bought.length === 0) broken("I5: told 'yes', and nothing was bought")
    if (returned !== undefined) {
      const { body } = process.intent ?? {}
      const orders = world.bought.filter(({ key }) => rawKey(key) === returned)
      if (orders.length === 0) broken('I5: an order is returned that was not bought')
      if (body !== undefined && orders.every((order) => order.body !== body))
        broken('I5: the order of another payload is returned')
    }
    const heard =
      returned === undefined || world.heard.includes(returned) ? world.heard : [...world.heard, returned]
    const after = { ...world, processes, heard }
    if (tells !== 'no') return after
    if (record?.state === 'created' && !anonymous)
      broken("I6: told 'no' of an order that is remembered as created")
    const asking = processes.some((other) => other !== undefined && SENDING.has(other.call.command))
    const awaited = world.rows.some((row) => row.record?.state === 'open')
    return asking || awaited ? after : { ...after, no: true }
  }

  function at(world: World): void {
    time = world.now
    randomKey = `random-${world.drawn}`
  }

  /** The row that is found, marked if a clock went back. */
  function trusted(world: World, index: number): World {
    const row = rowOf(world, index)
    if (row.record === undefined || !isFromFuture(row.record, world.now)) return world
    const { version: _version, createdAt: _created, updatedAt: _updated, ...record } = row.record
    const busy = isBusy(row.record, world.now)
    const content = by(index, changed(record, { type: 'distrusted', busy, claim: '' }))
    if (isPending(content)) return written(world, index, content)
    const marked = { ...row, record: { ...row.record, ...content } }
    return { ...world, rows: world.rows.with(storeOf(index), marked) }
  }

  function reads(before: World, index: number, process: Process): World {
    at(before)
    const { call, intent } = process
    if (process.reads > 8) broken('I9: a call goes on for ever')
    if (before.clock > process.ends)
      return call.command === 'create' ? goOn(before, index, process, { at: 'leaves' }) : ended(before, index)
    const person = call.command === 'resolve' || call.command === 'abandon' || call.command === 'forget'
    const live = isLive(before, index)
    const busy = call.command === 'recover' && isLeft(before, index, process)
    let world = person || live || busy ? before : trusted(before, index)
    at(world)
    const row = rowOf(world, index)
    const { record } = row
    const first = process.reads === 0
    let { asked, older } = process
    if (first && record !== undefined && isOlder(record, process)) older = record
    if (call.command === 'create') {
      const again = record !== undefined && isAskedAgain(record)
      if (first && again) asked = record
      // Each anonymous order is separate, unless the previous one is in doubt or was never
      // readable.
      if (first && anonymous && !again) world = { ...world, allowed: world.allowed + 1 }
    }
    const looked = { ...process, asked, older, reads: process.reads + 1, base: row.version }
    const credential = credentialOf(world)
    const facts: Facts = {
      ...PLAIN_FACTS,
      now: world.now,
      safeRetryWindow: WINDOW,
      totalTimeout: call.command === 'create' || person ? TOTAL : ATTEMPT,
      wanted: intent,
      outwaited: process.outwaited || call.takesOver === true,
      isLive: call.command !== 'create' && live,
      isGenuine: () => !row.damaged,
      asked: asked?.key,
      replaysAll: call.all === true,
      decidedAt: process.began,
      orderId: call.otherOrder ? 'x' : 'o',
      sameApiKey: person || record === undefined || sameApiKey(context, record, credential),
    }
    switch (call.command) {
      case 'create':
        return creates(world, index, looked, row, facts)
      case 'recover':
        return recovers(world, index, looked, row, facts)
      case 'resolve': {
        const step = decided('resolve', row, facts)
        return step.step === 'verify' ? verifies(idle(world, index), index, looked) : ended(world, index)
      }
      case 'abandon': {
        const step = decided('abandon', row, facts)
        return step.step === 'close' ? abandons(idle(world, index), index, looked) : ended(world, index)
      }
      case 'forget': {
        const step = decided('forget', row, facts)
        return step.step === 'empty'
          ? goOn(idle(world, index), index, looked, { at: 'writes', content: 'emptied' })
          : ended(world, index)
      }
    }
  }

  /** The same world, in which no call of the same client works on the order. */
  function idle(world: World, index: number): World {
    if (isLive(world, index)) broken('I6: an order is settled that a call works on')
    return world
  }

  /** True if recovery skips the row. */
  function isLeft(world: World, index: number, { call }: Process): boolean {
    const { record } = rowOf(world, index)
    const outwaited = call.takesOver === true
    return record === undefined || isLive(world, index) || (!outwaited && isBusy(record, world.now))
  }

  function isOlder({ updatedAt }: JournalRecord, { began }: Process): boolean {
    return updatedAt <= began || updatedAt > began + CLOCK_SKEW
  }

  function creates(world: World, index: number, process: Process, row: Row, facts: Facts): World {
    const step = decided('create', row, facts)
    const { record } = row
    const intent = process.intent ?? broken('nothing is wanted')
    switch (step.step) {
      case 'wait':
        return goOn(world, index, process, { outwaited: true })
      case 'refuse': {
        // A refusal writes nothing, so an abandoned write may still open the order: see "Not
        // covered" in docs/verification.md.
        const told = record === undefined ? 'no' : refusedAs(step.because, record)
        return ended(world, index, told === 'no' && world.late !== undefined ? undefined : told)
      }
      case 'tell':
        return tells(world, index, record)
      case 'read': {
        if (record?.order?.id === undefined) return ended(world, index, 'yes')
        return proves(world, index, record)
      }
      case 'send': {
        const same = step.as === 'new' ? undefined : record
        const begun = noted(same, () => begunContent(context, intent, same, step.as, undefined))
        const { older } = process
        return claims(world, index, process, begun, {
          earlier: step.as !== 'stored' && older !== undefined ? refusalUnder(older, begun) : undefined,
          retries: 1,
          overdue: false,
        })
      }
    }
  }

  /**
   * A misfit proves nothing about an anonymous order that was created, because the call requests
   * another one.
   */
  function refusedAs(because: string, record: JournalRecord): Process['tells'] {
    // The row's current order says nothing about the requested one.
    if (because === 'replaced') return 'unknown'
    return because === 'misfit' && record.state === 'created' ? 'no' : chargedOf(record)
  }

  function tells(world: World, index: number, record: JournalRecord | undefined): World {
    if (record?.readable !== true) return ended(world, index, record === undefined ? 'no' : chargedOf(record))
    return ended(world, index, 'yes', record.key)
  }

  function recovers(world: World, index: number, process: Process, row: Row, facts: Facts): World {
    const early = decided('recover', row, { ...facts, sameApiKey: true, isGenuine: () => true })
    if (early.step !== 'send' && early.step !== 'look_up') return ended(world, index)
    const step = decided('recover', row, { ...facts, outwaited: true })
    const record = idle(world, index) && (row.record ?? broken('nothing is recovered'))
    if (step.step === 'look_up') {
      const byId = record.state === 'created' && record.order?.id !== undefined
      return byId || isListed(world, record) ? proves(world, index, record) : ended(world, index)
    }
    if (step.step !== 'send') return ended(world, index)
    const repeated = noted(record, () => repeatedContent(record))
    return claims(world, index, process, repeated, {
      earlier: undefined,
      retries: 0,
      overdue: step.as === 'overdue',
    })
  }

  /** The service has the order that a person found. */
  function verifies(world: World, index: number, { call }: Process): World {
    const { record } = rowOf(world, index)
    return !call.otherOrder && isListed(world, record) ? proves(world, index, record) : ended(world, index)
  }

  function abandons(world: World, index: number, process: Process): World {
    const record = rowOf(world, index).record ?? broken('nothing is given up')
    const named = record.slot.startsWith('key:')
    const marked =
      named && isFromFuture(record, world.now)
        ? changed(record, { type: 'distrusted', busy: false, claim: '' })
        : record
    const key = named ? undefined : nextKey(context, record)
    const content = by(index, changed(marked, { type: 'abandoned', key, claim: '' }))
    return goOn(world, index, process, { at: 'writes', content })
  }

  /** The effect of a step on a record, if its event does not depend on the caller. */
  function noted(before: JournalRecord | undefined, make: () => RecordContent): RecordContent {
    const content = make()
    if (before === undefined || before.state === 'rejected') watch.event('asked')
    else watch.event('resumed')
    if (before !== undefined && content.generation > before.generation && content.keyOrigin !== 'caller')
      watch.event('moved_on')
    if (before !== undefined && content.generation < before.generation) watch.event('went_back')
    return content
  }

  function claims(
    world: World,
    index: number,
    process: Process,
    begun: RecordContent,
    how: Pick<Process, 'earlier' | 'retries' | 'overdue'>,
  ): World {
    const { intent } = process
    const fits =
      intent === undefined ||
      (begun.body === intent.body && (intent.idempotencyKey ?? begun.key) === begun.key)
    if (!fits) broken('I4: what is sent is not what the call asks for')
    if (
      rowOf(world, index).damaged &&
      begun.state !== 'created' &&
      begun.key === rowOf(world, index).record?.key
    )
      broken('I4: a damaged record is sent')
    if (intent?.misfit !== undefined && !begun.ambiguous) broken('I4: what does not fit the service is sent')
    const credential = credentialOf(world)
    const remaining = Math.max(0, process.ends - world.clock)
    watch.event('claimed')
    const content = by(index, claimedContent(context, begun, remaining, credential))
    const unused = begun.firstSentAt === undefined
    return goOn(world, index, process, { ...how, at: 'writes', content, unused, apiKey: world.apiKey })
  }

  /** The list shows orders by reference. Another payload is another program's order. */
  function isListed({ bought }: World, record: JournalRecord | undefined): boolean {
    if (record?.externalOrderId === undefined) return false
    return bought.some(({ body }) => body === bodies.get(record.fingerprint))
  }

  /** Stores that the order exists, after a find in the list or by its id. */
  function proves(world: World, index: number, record: JournalRecord | undefined): World {
    const newest = record ?? broken('nothing is proven')
    const proof = { sent: undefined, order: { ...ORDER }, orderId: 'o', attempts: 0, claim: '' }
    const content = by(index, changed(newest, { type: 'proven', ...proof }))
    const after = isKnown(newest, proof) ? world : written(world, index, content)
    const returned = world.bought.find(({ body }) => body === bodies.get(newest.fingerprint))
    return ended(after, index, 'yes', returned && rawKey(returned.key))
  }

  /** Effects that a person's decision permits: another purchase, and the loss of an earlier one. */
  function given(before: World, after: World, index: number, { call, gives }: Process): World {
    const { record } = rowOf(before, index)
    const known = call.command === 'forget' && record !== undefined ? [record.key] : []
    const heard = [...new Set([...after.heard, ...gives, ...known])]
    const doubtful = after.doubtful.filter((key) => !gives.includes(rawKey(key)))
    const replaced = call.command === 'abandon' && record !== undefined && !record.slot.startsWith('key:')
    const abandoned = replaced ? [...after.abandoned, record.key] : after.abandoned
    return { ...after, allowed: after.allowed + 1, heard, doubtful, abandoned }
  }

  function writes(world: World, index: number, process: Process): World {
    at(world)
    const content = process.content ?? broken('nothing is to be written')
    const { command } = process.call
    if (world.clock > process.ends)
      return command === 'create' ? goOn(world, index, process, { at: 'leaves' }) : ended(world, index)
    if (rowOf(world, index).version !== process.base)
      return command === 'create' ? goOn(world, index, process, { at: 'reads' }) : ended(world, index)
    const after = written(world, index, content)
    if (command === 'abandon' || command === 'forget')
      return ended(given(world, after, index, process), index)
    const mine = rowOf(after, index).record ?? broken('nothing is written')
    const { ambiguous, state } = mine
    return goOn(after, index, process, { at: 'sends', mine, ambiguous, proven: state === 'created' })
  }

  function sends(before: World, index: number, process: Process): World {
    at(before)
    let world = before
    let mine = process.mine ?? broken('I3: nothing is written down')
    const until = process.overdue ? Number.POSITIVE_INFINITY : (mine.firstSentAt ?? world.now) + WINDOW
    if (isTooLate(mine, until, world.now)) return hears(world, index, process, undefined)
    const credential = credentialOf(world)
    const tag = tagOf(context, mine.key, credential, mine.apiKeyTag)
    if (tag !== mine.apiKeyTag) {
      if (!mayBeSentUnder(context, mine, process, credential)) return hears(world, index, process, undefined)
      if (rowOf(world, index).version !== mine.version) return hears(world, index, process, undefined)
      world = written(world, index, changed(mine, { type: 'tagged', apiKeyTag: tag }))
      mine = rowOf(world, index).record ?? mine
      return goOn(world, index, process, { mine, apiKey: world.apiKey })
    }
    if (world.clock > process.ends) broken('I9: a call sends after its end')
    if (process.sent > 1 && process.call.command === 'create')
      broken('I10: a call sends more often than it may')
    const { body } = mine
    if (body === undefined) return broken('I4: an order without a body is sent')
    if (world.abandoned.includes(mine.key)) broken('I7: a key is sent after a person abandoned it')
    const row = rowOf(world, index)
    if (
      row.version === mine.version &&
      (row.record?.key !== mine.key || row.record.body !== body || row.record.apiKeyTag !== tag)
    )
      broken('I3: what is sent is not what is stored')
    const key = `${world.apiKey} ${mine.key}`
    const own = world.doubtful.filter((other) => other !== key)
    if (own.length > 0) broken('I7: a new key is sent while an earlier one is in doubt')
    const known = world.keys[key]
    // No store has the body of an order that a person has forgotten or abandoned: the service
    // responds with CONFLICT.
    const isForgotten = setting.taken || (!anonymous && world.allowed > 1)
    if (known?.bought === true && known.body !== body && !isForgotten) broken('I4: one key, two bodies')
    return goOn(
      {
        ...world,
        wire: [...world.wire, { by: index, key, body }],
        doubtful: [...new Set([...world.doubtful, key])],
      },
      index,
      process,
      { at: 'waits', mine, sent: process.sent + 1 },
    )
  }

  /** The end of an attempt, or of the call between two attempts. */
  function hears(before: World, index: number, process: Process, kind: OutcomeKind | undefined): World {
    at(before)
    const world = before
    const mine = process.mine ?? broken('a response to nothing')
    const history = { ambiguous: process.ambiguous, proven: process.proven }
    const verdict = kind === undefined ? undefined : judgeOutcome(kind, history)
    const { ambiguous, proven } = verdict?.history ?? history
    const unused = process.unused && (kind === undefined || !isLookedAt(kind))
    const once = process.call.command === 'recover'
    const heardBy = { ...process, ambiguous, proven, unused }
    const meaning = meaningOf(verdict, { ambiguous, proven }, mine)
    const heard: Rejection | undefined = meaning.rejection && { kind: meaning.rejection }
    const moves = heard !== undefined && movesOn(context, mine, heard, process.earlier)
    const rejection: Rejection | undefined = moves ? { ...heard, kind: 'refused' } : heard
    const sentKey = `${process.apiKey} ${mine.key}`
    const refusedNow =
      kind === 'refused' || (kind === 'conflict' && moves) || (kind !== undefined && !isLookedAt(kind))
    const definite = refusedNow && !history.ambiguous && !world.wire.some(({ key }) => key === sentKey)
    const certain = kind?.startsWith('created') === true || definite
    const after = certain ? { ...world, doubtful: world.doubtful.filter((key) => key !== sentKey) } : world
    const again =
      verdict !== undefined && verdict.next !== 'stop' && kind !== 'created' && kind !== 'created_flawed'
    if (again && process.retries > 0 && !once)
      return goOn(after, index, heardBy, { at: 'sends', retries: process.retries - 1 })
    const settles = (content: RecordContent, tells: Process['tells']): World =>
      goOn(after, index, heardBy, { at: 'settles', content, tells })
    if (rejection !== undefined && moves && process.retries > 0 && world.clock <= process.ends) {
      const left = changed(mine, { type: 'refused', rejection, attempts: 1 })
      const next = changed(left, { type: 'moved_on', key: nextKey(context, left) })
      const { busyUntil: until = 0, claim } = mine
      const apiKeyTag = tagOf(context, next.key, API_KEYS[process.apiKey] ?? null)
      const content = changed(next, { type: 'claimed', now: world.now, until, claim, apiKeyTag })
      // Closes the record if the result cannot be written.
      return goOn(after, index, heardBy, {
        at: 'moves',
        content,
        retries: process.retries - 1,
        tells: 'unknown',
      })
    }
    if (meaning.state === 'created') return bought(after, index, heardBy, kind)
    const hold = kind !== 'aborted' ? verdict?.hold : once ? undefined : 'aborted'
    return rejection === undefined
      ? settles(changed(mine, { type: 'left_open', ambiguous, hold, attempts: 1 }), meaning.charged)
      : settles(
          changed(mine, { type: 'closed', rejection, attempts: 1, shared: isShared(context, mine), unused }),
          moves ? 'no' : meaning.charged,
        )
  }

  /** A proof overwrites everything stored meanwhile, except the next anonymous order. */
  function bought(world: World, index: number, process: Process, kind: OutcomeKind | undefined): World {
    const mine = process.mine ?? broken('a proof of nothing')
    const order = kind === 'created' ? { ...ORDER } : undefined
    const orderId = kind === 'created' || kind === 'created_flawed' ? 'o' : undefined
    const proof = { sent: mine, order, orderId, attempts: 1, claim: mine.claim }
    const newest = rowOf(world, index).record ?? mine
    const displaced = isAnother(newest, mine) && (newest.state === 'created' || isPending(newest))
    const known = displaced || isKnown(newest, proof)
    const after = known
      ? world
      : written(world, index, by(index, changed(newest, { type: 'proven', ...proof })))
    return ended(after, index, 'yes', order && mine.key)
  }

  function settles(world: World, index: number, process: Process): World {
    at(world)
    const { content, mine, at: step } = process
    if (content === undefined || content === 'emptied' || mine === undefined)
      return broken('nothing is to be settled')
    if (rowOf(world, index).version !== mine.version) {
      const newest = rowOf(world, index).record
      if (process.call.command !== 'create' || newest === undefined || isAnother(newest, mine))
        return ended(world, index, 'unknown')
      if (mayReturn(newest, process.intent?.fingerprint ?? '')) return ended(world, index, 'yes', newest.key)
      return ended(world, index, newest.state === 'created' ? 'yes' : 'unknown')
    }
    const after = written(world, index, content)
    if (step === 'settles') return ended(after, index, process.tells)
    const record = rowOf(after, index).record ?? broken('nothing is written')
    return goOn(after, index, process, {
      at: 'sends',
      mine: record,
      earlier: undefined,
      unused: true,
      ambiguous: false,
      proven: false,
    })
  }

  /**
   * A call without a claim reads once more: `'no'` requires a write over everything that an earlier
   * call may have abandoned.
   */
  function leaves(world: World, index: number, process: Process): World {
    at(world)
    const intent = process.intent ?? broken('nothing is wanted')
    const row = rowOf(world, index)
    const { record } = row
    const { asked } = process
    if (asked !== undefined && record?.key !== asked.key) return ended(world, index, chargedOf(asked))
    const other = asked === undefined && anonymous && record?.state === 'created' && record.readable
    const own = other ? undefined : record
    const charged = own === undefined ? 'no' : chargedOf(own)
    if (charged !== 'no') return ended(world, index, charged)
    return goOn(world, index, process, {
      at: 'fences',
      base: row.version,
      content: over(index, intent, record),
    })
  }

  /** Events that make an abandoned write come too late. */
  function over(index: number, intent: Intent, record: JournalRecord | undefined): RecordContent {
    if (record !== undefined) return by(index, changed(record, { type: 'rewritten', claim: '' }))
    const asked = noted(undefined, () => askedContent(context, intent, undefined, { moved: false }))
    const rejection = { kind: 'cancelled' } as const
    return by(index, changed(asked, { type: 'closed', rejection, attempts: 0, shared: false, unused: true }))
  }

  function fences(world: World, index: number, process: Process): World {
    at(world)
    const { content, base } = process
    if (content === undefined || content === 'emptied') return broken('nothing is written over')
    if (rowOf(world, index).version !== base) return ended(world, index, 'unknown')
    return ended(written(world, index, content), index, 'no')
  }

  /** A write in doubt: it is abandoned, and may be applied later. */
  function writesLate(world: World, index: number, process: Process): World {
    at(world)
    const { content, base, call, intent } = process
    if (content === undefined) return broken('nothing is to be written')
    const { rows, drawn } = written(world, index, content)
    const row = rows[storeOf(index)] ?? broken('there is no store')
    const late = {
      ...world,
      drawn,
      late: { store: storeOf(index), base, row },
    }
    // From now on, the decision may take effect at any time.
    if (call.command === 'abandon' || call.command === 'forget')
      return ended(given(world, late, index, process), index, 'unknown')
    if (call.command !== 'create' || intent === undefined) return ended(late, index, 'unknown')
    const { record } = rowOf(world, index)
    const own = record !== undefined && chargedOf(record) !== 'no'
    return own
      ? ended(late, index, chargedOf(record))
      : goOn(late, index, process, { at: 'fences', content: over(index, intent, record) })
  }

  return { intentOf, reads, writes, sends, hears, settles, leaves, fences, writesLate, isLive }
}

function foundOf({ version, record, damaged: _damaged }: Row) {
  const state = record?.state ?? 'rejected'
  const row = { scope: 's', id: 'i', version, open: false, state, createdAt: 0, updatedAt: 0, data: '' }
  return { ...(version > 0 && { row }), ...(record && { record }) }
}

export function rawKey(key: string): string {
  return key.slice(2)
}

/** False if the attempt ends before the service checks the order and its key. */
export function isLookedAt(kind: OutcomeKind): boolean {
  const { rejection } = OUTCOMES[kind].clean
  return rejection !== 'not_processed' && rejection !== 'cancelled'
}
