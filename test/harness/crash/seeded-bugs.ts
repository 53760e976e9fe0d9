/**
 * Realistic bugs, each of which disables one safeguard. The tests must detect all of them; if a
 * test misses one, the test is wrong. Each bug replaces exports of modules in `src` (see
 * `seams.ts`), so that lines may move and names may change without breaking a bug.
 */
import { defined } from '../../../src/defined.ts'
import { isCustomerOrderingError, StoreError } from '../../../src/errors/classes.ts'
import { perform } from '../../../src/http/call.ts'
import { Deadline } from '../../../src/http/deadline.ts'
import { kyTransport } from '../../../src/http/ky-transport.ts'
import { decide } from '../../../src/http/retry.ts'
import { Pages } from '../../../src/lists/pages.ts'
import type { FetchPage, Start } from '../../../src/lists/prefetch.ts'
import {
  begunContent,
  claimedContent,
  repeatedContent,
  sameApiKey,
  tagOf,
} from '../../../src/orders/claim.ts'
import {
  boughtMeanwhile,
  changedSince,
  isBusy,
  isFromFuture,
  isRemembered,
  mayStillRun,
  otherApiKey,
  otherKey,
  otherPayload,
  startOf,
} from '../../../src/orders/conditions.ts'
import { pauseBefore } from '../../../src/orders/create.ts'
import { writeOver } from '../../../src/orders/engine.ts'
import { differences } from '../../../src/orders/evidence.ts'
import { type Intent, isGenuine, slotOfInvalid } from '../../../src/orders/intent.ts'
import { Journal, type JournalOptions } from '../../../src/orders/journal.ts'
import { isTooLate, mayBeSentUnder } from '../../../src/orders/key-attempts.ts'
import { whyNotJoin } from '../../../src/orders/live.ts'
import { lookUpById, readOrder } from '../../../src/orders/look-up.ts'
import { isAnother, markCreated, newestRecord } from '../../../src/orders/newest.ts'
import { classify, judgeOutcome, OUTCOMES, type OutcomeKind } from '../../../src/orders/outcome.ts'
import {
  isPending,
  type JournalRecord,
  publicRecord,
  type RecordContent,
} from '../../../src/orders/record.ts'
import { recoverOne } from '../../../src/orders/recover.ts'
import { createdOutcome, type RecoveryOutcome, settledOutcome } from '../../../src/orders/recovery-outcome.ts'
import { mayReturn } from '../../../src/orders/reply.ts'
import { resolve } from '../../../src/orders/resolve.ts'
import { isConfirmed, isThisWrite, witnessOf } from '../../../src/orders/rows.ts'
import { RULES } from '../../../src/orders/rules.ts'
import { advanceBy, scanOrders } from '../../../src/orders/scan-orders.ts'
import { chargedAsStored, isShared, meaningOf, movesOn, sendOrder } from '../../../src/orders/send-order.ts'
import { apply } from '../../../src/orders/transitions.ts'
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
    'a call takes the order that it asked for again for the one before it': () =>
      dropRule(RULES, boughtMeanwhile),
    'the proof of an order is written over the next one in its slot': () => around(isAnother, () => false),
  },
  'client/create/api-key-rotation': {
    'an order in doubt is repeated under another API key': () => around(sameApiKey, () => true),
    'recovery repeats a request under another API key': () => dropRule(RULES, otherApiKey, 'recover'),
    'a retry goes on under another API key': () =>
      around(mayBeSentUnder, (_original, _context, _record, _history, credential) => credential !== null),
    'a machine that slept while it wrote down another API key sends when it wakes': () => {
      const rewritten = new WeakSet<JournalRecord>()
      swapMethod(Journal, 'write', async (original, found, content, deadline) => {
        const written = await original(found, content, deadline)
        const again = found.record?.claim === content.claim && found.record.apiKeyTag !== content.apiKeyTag
        if (again && written.result === 'written') rewritten.add(written.found.record)
        return written
      })
      around(
        isTooLate,
        (original, record, until, now) => !rewritten.has(record) && original(record, until, now),
      )
    },
  },
  'client/create/changed-arguments': {
    'an invalid request says nothing of the order that it names': () =>
      around(slotOfInvalid, () => undefined),
  },
  'client/create/claims': {
    'a record that a live call holds is claimed': () =>
      Object.assign(RULES.busy, { create: RULES.open.create }),
    'a call waits for a dead process to the end of its claim': () =>
      around(pauseBefore, (original, look, waited) => original(look, waited / 10)),
  },
  'client/create/conflicts': {
    'a key of an unseen payload counts as proof that nothing was bought': () =>
      around(meaningOf, (original, verdict, history, record) =>
        original(verdict, history, { ...record, foreign: false }),
      ),
    'a conflict moves to another key although stores are not shared': () => around(isShared, () => false),
    'an order in conflict is settled as if it were refused': () =>
      around(isPending, (original, record) => record.state !== 'rejected' && original(record)),
  },
  'client/create/generations': {
    'a first refusal moves the order to a new key': () =>
      around(movesOn, (original, context, record, heard, earlier) => {
        if (heard.kind === 'refused') return record.keyOrigin !== 'caller'
        return original(context, record, heard, earlier)
      }),
    'a key that the caller gave is changed': () =>
      around(movesOn, (original, context, record, heard, earlier) => {
        const keyOrigin = record.keyOrigin === 'caller' ? 'random' : record.keyOrigin
        return original(context, { ...record, keyOrigin }, heard, earlier)
      }),
    'a call begins with the latest key, which a lost store does not compute': () =>
      around(startOf, (original, record, timing) => {
        const start = original(record, timing)
        const isOpen = record.firstSentAt === undefined || isRemembered(record.firstSentAt, timing)
        return start === 'first' && isOpen ? 'same' : start
      }),
    'another key that the caller gives replaces a refused one': () => dropRule(RULES, otherKey, 'create'),
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
      whereResumed((_record, intent) => ({ body: intent.body })),
    'a join in flight takes the order of a call beside it, whatever that one asks for and without a name':
      () =>
        around(whyNotJoin, (original, intent, twin) =>
          original(intent, twin) === 'key' ? 'key' : undefined,
        ),
    'whoever asks for another quantity gets the order that there is': () => {
      around(whyNotJoin, (original, intent, twin) =>
        original({ ...intent, fingerprint: twin.fingerprint }, twin),
      )
      dropRule(RULES, otherPayload)
    },
  },
  'client/create/retry': {
    'a call retries once more than it may': () =>
      around(decide, (original, situation) =>
        original({ ...situation, maxRetries: situation.maxRetries + 1 }),
      ),
  },
  'client/create/sequences': {
    'a record that another call opened is taken for clean': () =>
      whereResumed((record) => ({ ambiguous: record.ambiguous })),
    'a write goes over the version of somebody else': () =>
      overStore((store) => ({
        update: async (row) => {
          const there = (await store.get(row.scope, row.id))?.version ?? 0
          return await store.update({ ...row, version: there + 1 }, there)
        },
      })),
    'a process that was stopped after its claim sends when it wakes': () => around(isTooLate, () => false),
    'a key is sent again after its safe-retry window': () =>
      Object.assign(RULES.stale, { create: RULES.open.create }),
    'no key is ever too old to be sent': () => {
      around(isRemembered, () => true)
      around(isTooLate, (original, record, _until, now) => original(record, Infinity, now))
    },
    'a key is sent minutes after the safe-retry window': () => {
      around(isRemembered, (original, sentAt, timing) => {
        const safeRetryWindow = timing.safeRetryWindow + 120_000
        return original(sentAt, { ...timing, totalTimeout: 0, safeRetryWindow })
      })
      around(isTooLate, (original, record, until, now) => original(record, until + 180_000, now))
    },
    'reopening a refused order restarts the window of its key': () =>
      around(claimedContent, (original, context, content, remaining, credential) => {
        const claimed = original(context, content, remaining, credential)
        return { ...claimed, firstSentAt: context.connection.runtime.now() }
      }),
  },
  'client/create/store-faults': {
    'a tampered record is sent': () => around(isGenuine, () => true),
    'a write that the store does not answer counts as written': () =>
      around(isConfirmed, (_original, applied) => applied !== false),
    'an error of the store is swallowed': () =>
      overStore((store) => ({
        insert: async (row) => await store.insert(row).catch(() => ({ inserted: true })),
        update: async (row, version) => await store.update(row, version).catch(() => true),
      })),
    'a call that ends early believes the record that it has only read': () =>
      around(writeOver, () => Promise.resolve(true)),
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
      around(scanOrders, async function* (original, context, options) {
        for await (const { serviceId: _serviceId, quantity: _quantity, ...listed } of original(
          context,
          options,
        ))
          yield listed
      }),
    'a person resolves an order with the order of another integration': () =>
      around(differences, (original, derive, asked, echo) =>
        original(derive, asked, echo).filter((field) => field === 'externalOrderId'),
      ),
  },
  'client/recover/pruning': {
    'one clock decides what is old enough to be removed': () =>
      swap(witnessOf, () => <Row>(rows: readonly Row[], latest: number) => ({
        ...(rows[0] as Row),
        updatedAt: latest,
      })),
    'a clock that is ahead is its own witness for what is old enough to be removed': () =>
      around(witnessOf, (_original, rows) => rows.at(-1)),
  },
  'client/recover/recover': {
    'recovery takes the record of a dead call for clean': () =>
      around(repeatedContent, (original, record) => ({ ...original(record), ambiguous: record.ambiguous })),
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
      insteadOfRecovery((record) => settledOutcome({ ...record, state: 'created' })),
    'recovery says of an order that is still open that it was rejected': () =>
      afterRecovery((outcome) =>
        outcome.outcome === 'still_open' ? { outcome: 'rejected', record: outcome.record } : outcome,
      ),
    'recovery says of an order that it has just proven that it was rejected': () =>
      afterRecovery((outcome) =>
        outcome.order === undefined ? outcome : { outcome: 'rejected', record: outcome.record },
      ),
    'recovery does not find in the list what it shows': () =>
      around(scanOrders, async function* (original, context, options) {
        for await (const listed of original(context, options)) yield { ...listed, externalOrderId: listed.id }
      }),
    'recovery goes through the list forty times over': () =>
      around(scanOrders, async function* (original, context, options) {
        for (let sweep = 0; sweep < 20; sweep++) yield* original(context, options)
      }),
    'recovery sends an order without the headers of its call': () =>
      around(sendOrder, (original, context, claimed, options) => {
        const settings = options.once ? { ...options.settings, headers: {} } : options.settings
        return original(context, claimed, { ...options, settings })
      }),
    'every order in doubt counts as one whose caller has given up': () =>
      around(apply, (original, record, event) =>
        original(record, event.type === 'left_open' ? { ...event, hold: 'aborted' } : event),
      ),
    'recovery waits for an hour at each record': () =>
      around(recoverOne, async (original, context, id, options) => {
        const { runtime } = context.connection
        await new Promise<void>((done) => void runtime.setTimer(done, 3_600_000))
        return await original(context, id, options)
      }),
    'a key that was first sent by a clock ahead comes back into its window': () =>
      around(isFromFuture, () => false),
  },
  'client/recover/resolve': {
    'a person gives up what another call has worked on since': () => dropRule(RULES, changedSince),
    'a person gives up what an overtaken call may still send': () => dropRule(RULES, mayStillRun),
    'a decision that an order exists is not stored': () =>
      around(markCreated, async (original, context, found, listed, deadline) => {
        // Only the decision about a record uses the deadline of a call.
        if (deadline === undefined) return await original(context, found, listed, deadline)
        return createdOutcome(publicRecord({ ...found.record, state: 'created' }), listed.order)
      }),
    'a proof that the store did not take counts as stored': () =>
      around(markCreated, async (original, context, found, listed, deadline) => {
        const { record } = await original(context, found, listed, deadline)
        return createdOutcome({ ...record, state: 'created' }, listed.order)
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
  'client/recover/long-list': {
    'a look-up that could not read the whole list says nothing of it': () =>
      around(scanOrders, (original, context, { onCut: _onCut, ...options }) => original(context, options)),
  },
  'client/setup/codec': {
    'a call whose codec fails believes the record that it has only read': () =>
      swapMethod(Journal, 'fence', () => Promise.resolve(true)),
  },
  'client/setup/secrets': {
    'the API key itself is kept beside the order': () =>
      around(tagOf, (original, context, key, credential) => credential ?? original(context, key, credential)),
  },
  'server/sleep': {
    'a machine that slept while it connected sends when it wakes': () =>
      around(holdIfLate, (original) => original(() => false)),
  },
  'unit/http/transport': {
    'redirects are followed, with the key and the body': () =>
      eachFetch((init) => ({ ...init, redirect: 'follow' })),
    'reads may come from an HTTP cache': () => eachFetch(({ cache: _cache, ...init }) => init),
  },
  'unit/orders/classify': {
    'a 201 that cannot be read counts as any other answer that cannot be read': () =>
      around(classify, (original, result, differs) => {
        const outcome = original(result, differs)
        return outcome.kind === 'created_unreadable'
          ? { ...outcome, kind: 'success_unreadable' as const }
          : outcome
      }),
    'an error page of a gateway counts as a refusal of the service': () =>
      around(readProblem, (original, text) => ({ ...original(text), recognised: true })),
    'any success with an id counts as an order': () =>
      around(classify, (original, result, differs) => {
        const outcome = original(result, differs)
        if (outcome.kind !== 'success_unreadable' || result.kind !== 'answer') return outcome
        const created = original({ ...result, status: 201 }, differs)
        return created.kind === 'created_flawed' ? { ...created, status: result.status } : outcome
      }),
    'a response that names another order counts as this one': () =>
      around(classify, (original, result) => original(result, () => undefined)),
  },
  'unit/orders/create': {
    'a refused call is given what somebody else ordered under its name': () =>
      around(mayReturn, (original, newest) => original(newest, newest.fingerprint)),
  },
  'unit/orders/journal': {
    'a late proof of a charge gives way to what was stored meanwhile': () =>
      swapMethod(Journal, 'prove', async function (original, found, merge, deadline, signal) {
        const content = merge(found.record)
        if (content !== undefined) {
          const { result } = await this.settle(found, content, deadline)
          if (result === 'written' || result === 'lost') return result === 'written'
        }
        return await original(found, merge, deadline, signal)
      }),
    'a write whose answer was lost is not read back': () => around(isThisWrite, () => false),
    'a row that is there already counts as inserted': () =>
      overStore((store) => ({
        insert: async (row) => ({ ...(await store.insert(row)), inserted: true }),
      })),
  },
  'unit/orders/look-up': {
    'recovery reads an order a hundred times over': () =>
      around(lookUpById, async (original, context, operation, found, orderId, settings) => {
        const once = { ...settings, maxRetries: 0 }
        for (let time = 1; time < 100; time++)
          await readOrder(context, operation, orderId, 'charged', once, found.record).catch(() => {})
        return await original(context, operation, found, orderId, settings)
      }),
  },
  'unit/orders/outcome': {
    'an attempt in doubt leaves no doubt': () => {
      for (const kind of Object.keys(OUTCOMES))
        put<{ leavesDoubt: boolean }, string>(OUTCOMES, kind, { leavesDoubt: false })
    },
    'a refusal after doubt does not keep recovery from repeating the request': () =>
      around(judgeOutcome, (original, kind, history) => {
        const { hold: _hold, ...verdict } = original(kind, history)
        return verdict
      }),
    'a refusal settles what an earlier attempt left in doubt': () =>
      put(OUTCOMES, 'refused', { ambiguous: OUTCOMES.refused.clean }),
    'an attempt without an answer in time counts as not sent': () => countsAsUnsent('timed_out'),
    'a connection that closes before an answer counts as not sent': () => countsAsUnsent('connection_closed'),
    'an error of the server counts as a refusal': () => countsAsUnsent('server_error'),
    'an order in progress counts as refused': () => {
      const { clean } = OUTCOMES.refused
      put(OUTCOMES, 'in_progress', { clean, ambiguous: clean, next: 'stop', leavesDoubt: false })
    },
    'a key that belongs to another payload is told as not charged': () =>
      put(OUTCOMES, 'conflict', { clean: { ...OUTCOMES.conflict.clean, charged: 'no' } }),
  },
  'unit/orders/rules': {
    'a claim from the future never ends': () =>
      around(isBusy, (_original, { busyUntil = 0 }, now) => now < busyUntil),
    'a claim by a clock that is a little ahead is taken over immediately': () =>
      around(isBusy, (original, record, now) => original(record, now) && now >= record.updatedAt),
  },
  'unit/orders/scan-orders': {
    'a recovery that looks for an order goes on by the limit that it asked for': () =>
      around(advanceBy, (original, received) => original(received) - received + 50),
  },
  'unit/orders/send-order': {
    'the caller hears of a refusal before it is stored': () =>
      swapMethod(Journal, 'settle', (original, found, content, deadline) => {
        void original(found, content, deadline)
        return Promise.resolve({ result: 'written', found })
      }),
    'a refusal that could not be stored is told as a refusal': () =>
      around(chargedAsStored, (_original, _result, charged) => charged),
  },
} satisfies Record<string, Record<string, () => unknown>>

type NamesIn<Bugs> = Bugs extends unknown ? keyof Bugs : never
type BugName = NamesIn<(typeof BUGS)[keyof typeof BUGS]>

/** Why the simulation cannot detect a bug. The project's tests detect it all the same. */
const OUT_OF_SIMULATION: { readonly [Name in BugName]?: string } = {
  'an invalid request says nothing of the order that it names': 'it makes no invalid requests',
  'a look-up that could not read the whole list says nothing of it':
    'no list of the service is longer than a look-up reads',
  'a write whose answer was lost is not read back':
    "no promise is broken: the call ends as 'unknown' where it could have gone on",
  'a key is sent again after its safe-retry window':
    'the look before every send holds the key back all the same',
  'a key of an unseen payload counts as proof that nothing was bought':
    'all its workers share one store, so that no payload is unseen',
  'a record that a live call holds is claimed':
    'no promise is broken: the key and the body are the same, so the service answers both calls alike',
  'a refusal after doubt does not keep recovery from repeating the request':
    'no promise is broken: the key is the same, and recovery reports what it hears',
  'a person gives up what an overtaken call may still send':
    'it permits the requests of earlier calls after an abandonment; the model does not',
  'a tampered record is sent': 'nobody tampers with records',
  'a machine that slept while it connected sends when it wakes': 'it has no connections',
  'a claim from the future never ends':
    'no promise is broken: a call waits for it for fifteen seconds, and a recovery until it may take over',
  'a claim by a clock that is a little ahead is taken over immediately':
    'no promise is broken: the key and the body are the same, so the service answers both calls alike',
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
    around(isTooLate, () => {
      throw new TypeError('the bug does not work')
    }),
  'a bug that cannot be sown': () => {
    throw new TypeError('the bug cannot be sown')
  },
  'a promise that nobody handles': () =>
    swapMethod(Journal, 'prune', async (original, kept) => {
      void Promise.reject(new Error('planted'))
      await original(kept)
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

/** Gives every journal a store with some changed operations. */
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
function whereResumed(change: (record: JournalRecord, intent: Intent) => Partial<RecordContent>): void {
  around(begunContent, (original, context, intent, record, as, further) => {
    const content = original(context, intent, record, as, further)
    const resumes = record !== undefined && as === 'stored'
    return resumes ? { ...content, ...change(record, intent) } : content
  })
}

/** Changes every request below ky. */
function eachFetch(change: (init: RequestInit) => RequestInit): void {
  around(kyTransport, (original, given) =>
    original((url, init) => (given ?? fetch)(url, change({ ...init }))),
  )
}

/** Treats such an attempt as one that was never made. */
function countsAsUnsent(kind: OutcomeKind): void {
  const { clean, ambiguous, leavesDoubt } = OUTCOMES.unreachable
  put(OUTCOMES, kind, { clean, ambiguous, leavesDoubt })
}

/** Makes recovery report this for every open order, and do nothing. */
function insteadOfRecovery(say: (record: JournalRecord) => RecoveryOutcome): void {
  around(recoverOne, async (original, context, id, options) => {
    const record = await newestRecord(context, { id })
    const busy = record !== undefined && isBusy(record, context.connection.runtime.now())
    if (record === undefined || busy || !isPending(record)) return await original(context, id, options)
    return say(record)
  })
}

/** Makes recovery report another outcome. */
function afterRecovery(say: (outcome: RecoveryOutcome) => RecoveryOutcome): void {
  around(recoverOne, async (original, context, id, options) => {
    const step = await original(context, id, options)
    return step === undefined || 'found' in step ? step : say(step)
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
