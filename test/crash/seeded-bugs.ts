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
        "charged: result === 'written' ? meaning.charged : 'unknown',",
        'charged: meaning.charged,',
      ),
    ],
  },
  {
    name: 'a record that another call opened is taken for clean',
    edits: [
      edit(
        'resources/place-order.ts',
        'return { ...rest, ambiguous: true, busyUntil',
        'return { ...rest, busyUntil',
      ),
    ],
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
        'this.#call(() => store.update(row, version - 1))',
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
        'if (read && current?.version === version && current.data === row.data) return written',
        '',
      ),
    ],
  },
  {
    name: 'a process that was stopped after its claim sends when it wakes',
    edits: [edit('resources/send-order.ts', 'if (!claimHolds || now > sendUntil) return false', '')],
  },
  {
    name: 'a key is sent again after its safe-retry window',
    edits: [
      edit('idempotency/decision.ts', "if (!fits) return { action: 'unresolved', because: 'window' }", ''),
    ],
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
      edit(
        'idempotency/decision.ts',
        "if (isBusy(record, circumstances.now)) return { action: anonymous ? 'duplicate' : 'wait' }",
        '',
      ),
    ],
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
    edits: [edit('http/transport.ts', "redirect: 'manual',", "redirect: 'follow',")],
  },
  {
    name: 'a refusal after doubt does not keep recovery from repeating the request',
    edits: [
      edit(
        'idempotency/outcome.ts',
        "...(meaning.state === 'open' && row.hold !== undefined ? { hold: row.hold } : {}),",
        '',
      ),
    ],
  },
  {
    name: 'an order that was sent counts as one that never was',
    edits: [
      edit(
        'idempotency/record.ts',
        "return record.state === 'open' && record.firstSentAt === undefined && record.apiKeyTag === ''",
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
  },
]
