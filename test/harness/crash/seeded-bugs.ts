/**
 * Realistic faults, each of which turns one safeguard off. The tests of this project must notice every one of them; a
 * harness that misses one is the bug. An edit must fit exactly one place, so that a list that has fallen behind the
 * source fails instead of testing nothing.
 */

/** One change of one file below `src`. */
export interface Edit {
  readonly file: string
  readonly search: string
  readonly replace: string
}

/** A safeguard, and how it is turned off. */
export interface SeededBug {
  readonly name: string
  readonly edits: readonly Edit[]
  /** Why the simulation cannot notice it, where it cannot. The tests of this project notice every one all the same. */
  readonly outOfSimulation?: string
}

const edit = (file: string, search: string, replace: string): Edit => ({ file, search, replace })

export const SEEDED_BUGS: readonly SeededBug[] = [
  {
    name: 'the request is sent before the record is stored',
    edits: [
      edit(
        'idempotency/journal.ts',
        'applied = await this.#bounded(pending, deadline)',
        'pending.catch(() => {})\n      applied = true',
      ),
    ],
  },
  {
    name: 'every attempt has a key of its own',
    edits: [
      edit(
        'http/call.ts',
        "headers['idempotency-key'] = call.idempotencyKey",
        "headers['idempotency-key'] = connection.runtime.randomId()",
      ),
    ],
  },
  {
    name: 'the caller hears of a refusal before it is stored',
    edits: [
      edit(
        'resources/send-order.ts',
        'return unordered(await context.journal.settle(mine, content, options.deadline))',
        "void context.journal.settle(mine, content, options.deadline)\n    return unordered({ result: 'written', found: mine })",
      ),
    ],
  },
  {
    name: 'a refusal that could not be stored is told as a refusal',
    edits: [
      edit(
        'resources/send-order.ts',
        "charged: result !== 'written' ? 'unknown' : moves ? 'no' : meaning.charged,",
        "charged: moves ? 'no' : meaning.charged,",
      ),
    ],
  },
  {
    name: 'a record that another call opened is taken for clean',
    edits: [edit('resources/place-order.ts', 'return { ...rest, ambiguous: true }', 'return rest')],
  },
  {
    name: 'an attempt in doubt leaves no doubt',
    edits: [
      edit(
        'idempotency/outcome.ts',
        'ambiguous: history.ambiguous || row.leavesDoubt',
        'ambiguous: history.ambiguous',
      ),
    ],
  },
  {
    name: 'a write goes over the version of somebody else',
    edits: [
      edit(
        'idempotency/journal.ts',
        'this.#call(() => store.update(row, base.version))',
        'this.#call(async () => {\n            const there = (await this.store.get(this.scope, row.id))?.version ?? 0\n            return await this.store.update({ ...row, version: there + 1 }, there)\n          })',
      ),
    ],
  },
  {
    name: 'a late proof of a charge gives way to what was stored meanwhile',
    edits: [edit('idempotency/journal.ts', "if (result !== 'lost') return false", 'return false')],
  },
  {
    name: 'a write whose answer was lost is not read back',
    edits: [
      edit(
        'idempotency/journal.ts',
        'if (current?.version === version && current.data === row.data) return written',
        '',
      ),
    ],
    outOfSimulation: "no promise is broken: the call ends as 'unknown' where it could have gone on",
  },
  {
    name: 'a process that was stopped after its claim sends when it wakes',
    edits: [edit('resources/send-order.ts', 'return !claimHolds || now > sendUntil', 'return false')],
  },
  {
    name: 'a key is sent again after its safe-retry window',
    edits: [
      edit('idempotency/decision.ts', "if (!fits) return { action: 'unresolved', because: 'window' }", ''),
    ],
    outOfSimulation: 'the look before every send holds the key back all the same',
  },
  {
    name: 'a first refusal moves the order to a new key',
    edits: [
      edit(
        'resources/send-order.ts',
        "if (earlier === undefined || record.keyOrigin === 'caller') return false",
        "if (record.keyOrigin === 'caller') return false",
      ),
      edit(
        'resources/send-order.ts',
        "    earlier.kind === 'refused' &&\n    heard.status === earlier.status &&\n    heard.code === earlier.code",
        '    true',
      ),
    ],
  },
  {
    name: 'a key that the caller gave is changed',
    edits: [
      edit(
        'resources/send-order.ts',
        "if (earlier === undefined || record.keyOrigin === 'caller') return false",
        'if (earlier === undefined) return false',
      ),
    ],
  },
  {
    name: 'a key of an unseen payload counts as proof that nothing was bought',
    edits: [
      edit(
        'resources/send-order.ts',
        "if (record.foreign && meaning.charged === 'no')",
        'if (Date.now() < 0)',
      ),
    ],
    outOfSimulation: 'all its workers share one store, so that no payload is unseen',
  },
  {
    name: 'an order in doubt is repeated under another API key',
    edits: [
      edit(
        'resources/order-context.ts',
        "context.idempotencyScope === 'customer' ||",
        'context.idempotencyScope !== undefined ||',
      ),
    ],
  },
  {
    name: 'a record that a live call holds is claimed',
    edits: [
      edit('idempotency/decision.ts', "if (busy) return { action: anonymous ? 'duplicate' : 'wait' }", ''),
    ],
    outOfSimulation:
      'no promise is broken: the key and the body are the same, so the service answers both calls alike',
  },
  {
    name: 'an anonymous order is forgotten when its slot is used again',
    edits: [edit('resources/place-order.ts', 'await this.#archive(record)', 'break')],
  },
  {
    name: 'a 201 that cannot be read counts as any other answer that cannot be read',
    edits: [
      edit(
        'idempotency/classify.ts',
        "status === 201 ? 'created_unreadable' : 'success_unreadable'",
        "'success_unreadable'",
      ),
    ],
  },
  {
    name: 'an error page of a gateway counts as a refusal of the service',
    edits: [
      edit(
        'idempotency/classify.ts',
        '(problem.recognised ? WITH_ERROR_BODY[status] : undefined)',
        'WITH_ERROR_BODY[status]',
      ),
    ],
  },
  {
    name: 'redirects are followed, with the key and the body',
    edits: [edit('http/ky-transport.ts', "redirect: 'manual' as const,", "redirect: 'follow' as const,")],
  },
  {
    name: 'a refusal after doubt does not keep recovery from repeating the request',
    edits: [
      edit('idempotency/outcome.ts', "...(meaning.state === 'open' ? defined({ hold: row.hold }) : {}),", ''),
    ],
    outOfSimulation: 'no promise is broken: the key is the same, and recovery reports what it hears',
  },
  {
    name: 'an order that was sent counts as one that never was',
    edits: [
      edit(
        'idempotency/record.ts',
        "return record.state === 'open' && record.apiKeyTag === ''",
        "return record.state === 'open'",
      ),
    ],
  },
  {
    name: 'a queued order is given up when the service is busy',
    edits: [edit('resources/send-order.ts', 'options.queued === true && !refused', 'Date.now() < 0')],
  },
  {
    name: 'a tampered record is sent',
    edits: [
      edit('resources/place-order.ts', 'if (sendsStored && !isGenuine(', 'if (!sendsStored && !isGenuine('),
    ],
    outOfSimulation: 'nobody tampers with records',
  },
  {
    name: 'a refusal settles what an earlier attempt left in doubt',
    edits: [
      edit(
        'idempotency/outcome.ts',
        "refused: row(REFUSED, 'stop', 'refused'),",
        "refused: { ...row(REFUSED, 'stop', 'refused'), ambiguous: REFUSED },",
      ),
    ],
  },
  {
    name: 'an attempt without an answer in time counts as not sent',
    edits: [
      edit(
        'idempotency/outcome.ts',
        "timed_out: row(UNKNOWN, 'backoff'),",
        "timed_out: row(NOT_PROCESSED, 'backoff'),",
      ),
    ],
  },
  {
    name: 'a connection that closes before an answer counts as not sent',
    edits: [
      edit(
        'idempotency/outcome.ts',
        "connection_closed: row(UNKNOWN, 'now'),",
        "connection_closed: row(NOT_PROCESSED, 'now'),",
      ),
    ],
  },
  {
    name: 'an error of the server counts as a refusal',
    edits: [
      edit(
        'idempotency/outcome.ts',
        "server_error: row(UNKNOWN, 'backoff'),",
        "server_error: row(NOT_PROCESSED, 'backoff'),",
      ),
    ],
  },
  {
    name: 'an order in progress counts as refused',
    edits: [
      edit(
        'idempotency/outcome.ts',
        "in_progress: row(UNKNOWN, 'poll'),",
        "in_progress: { ...row(REFUSED, 'stop'), ambiguous: REFUSED },",
      ),
    ],
  },
  {
    name: 'a key that belongs to another payload is told as not charged',
    edits: [
      edit(
        'idempotency/outcome.ts',
        "const CONFLICT: Meaning = { charged: 'unknown', ",
        "const CONFLICT: Meaning = { charged: 'no', ",
      ),
    ],
  },
  {
    name: 'recovery takes the record of a dead call for clean',
    edits: [edit('resources/recover.ts', '...(queued ? {} : { ambiguous: true }),', '')],
  },
  {
    name: 'no key is ever too old to be sent',
    edits: [
      edit(
        'idempotency/decision.ts',
        'return since >= -CLOCK_SKEW && since + totalTimeout <= safeRetryWindow',
        'return since + totalTimeout + safeRetryWindow < Number.POSITIVE_INFINITY',
      ),
      edit('resources/send-order.ts', '!claimHolds || now > sendUntil', '!claimHolds'),
    ],
  },
  {
    name: 'recovery repeats a request under another API key',
    edits: [
      edit(
        'resources/recover.ts',
        "if (!sameApiKey(context, record, credential)) return 'api_key_changed'",
        '',
      ),
    ],
  },
  {
    name: 'a retry goes on under another API key',
    edits: [
      edit(
        'resources/send-order.ts',
        'if (sentBefore && !sameApiKey(context, mine.record, apiKey)) return false',
        'if (sentBefore && apiKey === null) return false',
      ),
    ],
  },
  {
    name: 'a row that is there already counts as inserted',
    edits: [edit('idempotency/journal.ts', 'then(({ inserted }) => inserted)', 'then(() => true)')],
  },
  {
    name: 'a write that the store does not answer counts as written',
    edits: [
      edit(
        'idempotency/journal.ts',
        'if (applied === true) return written',
        'if (applied !== false) return written',
      ),
    ],
  },
  {
    name: 'an error of the store is swallowed',
    edits: [
      edit('idempotency/journal.ts', "failure = cause ?? new Error('the store failed')", 'return written'),
    ],
  },
  {
    name: "a resumed order is sent with the new call's body",
    edits: [
      edit(
        'resources/place-order.ts',
        'return { ...rest, ambiguous: true }',
        'return { ...rest, body: this.#intent.body, ambiguous: true }',
      ),
    ],
  },
  {
    name: 'the API key itself is kept beside the order',
    edits: [
      edit(
        'resources/order-context.ts',
        'if (credential !== null) return apiKeyTag(runtime.deriveId, key, credential)',
        'if (credential !== null) return credential',
      ),
    ],
  },
  {
    name: "a call stays among the listeners of its caller's signal",
    edits: [edit('http/deadline.ts', "this.signal?.removeEventListener('abort', onAbort)", '')],
  },
  {
    name: 'a call retries once more than it may',
    edits: [edit('http/retry.ts', 'if (counts.retries >= maxRetries)', 'if (counts.retries > maxRetries)')],
  },
  {
    name: 'a list goes on by the limit that was asked for',
    edits: [
      edit(
        'pages.ts',
        'const end = offset + received',
        'const end = offset + (this.#start.limit ?? received)',
      ),
    ],
  },
  {
    name: 'a recovery that looks for an order goes on by the limit that it asked for',
    edits: [
      edit('resources/scan-orders.ts', 'offset += received - Math.min', 'offset += PAGE_SIZE - Math.min'),
    ],
  },
  {
    name: 'a call that ends early believes the record that it has only read',
    edits: [
      edit('resources/unclaimed.ts', '(await this.#close(found, content, grace))', '(content !== undefined)'),
    ],
  },
  {
    name: 'a call takes the order that it asked for again for the one before it',
    edits: [
      edit(
        'resources/place-order.ts',
        'this.#asked && (await this.#proven(this.#asked))',
        'this.#asked && undefined',
      ),
    ],
  },
  {
    name: 'a call whose codec fails believes the record that it has only read',
    edits: [
      edit(
        'idempotency/journal.ts',
        "return (await this.#apply(base, row, deadline, this.store)).result === 'written'",
        'return row !== undefined',
      ),
    ],
  },
  {
    name: 'the proof of an order is written over the next one in its slot',
    edits: [
      edit(
        'resources/archive.ts',
        'return isAnonymous(newest.slot) && newest.key !== mine.key',
        'return false',
      ),
    ],
  },
  {
    name: 'a machine that slept while it connected sends when it wakes',
    edits: [edit('undici/late.ts', 'if (this.#isLate())', 'if (Date.now() < 0)')],
    outOfSimulation: 'it has no connections',
  },
  {
    name: 'a machine that slept while it wrote down another API key sends when it wakes',
    edits: [edit('resources/send-order.ts', 'return !isLate()', 'return true')],
  },
  {
    name: 'a person gives up what another call has worked on since',
    edits: [
      edit(
        'resources/remembered.ts',
        'if (record.updatedAt > decidedAt && record.updatedAt <= runtime.now() + CLOCK_SKEW)',
        'if (record.updatedAt < 0)',
      ),
    ],
  },
  {
    name: 'recovery does nothing and leaves every order to a person',
    edits: [
      edit(
        'resources/recover.ts',
        'const { record } = found\n\n  const credential',
        "const { record } = found\n  if (found.id === id) return { outcome: 'needs_attention', record: publicRecord(record), reason: 'past_window' }\n  const credential",
      ),
    ],
  },
  {
    name: 'recovery never repeats a request',
    edits: [
      edit(
        'resources/recover.ts',
        'const reason = whyNotReplay(context, found, options, credential)',
        "const reason = whyNotReplay(context, found, options, credential) ?? 'past_window'",
      ),
    ],
  },
  {
    name: 'recovery does nothing and says that every order exists',
    edits: [
      edit(
        'resources/recover.ts',
        'const { record } = found\n\n  const credential',
        "const { record } = found\n  if (found.id === id) return settledOutcome({ ...record, state: 'created' })\n  const credential",
      ),
    ],
  },
  {
    name: 'recovery says of an order that is still open that it was rejected',
    edits: [
      edit(
        'resources/recover.ts',
        "return { outcome: 'still_open', record: view, ...why }",
        "return { outcome: 'rejected', record: view, ...why }",
      ),
    ],
  },
  {
    name: 'recovery says of an order that it has just proven that it was rejected',
    edits: [
      edit(
        'resources/recover.ts',
        'if (order !== undefined) return createdOutcome(settled.record, order)',
        "if (order !== undefined) return { outcome: 'rejected', record: settled.record }",
      ),
    ],
  },
  {
    name: 'recovery does not find in the list what it shows',
    edits: [
      edit(
        'resources/look-up.ts',
        'const lookup = wanted.get(listed.externalOrderId)',
        'const lookup = wanted.get(listed.id)',
      ),
    ],
  },
  {
    name: 'recovery reads an order a hundred times over',
    edits: [
      edit(
        'resources/look-up.ts',
        "const { value: order } = await readOrder(context, operation, orderId, 'charged', once, found.record)",
        "for (let time = 1; time < 100; time++)\n      await readOrder(context, operation, orderId, 'charged', once, found.record)\n    const { value: order } = await readOrder(context, operation, orderId, 'charged', once, found.record)",
      ),
    ],
  },
  {
    name: 'recovery goes through the list forty times over',
    edits: [edit('resources/look-up.ts', 'const SWEEPS = 2', 'const SWEEPS = 40')],
  },
  {
    name: 'recovery sends an order without the headers of its call',
    edits: [
      edit(
        'resources/recover.ts',
        'settings: { ...settings, maxRetries: earlier === undefined ? 0 : 1 },',
        'settings: { ...settings, headers: {}, maxRetries: earlier === undefined ? 0 : 1 },',
      ),
    ],
  },
  {
    name: 'a join in flight takes the order of a call beside it, whatever that one asks for and without a name',
    edits: [
      edit(
        'resources/place-order.ts',
        'if (twin.fingerprint !== fingerprint)\n      throw this.#errors.conflict(differingRequestFields(twin.request, request), undefined)\n    if (isAnonymous(slot)) throw this.#errors.duplicate(undefined)',
        'void [slot, fingerprint, request, differingRequestFields]',
      ),
    ],
  },
  {
    name: 'whoever asks for another quantity gets the order that there is',
    edits: [
      edit(
        'resources/place-order.ts',
        'if (twin.fingerprint !== fingerprint)\n      throw',
        'if (Date.now() < 0)\n      throw',
      ),
      edit(
        'idempotency/decision.ts',
        "if (record.fingerprint !== wanted.fingerprint) return { action: 'conflict', over: 'payload' }",
        '',
      ),
    ],
  },
  {
    name: 'every order in doubt counts as one whose caller has given up',
    edits: [
      edit(
        'resources/send-order.ts',
        "const hold = ending.end !== 'aborted' ? verdict?.hold : options.once === true ? undefined : 'aborted'",
        "const hold = 'aborted' as const",
      ),
    ],
  },
  {
    name: 'an order is taken to be sent later and not written down',
    edits: [
      edit(
        'resources/enqueue.ts',
        'const written = await journal.write(found, content, deadline, within)',
        'if (record === undefined)\n      return publicRecord({ ...content, version: 1, createdAt: runtime.now(), updatedAt: runtime.now() })\n    const written = await journal.write(found, content, deadline, within)',
      ),
    ],
  },
  {
    name: 'a decision that an order exists is not stored',
    edits: [
      edit(
        'resources/remembered.ts',
        'const outcome = await markCreated(context, found, { id: order.id, order }, deadline)',
        "const outcome = { record: publicRecord({ ...record, state: 'created' }) }\n  void markCreated",
      ),
    ],
  },
  {
    name: 'a decision that the store does not take is told as not charged',
    edits: [
      edit(
        'resources/remembered.ts',
        '{ charged: chargedOf(record), ...facts(record) },\n  )',
        "{ charged: 'no', ...facts(record) },\n  )",
      ),
    ],
  },
  {
    name: 'an order that is to be sent later is left to a call that may only be asleep',
    edits: [
      edit(
        'resources/enqueue.ts',
        "if (step.action === 'continue' && !isUnsent(record)) taken = takenOver(runtime, record)\n      else if (step.action !== 'reopen')",
        "if (step.action === 'continue' && !isUnsent(record)) void takenOver\n      if (step.action !== 'reopen')",
      ),
    ],
  },
  {
    name: 'a key is sent minutes after the safe-retry window',
    edits: [
      edit(
        'idempotency/decision.ts',
        'since + totalTimeout <= safeRetryWindow',
        'since + 0 * totalTimeout <= safeRetryWindow + 120_000',
      ),
      edit(
        'resources/send-order.ts',
        '(record.firstSentAt ?? runtime.now()) + context.safeRetryWindow',
        '(record.firstSentAt ?? runtime.now()) + context.safeRetryWindow + 180_000',
      ),
    ],
  },
  {
    name: 'recovery waits for an hour at each record',
    edits: [
      edit(
        'resources/recover.ts',
        '  const { journal, live, connection } = context\n  const { settings } = options\n',
        '  const { journal, live, connection } = context\n  const { settings } = options\n  await new Promise<void>((done) => void connection.runtime.setTimer(done, 3_600_000))\n',
      ),
    ],
  },
  {
    name: 'any success with an id counts as an order',
    edits: [
      edit(
        'idempotency/classify.ts',
        'if (status === 201 && orderId !== undefined)',
        'if (orderId !== undefined)',
      ),
    ],
  },
  {
    name: 'a refused call is given what somebody else ordered under its name',
    edits: [
      edit(
        'resources/place-order.ts',
        "if (same && newest.state === 'created' && newest.readable)",
        "void same\n    if (newest?.state === 'created' && newest.readable)",
      ),
    ],
  },
  {
    name: 'one clock decides what is old enough to be removed',
    edits: [
      edit(
        'idempotency/journal.ts',
        '    const settled = kept / 4\n',
        '    if (kept > 0) return now - kept\n    const settled = kept / 4\n',
      ),
    ],
  },
  {
    name: 'reads may come from an HTTP cache',
    edits: [
      edit(
        'http/ky-transport.ts',
        "            ...((method === 'GET' || method === 'HEAD') && uncached()),\n",
        '',
      ),
    ],
  },
  {
    name: 'an order of another integration with the same reference counts as found',
    edits: [
      edit(
        'resources/look-up.ts',
        "if (lookup === undefined || contradiction(deriveId, lookup.found.record, listed, 'list')) continue",
        'if (lookup === undefined) continue',
      ),
    ],
  },
  {
    name: 'a person resolves an order with the order of another integration',
    edits: [
      edit(
        'resources/remembered.ts',
        "const field = contradiction(deriveId, record, echoOf(order), 'list')",
        "const field = contradiction(deriveId, record, {}, 'list')",
      ),
    ],
  },
  {
    name: 'a response that names another order counts as this one',
    edits: [edit('idempotency/classify.ts', '  if (field !== undefined)\n', "  if (field === 'nothing')\n")],
  },
  {
    name: 'a call begins with the latest key, which a lost store does not compute',
    edits: [
      edit(
        'idempotency/decision.ts',
        "  if (isRemembered(first?.sentAt ?? createdAt, timing)) return 'first'",
        "  if (isOpen) return 'same'\n  if (isRemembered(first?.sentAt ?? createdAt, timing)) return 'first'",
      ),
    ],
  },
  {
    name: 'a conflict moves to another key although stores are not shared',
    edits: [
      edit(
        'resources/send-order.ts',
        "return keyOrigin === 'derived' && journal.store.durability === 'memory'",
        "return keyOrigin === 'derived' && journal.store === undefined",
      ),
    ],
  },
  {
    name: 'reopening a refused order restarts the window of its key',
    edits: [
      edit('resources/place-order.ts', 'firstSentAt: content.firstSentAt ?? now,', 'firstSentAt: now,'),
    ],
  },
  {
    name: 'an order in conflict is settled as if it were refused',
    edits: [edit('idempotency/record.ts', "return record.rejection?.kind === 'conflict'", 'return false')],
  },
  {
    name: 'an old order that looks never sent is sent without a look at the list',
    edits: [
      edit(
        'idempotency/decision.ts',
        'return isUnsent(record) && !isRemembered(record.updatedAt, timing)',
        'return isUnsent(record) && !isRemembered(record.updatedAt, timing) && timing.now < 0',
      ),
    ],
  },
  {
    name: 'a look-up that could not read the whole list says nothing of it',
    edits: [edit('resources/look-up.ts', 'if (cut) cuts.add(wanted.values())', '')],
  },
  {
    name: 'a key that was first sent by a clock ahead comes back into its window',
    edits: [
      edit(
        'idempotency/decision.ts',
        '  if (latest === 0 || (latest <= known && updatedAt <= now + CLOCK_SKEW)) return record',
        '  if (latest >= 0 || known < 0) return record',
      ),
    ],
  },
  {
    name: 'a call waits for a dead process to the end of its claim',
    edits: [edit('resources/place-order.ts', 'const LONGEST_WAIT = 15_000', 'const LONGEST_WAIT = 150_000')],
  },
  {
    name: 'a service that has changed makes an order that was sent look like none',
    edits: [
      edit(
        'idempotency/intent.ts',
        '  const misfit = options.service === undefined ? undefined : misfitOf(data, options.service)\n',
        "  const misfit = options.service === undefined ? undefined : misfitOf(data, options.service)\n  if (misfit !== undefined) throw new InvalidRequestError('It does not fit.', { issues: [misfit] })\n",
      ),
      edit(
        'idempotency/intent.ts',
        "  if (typeof externalOrderId === 'string') return ",
        '  if (externalOrderId === null) return ',
      ),
    ],
  },
]
