/**
 * The one way to send an order: wait for a twin, then claim the order or end by the rules, then
 * send it, then store what the responses have shown.
 */
import type { Charged } from '../../errors/classes.ts'
import { askCredential } from '../../http/call.ts'
import { CLOCK_SKEW, Interruption } from '../../http/deadline.ts'
import { isNameless } from '../../identity/keys.ts'
import { continued, isFromFuture, type Key, sameApiKey, startKey, tagOf, timingOf } from '../protocol/keys.ts'
import { type Facts, guard, PLAIN_FACTS, ruleFor, type StepOf } from '../protocol/rules.ts'
import { claim, distrust, refusalOf } from '../protocol/transitions.ts'
import { type Job, type OrderContext, orderEvent } from '../record/context.ts'
import type { Found, Unwritten } from '../record/journal.ts'
import { chargedOf, isPending, type JournalRecord, type Rejection } from '../record/record.ts'
import { type Claimed, type Sent, send } from './send.ts'

type Step = StepOf['create'] | StepOf['recover']
export type EndStep = Exclude<Step, { readonly step: 'send' | 'wait' }>

/** The rules ended the call, and nothing was sent. */
export interface Ruled {
  readonly end: 'ruled'
  readonly step: EndStep
  readonly found: Found
}

/** The call could not claim the order, and sent nothing. */
export interface Unclaimed {
  readonly end: 'unclaimed'
  readonly why: Interruption | { readonly error: unknown } | Unwritten
  readonly charged: Charged
  /** The record of an earlier call for this order. */
  readonly record: JournalRecord | undefined
  readonly key: string | undefined
}

/** First and longest wait, in milliseconds, between consecutive reads of a claimed record. */
const FIRST_LOOK = 50
const LONGEST_LOOK = 1000
/** Milliseconds for which a call waits for another process before it claims the order itself. */
const LONGEST_WAIT = 15_000
/** Milliseconds for which a call may still read and write its record after the call's deadline. */
const LAST_LOOK = 500

export async function drive(context: OrderContext, job: Job): Promise<Ruled | Unclaimed | Sent> {
  const { live } = context.journal.shared
  let waited = false
  for (let twin = live.get(job.rowId); twin !== undefined; twin = live.get(job.rowId)) {
    const ruled = await ruledByTwin(context, job)
    if (ruled !== undefined) return ruled
    const ended = await job.deadline.race(twin)
    if (ended instanceof Interruption) return await unclaimed(context, job, ended)
    waited = true
  }
  // Nothing may be awaited since the last look, or another call for the order could begin, too.
  let leave = (): void => {}
  const ended = new Promise<void>((resolve) => {
    leave = resolve
  })
  live.set(job.rowId, ended)
  try {
    const claimed = await claimOrEnd(context, job, waited)
    return claimed.end === 'claimed' ? await send(context, job, claimed) : claimed
  } finally {
    live.delete(job.rowId)
    leave()
  }
}

/** Recovery leaves a live call alone. Only the caller knows whether two nameless calls are one order. */
export async function ruledByTwin(
  context: OrderContext,
  { command, rowId, intent, deadline }: Job,
): Promise<Ruled | undefined> {
  if (command === 'create' && !isNameless(intent?.slot ?? '')) return undefined
  const found = (await context.journal.newest(rowId, deadline.grace())) ?? { id: rowId }
  if (command === 'create') return { end: 'ruled', step: DUPLICATE, found }
  const step = { step: found.record === undefined ? 'nothing' : 'in_progress' } as const
  return { end: 'ruled', step, found }
}

async function claimOrEnd(
  context: OrderContext,
  job: Job,
  joined: boolean,
): Promise<Ruled | Unclaimed | Claimed> {
  const { journal, connection } = context
  const startedAt = connection.runtime.now()
  const { rowId, intent, deadline, callId } = job
  let waited = 0
  let losses = 0
  let pause = FIRST_LOOK / 2
  for (;;) {
    const loaded = await journal.load(rowId, deadline)
    if (loaded instanceof Interruption) return await unclaimed(context, job, loaded)
    const found = loaded.record ? await withTrustedTimes(context, loaded, loaded.record, job) : loaded
    const { record } = found
    const facts: Facts = {
      ...PLAIN_FACTS,
      ...timingOf(context, job),
      wanted: intent,
      outwaited: job.takeOver || waited >= LONGEST_WAIT,
      // Read only where a rule asks: in Node, it inspects the dispatcher.
      get mayResend() {
        return connection.mayResend
      },
      isNotListed: job.isNotListed,
    }
    const conflict = job.command === 'create' && record ? guard(record, facts) : undefined
    const step: Step = conflict ?? ruleFor(job.command, record, facts)
    pause = Math.min(LONGEST_LOOK, pause * 2)
    if (step.step === 'wait') {
      if (waited === 0) reportWait(context, job, record?.key)
      const most = Math.min(pause, LONGEST_WAIT - waited)
      waited += most
      await deadline.sleep(most)
      continue
    }
    if (step.step !== 'send') return { end: 'ruled', step, found }

    const base = continued(record)
    const credential = await askCredential(connection.credentials, deadline)
    if (credential !== null && typeof credential === 'object')
      return await unclaimed(
        context,
        job,
        credential,
        isNameless(base?.slot ?? '') ? { asked: base?.key } : {},
      )
    const continues = base !== undefined && isPending(base)
    if (continues && !sameApiKey(context, base, credential))
      return { end: 'ruled', step: OTHER_API_KEY[job.command], found }
    const key = startKey(context, intent, base, facts)
    const now = connection.runtime.now()
    const lease = {
      now,
      until: now + deadline.remaining(),
      claim: callId,
      apiKeyTag: tagOf(context, key.key, credential, base?.apiKeyTag),
    }
    // An earlier call may have sent the stored body, whose metadata may differ. After a conflict,
    // the key may belong to the payload that is asked for now.
    const payload = continues && base.hold !== 'conflict' ? undefined : intent
    const content = claim(base, payload, key, lease)
    // A new order must not inherit the times of the earlier order in its row.
    const over: Found = base === undefined && found.row ? { id: rowId, row: found.row } : found
    const written = await journal.write(over, content, deadline)
    if (written.result === 'written') {
      // What another call wrote during this call is no refusal from before it.
      const raced = joined || waited > 0 || losses > 0
      const earlier = raced || base === undefined ? undefined : earlierRefusal(base, key, startedAt)
      const unused = key.firstSentAt === undefined
      return { end: 'claimed', found: written.found, credential, earlier, unused, continues }
    }
    if (written.result !== 'lost') return await unclaimed(context, job, written, { over, key: key.key })
    if (job.command === 'recover') return { end: 'ruled', step: IN_PROGRESS, found }
    // A nameless call decides once whether it repeats the order before it. That order may have been
    // bought meanwhile, and the next look would take this call for one that wants another.
    if (isNameless(content.slot)) return { end: 'ruled', step: DUPLICATE, found: { id: rowId } }
    // From the second lost write on, wait, so that the other writers can finish.
    if (++losses > 1) await deadline.sleep(pause)
  }
}

const DUPLICATE: EndStep = { step: 'refuse', because: 'duplicate' }
const IN_PROGRESS: EndStep = { step: 'in_progress' }

const OTHER_API_KEY: Readonly<Record<Job['command'], EndStep>> = {
  create: { step: 'refuse', because: 'api_key' },
  recover: { step: 'look_up', because: 'api_key_changed' },
}

/**
 * Only a refusal of the same key from before this call permits a new key. A time far in the future
 * counts as earlier: the clock was set back after that write.
 */
export function earlierRefusal(record: JournalRecord, key: Key, startedAt: number): Rejection | undefined {
  const ahead = record.updatedAt - startedAt
  return ahead <= 0 || ahead > CLOCK_SKEW ? refusalOf(record, key) : undefined
}

/**
 * If the record's times are in the future, marks the age of its keys as unknown. If the store does
 * not accept the mark, this call still treats the keys as marked.
 */
async function withTrustedTimes(
  context: OrderContext,
  found: Found,
  record: JournalRecord,
  job: Job,
): Promise<Found> {
  const now = context.connection.runtime.now()
  if (!isFromFuture(record, now)) return found
  const content = distrust(record, now, job.callId)
  const { busyUntil: _busy, ...released } = record
  const distrusted = { ...released, ...content }
  if (!isPending(record)) return { ...found, record: distrusted }
  const written = await context.journal.write(found, content, job.deadline)
  return written.result === 'written' ? written.found : { ...found, record: distrusted }
}

interface Unstored {
  /** The version that the call has tried to replace. */
  readonly over?: Found
  readonly key?: string
  /** The key of the unfinished nameless order that this call continues. */
  readonly asked?: string | undefined
}

/**
 * Determines `charged` for a call that ends without a claim. Says `'no'` only after a write that
 * shuts the door: a late write of this or another call could still open the order, and recovery
 * would send it.
 */
async function unclaimed(
  context: OrderContext,
  { rowId, deadline }: Job,
  why: Unclaimed['why'],
  { over, key, asked }: Unstored = {},
): Promise<Unclaimed> {
  const { journal } = context
  // The read and the write share one grace period, so that the call ends soon after its deadline.
  const grace = over === undefined ? deadline.grace(LAST_LOOK) : deadline.grace(0)
  const found = over ?? (await journal.newest(rowId, grace))
  if (asked !== undefined && found?.record?.key === asked)
    return { end: 'unclaimed', why, charged: chargedOf(found.record), record: found.record, key: asked }
  // Another order in the row proves nothing about the order that this call continues.
  if (asked !== undefined) return { end: 'unclaimed', why, charged: 'unknown', record: undefined, key: asked }
  if (found === undefined) return { end: 'unclaimed', why, charged: 'unknown', record: undefined, key }
  const record = continued(found.record)
  const charged = chargedOf(record)
  const isRefused = 'result' in why && why.result === 'refused'
  const shut = charged !== 'no' || isRefused || (await journal.fence(found, grace))
  return { end: 'unclaimed', why, charged: shut ? charged : 'unknown', record, key: key ?? record?.key }
}

/** Without this event, the wait for another process would look like a hang. */
function reportWait({ connection }: OrderContext, job: Job, key: string | undefined): void {
  connection.reporter.retry({
    ...orderEvent(job.callId, job.operation),
    ...(key === undefined ? {} : { idempotencyKey: key }),
    attempt: 0,
    reason: 'claimed',
    delayMs: Math.max(0, Math.min(LONGEST_WAIT, job.deadline.remaining())),
  })
}
