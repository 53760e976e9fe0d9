/**
 * Realistic bugs, each of which disables one safeguard. The tests must detect all of them; if a
 * test misses one, the test is wrong. Each bug replaces exports of modules in `src` (see
 * `seams.ts`), so that lines may move and names may change without breaking a bug.
 */
import { defined } from '../../../src/defined.ts'
import { isCustomerOrderingError, StoreError } from '../../../src/errors/classes.ts'
import { perform } from '../../../src/http/call.ts'
import { CLOCK_SKEW, Deadline } from '../../../src/http/deadline.ts'
import { kyTransport } from '../../../src/http/ky-transport.ts'
import { decide } from '../../../src/http/retry.ts'
import { Pages } from '../../../src/lists/pages.ts'
import type { FetchPage, Start } from '../../../src/lists/prefetch.ts'
import { readOnce, readReply } from '../../../src/orders/commands/create.ts'
import { lookUpById, MAX_PAGES, readOrder } from '../../../src/orders/commands/look-up.ts'
import { recoverOne } from '../../../src/orders/commands/recover.ts'
import { outcomeOf, type RecoveryOutcome } from '../../../src/orders/commands/recovery-outcome.ts'
import { resolve } from '../../../src/orders/commands/resolve.ts'
import { advanceBy, type ListedOrder, scanOrders } from '../../../src/orders/commands/scan.ts'
import {
  isBusy,
  isFromFuture,
  isLate,
  isShared,
  mayAttempt,
  mayBeRunning,
  sameApiKey,
  startOf,
  tagOf,
} from '../../../src/orders/protocol/keys.ts'
import {
  classify,
  contradiction,
  differences,
  differencesFound,
  judgeOutcome,
  OUTCOMES,
  type OutcomeKind,
} from '../../../src/orders/protocol/outcome.ts'
import {
  changedSince,
  held,
  maybeHidden,
  otherKey,
  otherPayload,
  permitsOther,
  RULES,
} from '../../../src/orders/protocol/rules.ts'
import { claim, isLater, prove, settle } from '../../../src/orders/protocol/transitions.ts'
import type { Job } from '../../../src/orders/record/context.ts'
import type { Intent } from '../../../src/orders/record/intent.ts'
import {
  type Found,
  type FoundRecord,
  Journal,
  type JournalOptions,
  type Written,
} from '../../../src/orders/record/journal.ts'
import {
  decodeRow,
  isPending,
  type JournalRecord,
  publicRecord,
  type RecordContent,
} from '../../../src/orders/record/record.ts'
import { drive, earlierRefusal, ruledByTwin } from '../../../src/orders/sending/drive.ts'
import {
  keptRefusal,
  mayHaveProcessed,
  movesOn,
  proveCreated,
  send,
} from '../../../src/orders/sending/send.ts'
import { readProblem } from '../../../src/schemas/problem.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { holdIfLate } from '../../../src/undici/held-back.ts'
import { around, changeCells, dropRule, put, swap, swapMethod } from './swap.ts'

/**
 * The bugs by the test file that detects them, below `test`. Each function disables one safeguard
 * in the loaded modules.
 */
const BUGS = {
  'client/create/abort': {
    "a call stays among the listeners of its caller's signal": () =>
      swapMethod(Deadline, 'race', function (original, pending) {
        this.signal?.addEventListener('abort', () => {})
        return original(pending)
      }),
  },
  'client/create/anonymous': {
    'a call without a name joins its twin and then places the next order': () =>
      around(ruledByTwin, async (original, context, job) =>
        job.command === 'create' ? undefined : await original(context, job),
      ),
    'the proof of an order is written over the next one in its slot': () => around(isLater, () => false),
    'a call without a name reads an order that it has not claimed': () => swap(readOnce, () => readReply),
    'an unreadable order is returned although a call that was overtaken may return it': () =>
      around(prove, (original, ...args) => ({ ...original(...args), othersUntil: undefined })),
  },
  'client/create/api-key-rotation': {
    'an order in doubt is repeated under another API key': () => around(sameApiKey, () => true),
    'recovery repeats a request under another API key': () =>
      around(drive, (original, context, job) =>
        original(job.command === 'recover' ? { ...context, idempotencyScope: 'customer' } : context, job),
      ),
    'a retry goes on under another API key': () =>
      // Only a call that sends has a claim that holds.
      around(
        sameApiKey,
        (original, context, record, credential) =>
          record.busyUntil !== undefined || original(context, record, credential),
      ),
    'a machine that slept while it wrote down another API key sends when it wakes': () => {
      const rewritten = new WeakSet<JournalRecord>()
      swapMethod(Journal, 'write', async (original, found, content, ...time) => {
        const written = await original(found, content, ...time)
        const again = found.record?.claim === content.claim && found.record.apiKeyTag !== content.apiKeyTag
        if (again && written.result === 'written') rewritten.add(written.found.record)
        return written
      })
      around(isLate, (original, record, timing) => !rewritten.has(record) && original(record, timing))
    },
  },
  'client/create/claims': {
    'a record that a live call holds is claimed': () =>
      Object.assign(RULES.busy, { create: RULES.open.create }),
  },
  'client/create/conflicts': {
    'a conflict moves to another key although stores are not shared': () => around(isShared, () => false),
    'a key that belongs to another payload is told as not charged': () =>
      around(send, async (original, ...args) => {
        const sent = await original(...args)
        return sent.outcome?.kind === 'conflict' ? { ...sent, charged: 'no' as const } : sent
      }),
    'another payload is sent while a call that was taken over may still send its own': () =>
      around(permitsOther, (_original, { hold }) => hold === 'conflict'),
    'a conflict is settled as if the order were refused': () =>
      put(OUTCOMES, 'conflict', { shows: 'refused' }),
    'recovery repeats an order whose key belongs to another payload': () => dropRule(RULES, held, 'recover'),
    'a conflict after an unreadable order counts as if nothing were proven': () =>
      around(judgeOutcome, (original, kind, history) =>
        original(kind, kind === 'conflict' ? { ...history, proven: false } : history),
      ),
  },
  'client/create/generations': {
    'a request that the service has processed does not begin the window of its key': () =>
      around(mayHaveProcessed, () => false),
    'a request that the service has not processed begins the window of its key': () =>
      around(mayHaveProcessed, () => true),
    "a call counts its twin's refusal as an earlier one of its own": () =>
      around(earlierRefusal, (original, record, key, _startedAt, now) =>
        original(record, key, Number.POSITIVE_INFINITY, now),
      ),
    'a refusal of another key permits a new one': () =>
      around(earlierRefusal, (original, record, key, ...times) =>
        original(record, record === undefined ? key : { ...key, key: record.key }, ...times),
      ),
    'an earlier refusal is forgotten when the service is busy': () =>
      around(keptRefusal, (_original, rejection) => rejection),
    'a first refusal moves the order to a new key': () =>
      around(movesOn, (original, context, tried, heard, earlier) =>
        original(context, tried, heard, earlier ?? heard),
      ),
    'a key that the caller gave is changed': () =>
      around(movesOn, (original, context, { mine, ...tried }, heard, earlier) => {
        const origin = mine.record.origin === 'caller' ? 'random' : mine.record.origin
        return original(context, { ...tried, mine: { record: { ...mine.record, origin } } }, heard, earlier)
      }),
    'a call begins with the latest key, which a lost store does not compute': () =>
      around(startOf, (original, record, timing, given) => {
        const start = original(record, timing, given)
        return start === 'first' && mayAttempt(record.firstSentAt, timing) ? 'same' : start
      }),
    'another key of the caller takes over an order that has one': () => dropRule(RULES, otherKey),
  },
  'client/create/hidden-retries': {
    'a refusal restarts the window of a key that something else may have sent again': () =>
      around(send, (original, context, job, claimed) => {
        const connection = { ...context.connection, mayResend: false }
        return original({ ...context, connection }, job, claimed)
      }),
    'a claim forgets that a fetch may have hidden a charge': () =>
      around(claim, (original, ...rest) => ({ ...original(...rest), maybeHidden: undefined })),
    'a conflict moves to another key although a hidden retry may have bought the order': () =>
      around(movesOn, (original, context, tried, ...rest) => {
        const record = { ...tried.mine.record, maybeHidden: undefined }
        return original(context, { ...tried, mine: { record } }, ...rest)
      }),
  },
  'client/create/idempotency': {
    'the request is sent before the record is stored': () =>
      overStore((store) => ({
        insert: async (row) => {
          void store.insert(row).catch(() => {})
          return { inserted: true }
        },
        update: async (row, version) => {
          void store.update(row, version).catch(() => {})
          return true
        },
      })),
    'every attempt has a key of its own': () =>
      around(perform, (original, connection, call) => {
        const { send, runtime } = connection
        const changed: typeof send = (request) => {
          const { 'idempotency-key': key, ...headers } = request.headers
          const own = key === undefined ? {} : { 'idempotency-key': runtime.randomId() }
          return send({ ...request, headers: { ...headers, ...own } })
        }
        return original({ ...connection, send: changed }, call)
      }),
    "a resumed order is sent with the new call's body": () =>
      whereResumed((_record, intent) => (intent === undefined ? {} : { body: intent.body })),
    'whoever asks for another quantity gets the order that there is': () => dropRule(RULES, otherPayload),
  },
  'client/create/retry': {
    'a call retries once more than it may': () =>
      around(decide, (original, situation) =>
        original({ ...situation, maxRetries: situation.maxRetries + 1 }),
      ),
  },
  'client/create/sequences': {
    'the caller hears of a refusal before it is stored': () =>
      overOutcomes((write, found) => {
        void write()
        return Promise.resolve({ result: 'written', found })
      }),
    'a refusal that could not be stored is told as a refusal': () =>
      overOutcomes(async (write, found) => {
        const written = await write()
        return written.result === 'written' ? written : { result: 'written', found }
      }),
    'a record that another call opened is taken for clean': () =>
      whereResumed((record) => ({ ambiguous: record.ambiguous })),
    'a write goes over the version of somebody else': () =>
      overStore((store) => ({
        update: async (row) => {
          const there = (await store.get(row.scope, row.id))?.version ?? 0
          return await store.update({ ...row, version: there + 1 }, there)
        },
      })),
    'a process that was stopped after its claim sends when it wakes': () => around(isLate, () => false),
    'a call sends after its claim has run out': () =>
      around(isLate, (_original, { firstSentAt }, timing) => !mayAttempt(firstSentAt, timing)),
    'a key is sent again after its safe-retry window': () =>
      Object.assign(RULES.stale, { create: RULES.open.create }),
    'no key is ever too old to be sent': () => around(mayAttempt, () => true),
    'an attempt may end after the window of its key': () =>
      around(mayAttempt, (original, firstSentAt, timing) => original(firstSentAt, { ...timing, attempt: 0 })),
    'the window of a key knows of no clock that differs': () =>
      around(mayAttempt, (original, firstSentAt, timing) =>
        original(firstSentAt, { ...timing, safeRetryWindow: timing.safeRetryWindow + CLOCK_SKEW }),
      ),
    'reopening a refused order restarts the window of its key': () =>
      around(claim, (original, record, intent, key, lease) =>
        original(record, intent, { ...key, firstSentAt: undefined }, lease),
      ),
  },
  'client/create/store-faults': {
    'a tampered record is sent': () =>
      around(decodeRow, async (_original, row) => {
        if (!row.data.startsWith('{')) return 'forgotten'
        const { layout: _layout, sum: _sum, ...content } = JSON.parse(row.data)
        const { version, createdAt, updatedAt } = row
        return { ...content, version, createdAt, updatedAt }
      }),
    'an error of the store is swallowed': () =>
      overStore((store) => ({
        insert: async (row) => await store.insert(row).catch(() => ({ inserted: true })),
        update: async (row, version) => await store.update(row, version).catch(() => true),
      })),
    'a call that ends early believes the record that it has only read': () => withoutFence('interrupted'),
    'a call whose claim is unconfirmed believes the record that it has only read': () =>
      withoutFence('unconfirmed'),
  },
  'client/lists/paging': {
    'a list goes on by the limit that was asked for': () =>
      swap(
        Pages,
        (Original) =>
          class<T> extends Original<T> {
            constructor(fetch: FetchPage<T>, start: Start) {
              super(goingOnByLimit(fetch, start), start)
            }
          },
      ),
  },
  'client/recover/contradictions': {
    'an order of another integration with the same reference counts as found': () =>
      inListed(({ serviceId: _serviceId, quantity: _quantity, ...listed }) => listed),
    'an order for another target counts as found': () => inListed(({ target: _target, ...listed }) => listed),
    'an order of another source system counts as found': () =>
      around(differencesFound, (original, ...args) =>
        original(...args).filter((field) => field !== 'sourceSystem'),
      ),
    'a service that changes what it shows is not believed': () =>
      around(contradiction, (_original, ...args) => differences(...args)[0]),
    'a person resolves an order with the order of another integration': () =>
      around(differencesFound, () => []),
  },
  'client/recover/pruning': {
    'one clock decides what is old enough to be removed': () =>
      swapMethod(Journal, 'prune', async function () {
        const { store, scope, options } = this
        const { runtime, retention } = options
        const { created, rejected } = retention
        const now = runtime.now()
        await store.prune(scope, { createdBefore: now - created, rejectedBefore: now - rejected })
      }),
  },
  'client/recover/long-list': {
    'a recovery that looks for an order goes on by the limit that it asked for': () =>
      around(advanceBy, (original, received) => original(received) - received + 50),
    'a look-up that could not read the whole list says nothing of it': () =>
      around(scanOrders, async function* (original, context, options) {
        let pages = 1
        for await (const page of original(context, options)) {
          if (pages++ === MAX_PAGES) return
          yield page
        }
      }),
  },
  'client/recover/recover': {
    'recovery takes the record of a dead call for clean': () =>
      whereResumed((record) => ({ ambiguous: record.ambiguous }), 'recover'),
    'recovery does nothing and leaves every order to a person': () =>
      insteadOfRecovery((record) => ({
        outcome: 'needs_attention',
        record: publicRecord(record),
        reason: 'past_window',
      })),
    'recovery never repeats a request': () =>
      changeCells(
        RULES,
        (command) => command === 'recover',
        (cell) =>
          cell.map((entry) => (isSending(entry) ? { step: 'look_up', because: 'past_window' } : entry)),
      ),
    'recovery does nothing and says that every order exists': () =>
      insteadOfRecovery((record) => outcomeOf({ ...record, state: 'created' })),
    'recovery says of an order that is still open that it was rejected': () =>
      afterRecovery((outcome) =>
        outcome.outcome === 'still_open' ? { outcome: 'rejected', record: outcome.record } : outcome,
      ),
    'recovery says of an order that it has just proven that it was rejected': () =>
      afterRecovery((outcome) =>
        outcome.order === undefined ? outcome : { outcome: 'rejected', record: outcome.record },
      ),
    'recovery does not find in the list what it shows': () =>
      inListed((listed) => ({ ...listed, externalOrderId: listed.id })),
    'recovery goes through the list forty times over': () =>
      around(scanOrders, async function* (original, context, options) {
        for (let sweep = 0; sweep < 20; sweep++) yield* original(context, options)
      }),
    'recovery reads an order a hundred times over': () =>
      around(lookUpById, async (original, context, found, settings) => {
        const once = { ...settings, maxRetries: 0 }
        const id = found.record.order?.id ?? ''
        for (let time = 1; time < 100; time++)
          await readOrder(context, 'orders.recover', id, 'yes', once, found.record).catch(() => {})
        return await original(context, found, settings)
      }),
    'recovery sends an order without the headers of its call': () =>
      around(send, (original, context, job, claimed) => {
        const settings = job.command === 'recover' ? { ...job.settings, headers: {} } : job.settings
        return original(context, { ...job, settings }, claimed)
      }),
    'every order in doubt counts as one whose caller has given up': () =>
      around(settle, (original, record, ending) =>
        original(record, ending.rejection === undefined ? { ...ending, hold: 'aborted' } : ending),
      ),
    'recovery waits for an hour at each record': () =>
      around(recoverOne, async (original, context, job) => {
        const { runtime } = context.connection
        await new Promise<void>((done) => void runtime.setTimer(done, 3_600_000))
        return await original(context, job)
      }),
    'a key that was first sent by a clock ahead comes back into its window': () =>
      around(isFromFuture, () => false),
    'the mark that a clock went back is not stored': () =>
      swapMethod(Journal, 'write', async (original, found, content, ...time) => {
        const { firstSentAt = 0 } = found.record ?? {}
        const lost: Written = { result: 'lost' }
        const marks = firstSentAt !== 0 && content.firstSentAt === 0
        return marks ? lost : await original(found, content, ...time)
      }),
  },
  'client/recover/resolve': {
    'a person gives up what another call has worked on since': () => dropRule(RULES, changedSince),
    'a person gives up what an overtaken call may still send': () =>
      around(claim, (original, ...args) => {
        const { othersUntil: _others, ...content } = original(...args)
        return content
      }),
    'a person whose clock is wrong gives up what a call may still send': () =>
      around(mayBeRunning, (_original, record, now) => isBusy(record, now)),
    'a person cannot confirm an order that the service shows otherwise': () =>
      around(resolve, (original, context, name, { ...resolution }, settings) =>
        original(
          context,
          name,
          'orderId' in resolution ? { ...resolution, despite: [] } : resolution,
          settings,
        ),
      ),
    'a decision that an order exists is not stored': () =>
      around(proveCreated, async (original, context, found, proof, ...time) =>
        proof.sent === undefined
          ? {
              record: { ...found.record, state: 'created' as const },
              remembered: true,
              isDisplaced: false,
            }
          : await original(context, found, proof, ...time),
      ),
    'a proof that the store did not take counts as stored': () =>
      around(proveCreated, async (original, context, found, proof, ...time) => {
        const proven = await original(context, found, proof, ...time)
        return proof.sent === undefined ? { ...proven, remembered: true } : proven
      }),
    'a decision that the store does not take is told as not charged': () =>
      around(resolve, async (original, ...args) => {
        try {
          return await original(...args)
        } catch (error) {
          if (!isCustomerOrderingError(error) || error.code !== 'store') throw error
          const { idempotencyKey, externalOrderId } = error
          throw new StoreError(error.message, {
            charged: 'no',
            ...defined({ idempotencyKey, externalOrderId }),
          })
        }
      }),
  },
  'client/setup/codec': {
    'a call whose codec fails believes the record that it has only read': () =>
      swapMethod(Journal, 'fence', () => Promise.resolve(true)),
  },
  'client/setup/secrets': {
    'the API key itself is kept beside the order': () =>
      around(
        tagOf,
        (original, context, key, credential, stored) =>
          credential ?? original(context, key, credential, stored),
      ),
  },
  'server/sleep': {
    'a machine that slept while it connected sends when it wakes': () =>
      around(holdIfLate, (_original, dispatch) => dispatch),
  },
  'unit/http/transport': {
    'redirects are followed, with the key and the body': () =>
      eachFetch((init) => ({ ...init, redirect: 'follow' })),
    'reads may come from an HTTP cache': () => eachFetch(({ cache: _cache, ...init }) => init),
  },
  'unit/orders/protocol/classify': {
    'a 201 that cannot be read counts as any other answer that cannot be read': () =>
      around(classify, (original, result, asked) => {
        const outcome = original(result, asked)
        return outcome.kind === 'created_unreadable'
          ? { ...outcome, kind: 'success_unreadable' as const }
          : outcome
      }),
    'an error page of a gateway counts as a refusal of the service': () =>
      around(readProblem, (original, text) => ({ ...original(text), recognised: true })),
    'any success with an id counts as an order': () =>
      around(classify, (original, result, asked) => {
        const outcome = original(result, asked)
        if (outcome.kind !== 'success_unreadable' || result.kind !== 'answer') return outcome
        const created = original({ ...result, status: 201 }, asked)
        return created.kind === 'created_flawed' ? { ...created, status: result.status } : outcome
      }),
    'a response that names another order counts as this one': () =>
      around(classify, (original, result) => original(result, { slot: '', fingerprint: {} })),
  },
  'unit/orders/record/journal': {
    'a late proof of a charge gives way to what was stored meanwhile': () =>
      around(proveCreated, async (_original, { journal }, mine, proof, deadline, signal) => {
        const written = await journal.writeOutcome(
          mine,
          prove(mine.record, proof, mine.record.claim),
          deadline,
          signal,
        )
        return written.result === 'written'
          ? { record: written.found.record, remembered: true, isDisplaced: false }
          : { record: mine.record, remembered: false, isDisplaced: false }
      }),
    'a write whose answer was lost is not read back': () =>
      overStore((store) => {
        const failed = new Set<string>()
        const noted = async <T>(id: string, write: Promise<T>): Promise<T> => {
          try {
            return await write
          } catch (error) {
            failed.add(id)
            throw error
          }
        }
        return {
          insert: (row) => noted(row.id, store.insert(row)),
          update: (row, version) => noted(row.id, store.update(row, version)),
          get: async (scope, id) => {
            if (failed.delete(id)) throw new Error('not read back')
            return await store.get(scope, id)
          },
        }
      }),
    'a row that is there already counts as inserted': () =>
      overStore((store) => ({
        insert: async (row) => ({ ...(await store.insert(row)), inserted: true }),
      })),
  },
  'unit/orders/protocol/outcome': {
    'an attempt in doubt leaves no doubt': () =>
      around(judgeOutcome, (original, kind, before) => ({
        ...original(kind, before),
        ambiguous: before.ambiguous,
      })),
    'a refusal after doubt does not keep recovery from repeating the request': () =>
      around(judgeOutcome, (original, kind, history) => {
        const { hold: _hold, ...verdict } = original(kind, history)
        return verdict
      }),
    'a refusal settles what an earlier attempt left in doubt': () =>
      around(judgeOutcome, (original, kind, before) =>
        original(kind, kind === 'refused' ? { ...before, ambiguous: false } : before),
      ),
    'an attempt without an answer in time counts as not sent': () => countsAsUnsent('timed_out'),
    'a connection that closes before an answer counts as not sent': () => countsAsUnsent('connection_closed'),
    'an error of the server counts as a refusal': () => countsAsUnsent('server_error'),
    'an order in progress counts as refused': () =>
      put(OUTCOMES, 'in_progress', { shows: 'refused', next: 'stop' }),
  },
  'unit/orders/protocol/rules': {
    'a refused order past its window is sent although something else may have bought it': () =>
      dropRule(RULES, maybeHidden),
  },
  'unit/orders/protocol/keys': {
    'a claim from the future never ends': () =>
      around(isBusy, (_original, { busyUntil = 0 }, now) => now < busyUntil),
    'a claim by a clock that is a little ahead is taken over immediately': () =>
      around(isBusy, (original, record, now) => original(record, now) && now >= record.updatedAt),
  },
} satisfies Record<string, Record<string, () => unknown>>

type NamesIn<Bugs> = Bugs extends unknown ? keyof Bugs : never
type BugName = NamesIn<(typeof BUGS)[keyof typeof BUGS]>

/** Why the simulation cannot detect a bug. The project's tests detect it all the same. */
const OUT_OF_SIMULATION: { readonly [Name in BugName]?: string } = {
  'a write whose answer was lost is not read back':
    "no promise is broken: the call ends as 'unknown' where it could have gone on",
  'a key is sent again after its safe-retry window':
    'the look before every send holds the key back all the same',
  'a record that a live call holds is claimed':
    'no promise is broken: the key and the body are the same, so the service answers both calls alike',
  'a refusal after doubt does not keep recovery from repeating the request':
    'no promise is broken: the key is the same, and recovery reports what it hears',
  'another payload is sent while a call that was taken over may still send its own':
    'not seen in 20,000 seeds: a call must be taken over, and wake after another has claimed the key (seed 8000935144)',
  'a conflict is settled as if the order were refused':
    'not seen in 20,000 seeds: this payload was not bought, and each payload is judged by its own calls',
  'a request that the service has not processed begins the window of its key':
    'no promise is broken: the window of the key ends earlier than it must (not seen in 20,000 seeds)',
  'recovery repeats an order whose key belongs to another payload':
    'no promise is broken: the key and the body are the same, so the service reports the conflict again',
  'an unreadable order is returned although a call that was overtaken may return it':
    'no broken response comes to an order without a name whose call is taken over (not seen in 60,000 seeds)',
  'a tampered record is sent': 'nobody tampers with records',
  'a machine that slept while it connected sends when it wakes': 'it has no connections',
  'a claim from the future never ends':
    'no promise is broken: a call waits for it for fifteen seconds, and a recovery until it may take over',
  'a claim by a clock that is a little ahead is taken over immediately':
    'no promise is broken: the key and the body are the same, so the service answers both calls alike',
  'an earlier refusal is forgotten when the service is busy':
    'no promise is broken: the order stays refused until it is asked for twice more',
}

export const SEEDED_BUGS = Object.entries(BUGS).flatMap(([noticedBy, bugs]) =>
  Object.entries<() => unknown>(bugs).map(([name, sow]) => ({
    name,
    sow,
    noticedBy,
    outOfSimulation: Object.entries(OUT_OF_SIMULATION).find(([each]) => each === name)?.[1],
  })),
)

/** Bugs that break no promise, which a harness must not report as broken promises. */
const BROKEN_BUGS: Readonly<Record<string, () => void>> = {
  'a bug that only throws': () =>
    around(isLate, () => {
      throw new TypeError('the bug does not work')
    }),
  'a bug that cannot be sown': () => {
    throw new TypeError('the bug cannot be sown')
  },
  'a promise that nobody handles': () =>
    swapMethod(Journal, 'prune', async (original) => {
      void Promise.reject(new Error('planted'))
      await original()
    }),
}

const sown = new Set<string>()

/**
 * Inserts a bug into the loaded modules once, because test files may share them. An unknown name is
 * an error.
 */
export function sow(name: string): void {
  if (sown.has(name)) return
  sown.add(name)
  const bug = SEEDED_BUGS.find((candidate) => candidate.name === name)?.sow ?? BROKEN_BUGS[name]
  if (bug === undefined) throw new Error(`there is no seeded bug "${name}"`)
  bug()
}

function overStore(change: (store: OrderStore) => Partial<OrderStore>): void {
  const changed = new WeakMap<OrderStore, OrderStore>()
  const over = (store: OrderStore): OrderStore => {
    const changes = change(store)
    return new Proxy(store, {
      get(target, name) {
        if (name in changes) return Reflect.get(changes, name)
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }
  swap(
    Journal,
    (Original) =>
      class extends Original {
        constructor(options: JournalOptions) {
          const store = changed.get(options.store) ?? over(options.store)
          changed.set(options.store, store)
          super({ ...options, store })
        }
      },
  )
}

/** Continues an order that another call has opened, with other content. */
function whereResumed(
  change: (record: RecordContent, intent: Intent | undefined) => Partial<RecordContent>,
  command?: Job['command'],
): void {
  const jobs = new Map<string, Job>()
  around(drive, async (original, context, job) => {
    jobs.set(job.callId, job)
    return await original(context, job).finally(() => jobs.delete(job.callId))
  })
  around(claim, (original, record, intent, key, lease) => {
    const content = original(record, intent, key, lease)
    const job = jobs.get(lease.claim)
    const resumes = record !== undefined && isPending(record) && record.claim !== lease.claim
    return resumes && job !== undefined && (command ?? job.command) === job.command
      ? { ...content, ...change(record, job.intent) }
      : content
  })
}

/** Omits the fence of a call that ends without a claim. */
function withoutFence(after: 'interrupted' | 'unconfirmed'): void {
  const unconfirmed = new WeakSet<Found>()
  swapMethod(Journal, 'write', async (original, found, content, ...time) => {
    const written = await original(found, content, ...time)
    if (written.result !== 'written') unconfirmed.add(found)
    return written
  })
  swapMethod(Journal, 'fence', (original, found, deadline) =>
    unconfirmed.has(found) === (after === 'unconfirmed') ? Promise.resolve(true) : original(found, deadline),
  )
}

/** Changes how the outcome of a call is stored over its own record. */
function overOutcomes(change: (write: () => Promise<Written>, found: FoundRecord) => Promise<Written>): void {
  swapMethod(Journal, 'writeOutcome', (original, found, content, deadline) => {
    const write = (): Promise<Written> => original(found, content, deadline)
    const { row, record, id } = found
    if (row === undefined || record === undefined || content.state !== 'rejected') return write()
    return change(write, { id, row, record: { ...record, ...content } })
  })
}

function eachFetch(change: (init: RequestInit) => RequestInit): void {
  around(kyTransport, (original, given) =>
    original((url, init) => (given ?? fetch)(url, change({ ...init }))),
  )
}

/** Treats such an attempt as one that was never made. */
function countsAsUnsent(kind: OutcomeKind): void {
  put(OUTCOMES, kind, { shows: OUTCOMES.unreachable.shows })
}

/** Makes recovery report this for every open order, and do nothing. */
function insteadOfRecovery(say: (record: JournalRecord) => RecoveryOutcome): void {
  around(recoverOne, async (original, context, job) => {
    const found = await context.journal.newest(job.rowId, job.deadline.grace())
    const record = found?.record
    const busy = record !== undefined && isBusy(record, context.connection.runtime.now())
    if (record === undefined || busy || !isPending(record)) return await original(context, job)
    return say(record)
  })
}

function afterRecovery(say: (outcome: RecoveryOutcome) => RecoveryOutcome): void {
  around(recoverOne, async (original, context, job) => {
    const step = await original(context, job)
    return step === undefined || 'found' in step ? step : say(step)
  })
}

/** What a look-up or a reconciliation finds in the list. */
function inListed(show: (listed: ListedOrder) => ListedOrder): void {
  around(scanOrders, async function* (original, context, options) {
    for await (const page of original(context, options)) yield page.map(show)
  })
}

/** Requests the next page at an offset computed from the limit, even after a short page. */
function goingOnByLimit<T>(fetch: FetchPage<T>, { offset: begin, limit }: Start): FetchPage<T> {
  let skipped = 0
  return async (at) => {
    if (at.offset === begin) skipped = 0
    const page = await fetch({ ...at, offset: at.offset + skipped })
    if (limit !== undefined && page.items.length > 0) skipped += limit - page.items.length
    return page
  }
}

function isSending(entry: unknown): boolean {
  return typeof entry === 'object' && entry !== null && Reflect.get(entry, 'step') === 'send'
}
