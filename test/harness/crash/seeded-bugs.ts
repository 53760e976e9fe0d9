/**
 * Realistic bugs, each of which disables one safeguard. The tests must detect all of them; if a
 * test misses one, the test is wrong. Each bug replaces exports of modules in `src` (see
 * `seams.ts`), so that lines may move and names may change without breaking a bug.
 */
import { defined } from '../../../src/defined.ts'
import { InvalidRequestError, isCustomerOrderingError, StoreError } from '../../../src/errors.ts'
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
  mayBeRestored,
  otherApiKey,
  otherPayload,
  startOf,
} from '../../../src/orders/conditions.ts'
import { pauseBefore } from '../../../src/orders/create.ts'
import { writeOver } from '../../../src/orders/engine.ts'
import { contradiction } from '../../../src/orders/evidence.ts'
import { type Intent, isGenuine, readIntent, slotOfInvalid } from '../../../src/orders/intent.ts'
import { Journal, type JournalOptions } from '../../../src/orders/journal.ts'
import { whyNotJoin } from '../../../src/orders/live.ts'
import { lookUpById, placesToLook, readOrder } from '../../../src/orders/look-up.ts'
import { isAnother, markCreated, newestRecord } from '../../../src/orders/newest.ts'
import { classify, judgeOutcome, OUTCOMES, type OutcomeKind } from '../../../src/orders/outcome.ts'
import {
  isPending,
  isUnsent,
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
import {
  chargedAsStored,
  isShared,
  isTooLate,
  mayBeSentUnder,
  meaningOf,
  movesOn,
  sendOrder,
} from '../../../src/orders/send-order.ts'
import { apply, leftKeys } from '../../../src/orders/transitions.ts'
import { readProblem } from '../../../src/schemas/problem.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { holdIfLate } from '../../../src/undici/held-back.ts'
import { changeCells, dropRule, put, swap, swapMethod } from './swap.ts'

/** A safeguard, and how to disable it. */
export interface SeededBug {
  readonly name: string
  /** Inserts the bug into the loaded modules. */
  readonly sow: () => void
  /** The test file that detects it, below `test`. */
  readonly noticedBy: string
  /**
   * Why the simulation cannot detect it, if it cannot. The project's tests detect it all the same.
   */
  readonly outOfSimulation?: string
}

export const SEEDED_BUGS: readonly SeededBug[] = [
  {
    name: 'the request is sent before the record is stored',
    noticedBy: 'client/create/idempotency',
    sow: () =>
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
  },
  {
    name: 'every attempt has a key of its own',
    noticedBy: 'client/create/idempotency',
    sow: () =>
      swap(perform, (original) => (connection, call) => {
        const { send, runtime } = connection
        const changed: typeof send = (request) => {
          const { 'idempotency-key': key, ...headers } = request.headers
          const own = key === undefined ? {} : { 'idempotency-key': runtime.randomId() }
          return send({ ...request, headers: { ...headers, ...own } })
        }
        return original({ ...connection, send: changed }, call)
      }),
  },
  {
    name: 'the caller hears of a refusal before it is stored',
    noticedBy: 'unit/orders/send-order',
    sow: () =>
      swapMethod(
        Journal,
        'settle',
        (original) =>
          function (this: Journal, found, content, deadline) {
            void original.call(this, found, content, deadline)
            return Promise.resolve({ result: 'written', found })
          },
      ),
  },
  {
    name: 'a refusal that could not be stored is told as a refusal',
    noticedBy: 'unit/orders/send-order',
    sow: () => swap(chargedAsStored, () => (_result, charged) => charged),
  },
  {
    name: 'a record that another call opened is taken for clean',
    noticedBy: 'client/create/sequences',
    sow: () => whereResumed((record) => ({ ambiguous: record.ambiguous })),
  },
  {
    name: 'an attempt in doubt leaves no doubt',
    noticedBy: 'unit/orders/outcome',
    sow: () => {
      for (const kind of Object.keys(OUTCOMES))
        put<{ leavesDoubt: boolean }, string>(OUTCOMES, kind, { leavesDoubt: false })
    },
  },
  {
    name: 'a write goes over the version of somebody else',
    noticedBy: 'client/create/sequences',
    sow: () =>
      overStore((store) => ({
        update: async (row) => {
          const there = (await store.get(row.scope, row.id))?.version ?? 0
          return await store.update({ ...row, version: there + 1 }, there)
        },
      })),
  },
  {
    name: 'a late proof of a charge gives way to what was stored meanwhile',
    noticedBy: 'unit/orders/journal',
    sow: () =>
      swapMethod(
        Journal,
        'prove',
        (original) =>
          async function (this: Journal, found, merge, deadline, signal) {
            const content = merge(found.record)
            if (content !== undefined) {
              const { result } = await this.settle(found, content, deadline)
              if (result === 'written' || result === 'lost') return result === 'written'
            }
            return await original.call(this, found, merge, deadline, signal)
          },
      ),
  },
  {
    name: 'a write whose answer was lost is not read back',
    noticedBy: 'unit/orders/journal',
    sow: () => swap(isThisWrite, () => () => false),
    outOfSimulation: "no promise is broken: the call ends as 'unknown' where it could have gone on",
  },
  {
    name: 'a process that was stopped after its claim sends when it wakes',
    noticedBy: 'client/create/sequences',
    sow: () => swap(isTooLate, () => () => false),
  },
  {
    name: 'a key is sent again after its safe-retry window',
    noticedBy: 'client/create/sequences',
    sow: () => Object.assign(RULES.stale, { create: RULES.open.create }),
    outOfSimulation: 'the look before every send holds the key back all the same',
  },
  {
    name: 'a first refusal moves the order to a new key',
    noticedBy: 'client/create/generations',
    sow: () =>
      swap(movesOn, (original) => (context, record, heard, earlier) => {
        if (heard.kind === 'refused') return record.keyOrigin !== 'caller'
        return original(context, record, heard, earlier)
      }),
  },
  {
    name: 'a key that the caller gave is changed',
    noticedBy: 'client/create/generations',
    sow: () =>
      swap(movesOn, (original) => (context, record, heard, earlier) => {
        const keyOrigin = record.keyOrigin === 'caller' ? 'random' : record.keyOrigin
        return original(context, { ...record, keyOrigin }, heard, earlier)
      }),
  },
  {
    name: 'a key of an unseen payload counts as proof that nothing was bought',
    noticedBy: 'client/create/conflicts',
    sow: () =>
      swap(
        meaningOf,
        (original) => (verdict, history, record) => original(verdict, history, { ...record, foreign: false }),
      ),
    outOfSimulation: 'all its workers share one store, so that no payload is unseen',
  },
  {
    name: 'an order in doubt is repeated under another API key',
    noticedBy: 'client/create/api-key-rotation',
    sow: () => swap(sameApiKey, () => () => true),
  },
  {
    name: 'a record that a live call holds is claimed',
    noticedBy: 'client/create/claims',
    sow: () => Object.assign(RULES.busy, { create: RULES.open.create }),
    outOfSimulation:
      'no promise is broken: the key and the body are the same, so the service answers both calls alike',
  },
  {
    name: 'a 201 that cannot be read counts as any other answer that cannot be read',
    noticedBy: 'unit/orders/classify',
    sow: () =>
      swap(classify, (original) => (result, differs) => {
        const outcome = original(result, differs)
        return outcome.kind === 'created_unreadable' ? { ...outcome, kind: 'success_unreadable' } : outcome
      }),
  },
  {
    name: 'an error page of a gateway counts as a refusal of the service',
    noticedBy: 'unit/orders/classify',
    sow: () => swap(readProblem, (original) => (text) => ({ ...original(text), recognised: true })),
  },
  {
    name: 'redirects are followed, with the key and the body',
    noticedBy: 'unit/http/transport',
    sow: () => eachFetch((init) => ({ ...init, redirect: 'follow' })),
  },
  {
    name: 'a refusal after doubt does not keep recovery from repeating the request',
    noticedBy: 'unit/orders/outcome',
    sow: () =>
      swap(judgeOutcome, (original) => (kind, history) => {
        const { hold: _hold, ...verdict } = original(kind, history)
        return verdict
      }),
    outOfSimulation: 'no promise is broken: the key is the same, and recovery reports what it hears',
  },
  {
    name: 'an order that was sent counts as one that never was',
    noticedBy: 'client/create/enqueue',
    sow: () => swap(isUnsent, () => (record) => record.state === 'open'),
  },
  {
    name: 'a queued order is given up when the service is busy',
    noticedBy: 'client/create/enqueue',
    sow: () =>
      swap(
        sendOrder,
        (original) => (context, claimed, options) =>
          original(context, claimed, { ...options, queued: false }),
      ),
  },
  {
    name: 'a tampered record is sent',
    noticedBy: 'client/create/store-faults',
    sow: () => swap(isGenuine, () => () => true),
    outOfSimulation: 'nobody tampers with records',
  },
  {
    name: 'a refusal settles what an earlier attempt left in doubt',
    noticedBy: 'unit/orders/outcome',
    sow: () => put(OUTCOMES, 'refused', { ambiguous: OUTCOMES.refused.clean }),
  },
  {
    name: 'an attempt without an answer in time counts as not sent',
    noticedBy: 'unit/orders/outcome',
    sow: () => countsAsUnsent('timed_out'),
  },
  {
    name: 'a connection that closes before an answer counts as not sent',
    noticedBy: 'unit/orders/outcome',
    sow: () => countsAsUnsent('connection_closed'),
  },
  {
    name: 'an error of the server counts as a refusal',
    noticedBy: 'unit/orders/outcome',
    sow: () => countsAsUnsent('server_error'),
  },
  {
    name: 'an order in progress counts as refused',
    noticedBy: 'unit/orders/outcome',
    sow: () => {
      const { clean } = OUTCOMES.refused
      put(OUTCOMES, 'in_progress', { clean, ambiguous: clean, next: 'stop', leavesDoubt: false })
    },
  },
  {
    name: 'a key that belongs to another payload is told as not charged',
    noticedBy: 'unit/orders/outcome',
    sow: () => put(OUTCOMES, 'conflict', { clean: { ...OUTCOMES.conflict.clean, charged: 'no' } }),
  },
  {
    name: 'recovery takes the record of a dead call for clean',
    noticedBy: 'client/recover/recover',
    sow: () =>
      swap(repeatedContent, (original) => (context, record, totalTimeout) => {
        const content = original(context, record, totalTimeout)
        return isUnsent(record) ? content : { ...content, ambiguous: record.ambiguous }
      }),
  },
  {
    name: 'no key is ever too old to be sent',
    noticedBy: 'client/create/sequences',
    sow: () => {
      swap(isRemembered, () => () => true)
      swap(isTooLate, (original) => (record, _until, now) => original(record, Infinity, now))
    },
  },
  {
    name: 'recovery repeats a request under another API key',
    noticedBy: 'client/create/api-key-rotation',
    sow: () => dropRule(RULES, otherApiKey, 'recover'),
  },
  {
    name: 'a retry goes on under another API key',
    noticedBy: 'client/create/api-key-rotation',
    sow: () => swap(mayBeSentUnder, () => (_context, _record, _history, credential) => credential !== null),
  },
  {
    name: 'a row that is there already counts as inserted',
    noticedBy: 'unit/orders/journal',
    sow: () =>
      overStore((store) => ({
        insert: async (row) => ({ ...(await store.insert(row)), inserted: true }),
      })),
  },
  {
    name: 'a write that the store does not answer counts as written',
    noticedBy: 'client/create/store-faults',
    sow: () => swap(isConfirmed, () => (applied) => applied !== false),
  },
  {
    name: 'an error of the store is swallowed',
    noticedBy: 'client/create/store-faults',
    sow: () =>
      overStore((store) => ({
        insert: async (row) => await store.insert(row).catch(() => ({ inserted: true })),
        update: async (row, version) => await store.update(row, version).catch(() => true),
      })),
  },
  {
    name: "a resumed order is sent with the new call's body",
    noticedBy: 'client/create/idempotency',
    sow: () => whereResumed((_record, intent) => ({ body: intent.body })),
  },
  {
    name: 'the API key itself is kept beside the order',
    noticedBy: 'client/setup/secrets',
    sow: () =>
      swap(
        tagOf,
        (original) => (context, key, credential) => credential ?? original(context, key, credential),
      ),
  },
  {
    name: "a call stays among the listeners of its caller's signal",
    noticedBy: 'client/create/abort',
    sow: () =>
      swapMethod(
        Deadline,
        'race',
        (original) =>
          function (this: Deadline, pending) {
            this.signal?.addEventListener('abort', () => {})
            return original.call(this, pending)
          } as typeof original,
      ),
  },
  {
    name: 'a call retries once more than it may',
    noticedBy: 'client/create/retry',
    sow: () =>
      swap(
        decide,
        (original) => (situation) => original({ ...situation, maxRetries: situation.maxRetries + 1 }),
      ),
  },
  {
    name: 'a list goes on by the limit that was asked for',
    noticedBy: 'client/lists/paging',
    sow: () =>
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
  {
    name: 'a recovery that looks for an order goes on by the limit that it asked for',
    noticedBy: 'unit/orders/scan-orders',
    sow: () => swap(advanceBy, (original) => (received) => original(received) - received + 50),
  },
  {
    name: 'a call that ends early believes the record that it has only read',
    noticedBy: 'client/create/store-faults',
    sow: () => swap(writeOver, () => () => Promise.resolve(true)),
  },
  {
    name: 'a call takes the order that it asked for again for the one before it',
    noticedBy: 'client/create/anonymous',
    sow: () => dropRule(RULES, boughtMeanwhile),
  },
  {
    name: 'a call whose codec fails believes the record that it has only read',
    noticedBy: 'client/setup/codec',
    sow: () => swapMethod(Journal, 'fence', () => () => Promise.resolve(true)),
  },
  {
    name: 'the proof of an order is written over the next one in its slot',
    noticedBy: 'client/create/anonymous',
    sow: () => swap(isAnother, () => () => false),
  },
  {
    name: 'a machine that slept while it connected sends when it wakes',
    noticedBy: 'server/sleep',
    sow: () => swap(holdIfLate, (original) => () => original(() => false)),
    outOfSimulation: 'it has no connections',
  },
  {
    name: 'a machine that slept while it wrote down another API key sends when it wakes',
    noticedBy: 'client/create/api-key-rotation',
    sow: () => {
      const rewritten = new WeakSet<JournalRecord>()
      swapMethod(
        Journal,
        'write',
        (original) =>
          async function (this: Journal, found, content, deadline, store) {
            const written = await original.call(this, found, content, deadline, store)
            const again =
              found.record?.claim === content.claim && found.record.apiKeyTag !== content.apiKeyTag
            if (again && written.result === 'written') rewritten.add(written.found.record)
            return written
          },
      )
      swap(
        isTooLate,
        (original) => (record, until, now) => !rewritten.has(record) && original(record, until, now),
      )
    },
  },
  {
    name: 'a person gives up what another call has worked on since',
    noticedBy: 'client/recover/resolve',
    sow: () => dropRule(RULES, changedSince),
  },
  {
    name: 'recovery does nothing and leaves every order to a person',
    noticedBy: 'client/recover/recover',
    sow: () =>
      insteadOfRecovery((record) => ({
        outcome: 'needs_attention',
        record: publicRecord(record),
        reason: 'past_window',
      })),
  },
  {
    name: 'recovery never repeats a request',
    noticedBy: 'client/recover/recover',
    sow: () =>
      changeCells(
        RULES,
        (command) => command === 'recover',
        (cell) =>
          cell.map((entry) => (isSending(entry) ? { step: 'look_up', because: 'past_window' } : entry)),
      ),
  },
  {
    name: 'recovery does nothing and says that every order exists',
    noticedBy: 'client/recover/recover',
    sow: () => insteadOfRecovery((record) => settledOutcome({ ...record, state: 'created' })),
  },
  {
    name: 'recovery says of an order that is still open that it was rejected',
    noticedBy: 'client/recover/recover',
    sow: () =>
      afterRecovery((outcome) =>
        outcome.outcome === 'still_open' ? { outcome: 'rejected', record: outcome.record } : outcome,
      ),
  },
  {
    name: 'recovery says of an order that it has just proven that it was rejected',
    noticedBy: 'client/recover/recover',
    sow: () =>
      afterRecovery((outcome) =>
        outcome.order === undefined ? outcome : { outcome: 'rejected', record: outcome.record },
      ),
  },
  {
    name: 'recovery does not find in the list what it shows',
    noticedBy: 'client/recover/recover',
    sow: () =>
      swap(
        scanOrders,
        (original) =>
          async function* (context, options) {
            for await (const listed of original(context, options))
              yield { ...listed, externalOrderId: listed.id }
          },
      ),
  },
  {
    name: 'recovery reads an order a hundred times over',
    noticedBy: 'unit/orders/look-up',
    sow: () =>
      swap(lookUpById, (original) => async (context, operation, found, orderId, settings) => {
        const once = { ...settings, maxRetries: 0 }
        for (let time = 1; time < 100; time++)
          await readOrder(context, operation, orderId, 'charged', once, found.record).catch(() => {})
        return await original(context, operation, found, orderId, settings)
      }),
  },
  {
    name: 'recovery goes through the list forty times over',
    noticedBy: 'client/recover/recover',
    sow: () =>
      swap(
        scanOrders,
        (original) =>
          async function* (context, options) {
            for (let sweep = 0; sweep < 20; sweep++) yield* original(context, options)
          },
      ),
  },
  {
    name: 'recovery sends an order without the headers of its call',
    noticedBy: 'client/recover/recover',
    sow: () =>
      swap(sendOrder, (original) => (context, claimed, options) => {
        const settings = options.once ? { ...options.settings, headers: {} } : options.settings
        return original(context, claimed, { ...options, settings })
      }),
  },
  {
    name: 'a join in flight takes the order of a call beside it, whatever that one asks for and without a name',
    noticedBy: 'client/create/idempotency',
    sow: () =>
      swap(
        whyNotJoin,
        (original) => (intent, twin) => (original(intent, twin) === 'key' ? 'key' : undefined),
      ),
  },
  {
    name: 'whoever asks for another quantity gets the order that there is',
    noticedBy: 'client/create/idempotency',
    sow: () => {
      swap(
        whyNotJoin,
        (original) => (intent, twin) => original({ ...intent, fingerprint: twin.fingerprint }, twin),
      )
      dropRule(RULES, otherPayload)
    },
  },
  {
    name: 'every order in doubt counts as one whose caller has given up',
    noticedBy: 'client/recover/recover',
    sow: () =>
      swap(
        apply,
        (original) => (record, event) =>
          original(record, event.type === 'left_open' ? { ...event, hold: 'aborted' } : event),
      ),
  },
  {
    name: 'an order is taken to be sent later and not written down',
    noticedBy: 'client/create/enqueue',
    sow: () =>
      swapMethod(
        Journal,
        'write',
        (original) =>
          async function (this: Journal, found, content, deadline, store) {
            const written = await original.call(this, found, content, deadline, store)
            const enqueued = found.row === undefined && isUnsent(content)
            if (enqueued && written.result === 'written') await this.forget(written.found, deadline)
            return written
          },
      ),
  },
  {
    name: 'a decision that an order exists is not stored',
    noticedBy: 'client/recover/resolve',
    sow: () =>
      swap(markCreated, (original) => async (context, found, listed, deadline) => {
        // Only the decision about a record uses the deadline of a call.
        if (deadline === undefined) return await original(context, found, listed, deadline)
        return createdOutcome(publicRecord({ ...found.record, state: 'created' }), listed.order)
      }),
  },
  {
    name: 'a decision that the store does not take is told as not charged',
    noticedBy: 'client/recover/resolve',
    sow: () =>
      swap(resolve, (original) => async (...args) => {
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
  {
    name: 'an order that is to be sent later is left to a call that may only be asleep',
    noticedBy: 'client/create/enqueue',
    sow: () => Object.assign(RULES.open, { enqueue: [{ step: 'tell' }] }),
  },
  {
    name: 'a key is sent minutes after the safe-retry window',
    noticedBy: 'client/create/sequences',
    sow: () => {
      swap(isRemembered, (original) => (sentAt, timing) => {
        const safeRetryWindow = timing.safeRetryWindow + 120_000
        return original(sentAt, { ...timing, totalTimeout: 0, safeRetryWindow })
      })
      swap(isTooLate, (original) => (record, until, now) => original(record, until + 180_000, now))
    },
  },
  {
    name: 'recovery waits for an hour at each record',
    noticedBy: 'client/recover/recover',
    sow: () =>
      swap(recoverOne, (original) => async (context, id, options) => {
        const { runtime } = context.connection
        await new Promise<void>((done) => void runtime.setTimer(done, 3_600_000))
        return await original(context, id, options)
      }),
  },
  {
    name: 'any success with an id counts as an order',
    noticedBy: 'unit/orders/classify',
    sow: () =>
      swap(classify, (original) => (result, differs) => {
        const outcome = original(result, differs)
        if (outcome.kind !== 'success_unreadable' || result.kind !== 'answer') return outcome
        const created = original({ ...result, status: 201 }, differs)
        return created.kind === 'created_flawed' ? { ...created, status: result.status } : outcome
      }),
  },
  {
    name: 'a refused call is given what somebody else ordered under its name',
    noticedBy: 'unit/orders/create',
    sow: () => swap(mayReturn, (original) => (newest) => original(newest, newest.fingerprint)),
  },
  {
    name: 'one clock decides what is old enough to be removed',
    noticedBy: 'client/recover/pruning',
    sow: () =>
      swap(witnessOf, () => <Row>(rows: readonly Row[], latest: number) => ({
        ...(rows[0] as Row),
        updatedAt: latest,
      })),
  },
  {
    name: 'reads may come from an HTTP cache',
    noticedBy: 'unit/http/transport',
    sow: () => eachFetch(({ cache: _cache, ...init }) => init),
  },
  {
    name: 'an order of another integration with the same reference counts as found',
    noticedBy: 'client/recover/contradictions',
    sow: () =>
      swap(
        scanOrders,
        (original) =>
          async function* (context, options) {
            for await (const { serviceId: _serviceId, quantity: _quantity, ...listed } of original(
              context,
              options,
            ))
              yield listed
          },
      ),
  },
  {
    name: 'a person resolves an order with the order of another integration',
    noticedBy: 'client/recover/contradictions',
    sow: () =>
      swap(
        contradiction,
        (original) => (derive, asked, echo, found) =>
          found === 'list' ? undefined : original(derive, asked, echo, found),
      ),
  },
  {
    name: 'a response that names another order counts as this one',
    noticedBy: 'unit/orders/classify',
    sow: () => swap(classify, (original) => (result) => original(result, () => undefined)),
  },
  {
    name: 'a call begins with the latest key, which a lost store does not compute',
    noticedBy: 'client/create/generations',
    sow: () =>
      swap(startOf, (original) => (record, timing) => {
        const start = original(record, timing)
        const isOpen = record.firstSentAt === undefined || isRemembered(record.firstSentAt, timing)
        return start === 'first' && isOpen ? 'same' : start
      }),
  },
  {
    name: 'a conflict moves to another key although stores are not shared',
    noticedBy: 'client/create/conflicts',
    sow: () => swap(isShared, () => () => false),
  },
  {
    name: 'reopening a refused order restarts the window of its key',
    noticedBy: 'client/create/sequences',
    sow: () =>
      swap(claimedContent, (original) => (context, content, remaining, credential) => {
        const claimed = original(context, content, remaining, credential)
        return { ...claimed, firstSentAt: context.connection.runtime.now() }
      }),
  },
  {
    name: 'an order in conflict is settled as if it were refused',
    noticedBy: 'client/create/conflicts',
    sow: () => swap(isPending, (original) => (record) => record.state !== 'rejected' && original(record)),
  },
  {
    name: 'an old order that looks never sent is sent without a look at the list',
    noticedBy: 'client/recover/restored',
    sow: () => swap(mayBeRestored, () => () => false),
  },
  {
    name: 'a look-up that could not read the whole list says nothing of it',
    noticedBy: 'client/recover/restored',
    sow: () =>
      swap(
        scanOrders,
        (original) =>
          (context, { onCut: _onCut, ...options }) =>
            original(context, options),
      ),
  },
  {
    name: 'a key that was first sent by a clock ahead comes back into its window',
    noticedBy: 'client/recover/recover',
    sow: () => swap(isFromFuture, () => () => false),
  },
  {
    name: 'a call waits for a dead process to the end of its claim',
    noticedBy: 'client/create/claims',
    sow: () => swap(pauseBefore, (original) => (look, waited) => original(look, waited / 10)),
  },
  {
    name: 'a service that has changed makes an order that was sent look like none',
    noticedBy: 'client/create/changed-arguments',
    sow: () => {
      swap(readIntent, (original) => (derive, request, options) => {
        const intent = original(derive, request, options)
        if (intent.misfit === undefined) return intent
        throw new InvalidRequestError('It does not fit.', { issues: [intent.misfit] })
      })
      swap(slotOfInvalid, () => () => undefined)
    },
  },
  {
    name: 'a key that the caller has left is sent again',
    noticedBy: 'client/create/generations',
    sow: () => swap(leftKeys, () => () => undefined),
  },
  {
    name: 'a proof that the store did not take counts as stored',
    noticedBy: 'client/recover/restored',
    outOfSimulation:
      'no promise is broken: the order exists as it says, and the next recovery finds it again',
    sow: () =>
      swap(markCreated, (original) => async (context, found, listed, deadline) => {
        const { record } = await original(context, found, listed, deadline)
        return createdOutcome({ ...record, state: 'created' }, listed.order)
      }),
  },
  {
    name: 'an old order that looks never sent is looked up within its source system alone',
    noticedBy: 'client/recover/restored',
    sow: () => swap(placesToLook, () => (sourceSystem) => new Set([sourceSystem])),
  },
  {
    name: 'a claim from the future never ends',
    noticedBy: 'unit/orders/rules',
    outOfSimulation:
      'no promise is broken: a call waits for it for fifteen seconds, and a recovery until it may take over',
    sow: () =>
      swap(
        isBusy,
        () =>
          ({ busyUntil = 0 }, now) =>
            now < busyUntil,
      ),
  },
  {
    name: 'a claim by a clock that is a little ahead is taken over immediately',
    noticedBy: 'unit/orders/rules',
    outOfSimulation:
      'no promise is broken: the key and the body are the same, so the service answers both calls alike',
    sow: () => swap(isBusy, (original) => (record, now) => original(record, now) && now >= record.updatedAt),
  },
  {
    name: 'a clock that is ahead is its own witness for what is old enough to be removed',
    noticedBy: 'client/recover/pruning',
    sow: () => swap(witnessOf, () => (rows) => rows.at(-1)),
  },
]

/** Bugs that break no promise, which a harness must not report as broken promises. */
const BROKEN_BUGS: readonly Pick<SeededBug, 'name' | 'sow'>[] = [
  {
    name: 'a bug that only throws',
    sow: () =>
      swap(isTooLate, () => () => {
        throw new TypeError('the bug does not work')
      }),
  },
  {
    name: 'a bug that cannot be sown',
    sow: () => {
      throw new TypeError('the bug cannot be sown')
    },
  },
  {
    name: 'a promise that nobody handles',
    sow: () =>
      swapMethod(
        Journal,
        'prune',
        (original) =>
          async function (this: Journal, kept) {
            void Promise.reject(new Error('planted'))
            await original.call(this, kept)
          },
      ),
  },
]

const sown = new Set<string>()

/**
 * Inserts a bug into the loaded modules once, because test files may share them. An unknown name is
 * an error.
 */
export function sow(name: string): void {
  if (sown.has(name)) return
  sown.add(name)
  const bug = [...SEEDED_BUGS, ...BROKEN_BUGS].find((candidate) => candidate.name === name)
  if (bug === undefined) throw new Error(`there is no seeded bug "${name}"`)
  bug.sow()
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
  swap(begunContent, (original) => (context, intent, record, as, further) => {
    const content = original(context, intent, record, as, further)
    const resumes = record !== undefined && as === 'stored'
    return resumes && !isUnsent(record) ? { ...content, ...change(record, intent) } : content
  })
}

/** Changes every request below ky. */
function eachFetch(change: (init: RequestInit) => RequestInit): void {
  swap(
    kyTransport,
    (original) => (given) => original((url, init) => (given ?? fetch)(url, change({ ...init }))),
  )
}

/** Treats such an attempt as one that was never made. */
function countsAsUnsent(kind: OutcomeKind): void {
  const { clean, ambiguous, leavesDoubt } = OUTCOMES.unreachable
  put(OUTCOMES, kind, { clean, ambiguous, leavesDoubt })
}

/** Makes recovery report this for every open order, and do nothing. */
function insteadOfRecovery(say: (record: JournalRecord) => RecoveryOutcome): void {
  swap(recoverOne, (original) => async (context, id, options) => {
    const record = await newestRecord(context, { id })
    const busy = record !== undefined && isBusy(record, context.connection.runtime.now())
    if (record === undefined || busy || !isPending(record)) return await original(context, id, options)
    return say(record)
  })
}

/** Makes recovery report another outcome. */
function afterRecovery(say: (outcome: RecoveryOutcome) => RecoveryOutcome): void {
  swap(recoverOne, (original) => async (context, id, options) => {
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
