/**
 * The one way to send an order: wait for a twin, then claim the order or end by the rules, then
 * send it, then store what the responses have shown.
 */
import { defined } from '../../defined.ts'
import type { Charged } from '../../errors/classes.ts'
import { askCredential } from '../../http/call.ts'
import { CLOCK_SKEW, Interruption } from '../../http/deadline.ts'
import { isNameless } from '../../identity/keys.ts'
import { continued, isFromFuture, type Key, sameApiKey, startKey, tagOf, timingOf } from '../protocol/keys.ts'
import { type Facts, PLAIN_FACTS, permitsOther, ruleFor, type StepOf } from '../protocol/rules.ts'
import { claim, distrust } from '../protocol/transitions.ts'
import { type Job, type OrderContext, orderEvent } from '../record/context.ts'
import type { Found, FoundRecord, Unwritten } from '../record/journal.ts'
import { chargedOf, isPending, type JournalRecord, type Rejection } from '../record/record.ts'
import { type Claimed, type Sent, send } from './send.ts'

type Step = StepOf['create'] | StepOf['recover']
export type EndStep = Exclude<Step, { readonly step: 'send' | 'wait' }>

/** The rules ended the call, and nothing was sent. */
export interface Ruled {
  readonly end: 'ruled'
  readonly step: EndStep
  /** Undefined if the record could not be read in time, or may have changed since it was read. */
  readonly found: Found | undefined
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

/** First and longest wait, in milliseconds, between reads of a claimed record. */
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
    // The twin may still send the order. A fence would only make it claim the order again.
    if (ended instanceof Interruption)
      return { end: 'unclaimed', why: ended, charged: 'unknown', record: undefined, key: undefined }
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
  if (intent !== undefined && !isNameless(intent.slot)) return undefined
  const found = await context.journal.newest(rowId, deadline.grace())
  return { end: 'ruled', step: command === 'create' ? DUPLICATE : IN_PROGRESS, found }
}

async function claimOrEnd(
  context: OrderContext,
  job: Job,
  joined: boolean,
): Promise<Ruled | Unclaimed | Claimed> {
  const { journal, connection } = context
  const { rowId, intent, deadline, callId } = job
  /** What another call writes during this call is no refusal from before it. */
  let raced = joined
  let waited = 0
  let pause = FIRST_LOOK / 2
  for (;;) {
    const loaded = await journal.load(rowId, deadline)
    if (loaded instanceof Interruption) return await unclaimed(context, job, loaded)
    const found = loaded.record === undefined ? loaded : await withTrustedTimes(context, loaded, job)
    const { record } = found
    const facts: Facts = {
      ...PLAIN_FACTS,
      ...timingOf(context, job),
      wanted: intent,
      outwaited: job.takeOver || waited >= LONGEST_WAIT,
      unlisted: job.unlisted,
    }
    const step: Step = ruleFor(job.command, record, facts)
    pause = Math.min(LONGEST_LOOK, pause * 2)
    if (step.step === 'wait') {
      // Without this event, the wait for another process would look like a hang.
      if (waited === 0)
        connection.reporter.retry({
          ...orderEvent(job),
          ...defined({ idempotencyKey: record?.key }),
          attempt: 0,
          reason: 'claimed',
          delayMs: Math.max(0, Math.min(LONGEST_WAIT, deadline.remaining())),
        })
      const most = Math.min(pause, LONGEST_WAIT - waited)
      waited += most
      raced = true
      await deadline.sleep(most)
      continue
    }
    if (step.step !== 'send') return { end: 'ruled', step, found }

    const base = continued(record)
    const credential = await askCredential(connection.credentials, deadline)
    const continues = base !== undefined && isPending(base)
    if (credential !== null && typeof credential === 'object')
      // Another order may be in the row by now, and it proves nothing about the one that this call continues.
      return continues
        ? { end: 'unclaimed', why: credential, charged: chargedOf(base), record: base, key: base.key }
        : await unclaimed(context, job, credential)
    if (continues && !sameApiKey(context, base, credential))
      return { end: 'ruled', step: OTHER_API_KEY[job.command], found }
    const key = startKey(context, intent, base, facts)
    const { now, until } = timingOf(context, job)
    const lease = {
      now,
      until,
      claim: callId,
      apiKeyTag: tagOf(context, key.key, credential, base?.key === key.key ? base.apiKeyTag : undefined),
    }
    // An earlier call may have sent the stored body, whose metadata may differ. Judged at the same time
    // as the rule: the clock may have gone back since.
    const payload = continues && !permitsOther(base, facts.now) ? undefined : intent
    const content = claim(base, payload, key, lease)
    // A new order must not inherit the times of the earlier order in its row.
    const over: Found = base === undefined && found.row ? { id: rowId, row: found.row } : found
    const written = await journal.write(over, content, deadline)
    if (written.result === 'written') {
      const earlier = raced || base === undefined ? undefined : earlierRefusal(base, key, job.startedAt, now)
      const unused = key.firstSentAt === undefined
      return { end: 'claimed', found: written.found, credential, earlier, unused, continues }
    }
    if (written.result !== 'lost') return await unclaimed(context, job, written, over, key.key)
    if (job.command === 'recover') return { end: 'ruled', step: IN_PROGRESS, found }
    // A nameless call decides once whether it repeats the order before it. That order may have been
    // bought meanwhile, and the next look would take this call for one that wants another.
    if (isNameless(content.slot)) return { end: 'ruled', step: DUPLICATE, found: undefined }
    raced = true
    // So that the other writers can finish.
    await deadline.sleep(pause)
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
export function earlierRefusal(
  { key, rejection, firstRejection, updatedAt }: JournalRecord,
  wanted: Key,
  startedAt: number,
  now: number,
): Rejection | undefined {
  if (updatedAt > startedAt && updatedAt <= now + CLOCK_SKEW) return undefined
  if (key === wanted.key) return rejection
  return wanted.generation === 0 ? firstRejection : undefined
}

/** Marks keys of an unknown age. If the store does not take the mark, it still holds for this call. */
async function withTrustedTimes(context: OrderContext, found: FoundRecord, job: Job): Promise<Found> {
  const { record } = found
  const now = context.connection.runtime.now()
  if (!isFromFuture(record, now)) return found
  const marked = distrust(record, now, job.callId)
  if (isPending(record)) {
    const written = await context.journal.write(found, marked, job.deadline)
    if (written.result === 'written') return written.found
  }
  return { ...found, record: marked }
}

/**
 * Says `'no'` only after a write that shuts the door: a late write of this or another call could
 * still open the order, and recovery would send it.
 *
 * @param over the version that the call has tried to replace
 */
async function unclaimed(
  { journal }: OrderContext,
  { rowId, intent, deadline }: Job,
  why: Unclaimed['why'],
  over?: Found,
  key?: string,
): Promise<Unclaimed> {
  // The read and the write share one grace period, so that the call ends soon after its deadline.
  const grace = deadline.grace(over === undefined ? LAST_LOOK : 0)
  const found = over ?? (await journal.newest(rowId, grace))
  if (found === undefined) return { end: 'unclaimed', why, charged: 'unknown', record: undefined, key }
  // Recovery is about the record in the row, also if that is closed meanwhile.
  const record = intent ? continued(found.record) : found.record
  let charged = chargedOf(record)
  const isShut = 'result' in why && why.result === 'refused'
  if (charged === 'no' && !isShut && !(await journal.fence(found, grace))) charged = 'unknown'
  return { end: 'unclaimed', why, charged, record, key: key ?? record?.key }
}
