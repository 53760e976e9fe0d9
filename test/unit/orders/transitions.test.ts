import { describe, expect, it } from 'vitest'
import type { RecordContent } from '../../../src/orders/record.ts'
import { apply, isKnown, type Proof, type RecordEvent } from '../../../src/orders/transitions.ts'
import { LEFT_OPEN } from '../../support/order-context.ts'

const order = { id: 'ord_1', status: 'pending', amount: 5 }
const key = { key: 'key-new', keyOrigin: 'derived', generation: 7, fields: { quantity: 'new' } } as const
const { body: _body, ...closed } = { ...LEFT_OPEN, ambiguous: false, firstSentAt: 10, attempts: 2 }
const refused = { kind: 'refused', status: 402 } as const

const LATER = { generation: 2, first: { sentAt: 3, refused: true } } as const

/** A stored record in every phase. */
const PHASES = {
  busy: { ...LEFT_OPEN, ambiguous: false, attempts: 0, firstSentAt: 10, busyUntil: 99 },
  overtaken: { ...LEFT_OPEN, firstSentAt: 10, busyUntil: 99, othersUntil: 120 },
  open: { ...LEFT_OPEN, firstSentAt: 10, hold: 'aborted' },
  created: { ...closed, state: 'created', readable: true, order },
  unread: { ...LEFT_OPEN, state: 'created', ambiguous: false, firstSentAt: 10, busyUntil: 99 },
  rejected: { ...closed, state: 'rejected', rejection: refused, refused: true },
  later: { ...closed, ...LATER, state: 'rejected', rejection: refused },
} as const satisfies Readonly<Record<string, RecordContent>>

/** The changed fields as JSON, and the removed fields. */
function changes(before: RecordContent, after: RecordContent): string {
  const [from, to] = [before, after].map((record) => new Map<string, unknown>(Object.entries(record)))
  const names = [...new Set([...(from?.keys() ?? []), ...(to?.keys() ?? [])])].sort()
  return names
    .filter((name) => JSON.stringify(from?.get(name)) !== JSON.stringify(to?.get(name)))
    .map((name) => (to?.has(name) === true ? `${name}=${JSON.stringify(to.get(name))}` : `-${name}`))
    .join(' ')
    .replace(/["\\]/g, '')
}

const claim = 'new'
const proof: Proof = { sent: undefined, order, orderId: 'ord_1', attempts: 1, claim }
const asked = { slot: 'ref:r1', fingerprint: 'other', externalOrderId: 'r1', body: '{"quantity":2}' }

const again = { type: 'asked', order: asked, key, claim } as const
const closing = { type: 'closed', attempts: 1, shared: false, unused: false } as const

/** An event of every type, and of each of its kinds. */
const EVENTS: Readonly<Record<string, RecordEvent>> = {
  'asked again': again,
  'resumed by a call': { type: 'resumed', by: 'call' },
  'resumed by recovery': { type: 'resumed', by: 'recovery' },
  claimed: { type: 'claimed', now: 50, until: 150, claim, apiKeyTag: 'mine' },
  'claimed again by the same call': {
    type: 'claimed',
    now: 50,
    until: 150,
    claim: LEFT_OPEN.claim,
    apiKeyTag: 'mine',
  },
  'claimed after the claim was over': { type: 'claimed', now: 99, until: 150, claim, apiKeyTag: 'mine' },
  tagged: { type: 'tagged', apiKeyTag: 'mine' },
  refused: { type: 'refused', rejection: { kind: 'refused', status: 422 }, attempts: 1 },
  'moved on': { type: 'moved_on', key },
  'went back': { type: 'went_back', key: { ...key, generation: 0 }, createdAt: 5 },
  'closed as refused': { ...closing, rejection: { kind: 'refused' } },
  'closed as cancelled': { ...closing, rejection: { kind: 'cancelled' }, attempts: 0, unused: true },
  'closed in conflict': { ...closing, rejection: { kind: 'conflict' } },
  'closed in conflict under a shared key': { ...closing, rejection: { kind: 'conflict' }, shared: true },
  'left open': { type: 'left_open', ambiguous: true, hold: undefined, attempts: 1 },
  'left open after a refusal': { type: 'left_open', ambiguous: true, hold: 'refused', attempts: 1 },
  'proven by a list': { type: 'proven', ...proof },
  'proven without the order': { type: 'proven', ...proof, order: undefined },
  'proven without its id': { type: 'proven', ...proof, order: undefined, orderId: undefined },
  distrusted: { type: 'distrusted', busy: false, claim },
  'distrusted while a call works on it': { type: 'distrusted', busy: true, claim },
  rewritten: { type: 'rewritten', claim },
  abandoned: { type: 'abandoned', key, claim },
  'abandoned under its name': { type: 'abandoned', key: undefined, claim },
}

const ASKED = 'apiKeyTag= body={quantity:2} claim=new fields={quantity:new} fingerprint=other'
const NEXT = 'generation=7 key=key-new'
const READ = 'order={id:ord_1,status:pending,amount:5} readable=true'

/** The changes to a record, by event and by the record's phase. */
const ROWS: Readonly<Record<string, { readonly [Phase in keyof typeof PHASES]?: string }>> = {
  'asked again': {
    rejected: `${ASKED} ${NEXT} -rejection state=open`,
    later: `${ASKED} ${NEXT} -rejection state=open`,
  },
  'resumed by a call': { open: '-hold', unread: 'ambiguous=true' },
  'resumed by recovery': { open: '', unread: 'ambiguous=true' },
  claimed: {
    open: 'apiKeyTag=mine busyUntil=150 claim=new',
    unread: 'apiKeyTag=mine busyUntil=150 claim=new othersUntil=99',
    overtaken: 'apiKeyTag=mine busyUntil=150 claim=new',
  },
  'claimed again by the same call': {
    busy: 'apiKeyTag=mine busyUntil=150',
    overtaken: 'apiKeyTag=mine busyUntil=150',
  },
  'claimed after the claim was over': { busy: 'apiKeyTag=mine busyUntil=150 claim=new' },
  tagged: { busy: 'apiKeyTag=mine' },
  refused: { busy: 'attempts=1 refused=true rejection={kind:refused,status:422}' },
  'moved on': {
    busy: `fields={quantity:new} first={sentAt:10,refused:false} -firstSentAt ${NEXT}`,
    rejected: `fields={quantity:new} first={sentAt:10,refused:true,rejection:{kind:refused,status:402}} -firstSentAt ${NEXT} refused=false -rejection`,
    later: `fields={quantity:new} -firstSentAt ${NEXT} -rejection`,
  },
  'went back': {
    rejected: 'fields={quantity:new} firstSentAt=5 highest=0 key=key-new refused=false -rejection',
    later:
      'fields={quantity:new} -first firstSentAt=3 generation=0 highest=2 key=key-new refused=true -rejection',
  },
  'closed as refused': {
    busy: 'attempts=1 -body -busyUntil refused=true rejection={kind:refused} state=rejected',
  },
  'closed as cancelled': {
    busy: '-body -busyUntil -firstSentAt rejection={kind:cancelled} state=rejected',
  },
  'closed in conflict': {
    busy: 'attempts=1 -busyUntil foreign=true rejection={kind:conflict} state=rejected',
  },
  'closed in conflict under a shared key': {
    busy: 'attempts=1 -busyUntil foreign=true rejection={kind:conflict} state=rejected',
  },
  'left open': { busy: 'ambiguous=true attempts=1 -busyUntil', open: 'attempts=2' },
  'left open after a refusal': {
    busy: 'ambiguous=true attempts=1 -busyUntil hold=refused',
    open: 'attempts=2 hold=refused',
  },
  'proven by a list': {
    busy: `attempts=1 -body -busyUntil claim=new ${READ} state=created`,
    open: `ambiguous=false attempts=2 -body claim=new -hold ${READ} state=created`,
    unread: `attempts=2 -body -busyUntil claim=new ${READ}`,
    rejected: `attempts=3 claim=new ${READ} -rejection state=created`,
  },
  'proven without the order': {
    busy: 'attempts=1 -busyUntil claim=new order={id:ord_1} state=created',
    open: 'ambiguous=false attempts=2 claim=new -hold order={id:ord_1} state=created',
    unread: 'attempts=2 -busyUntil claim=new order={id:ord_1}',
    rejected: 'attempts=3 claim=new order={id:ord_1} -rejection state=created',
  },
  'proven without its id': {
    busy: 'attempts=1 -busyUntil claim=new state=created',
    open: 'ambiguous=false attempts=2 claim=new -hold state=created',
    rejected: 'attempts=3 claim=new -rejection state=created',
  },
  distrusted: {
    busy: '-busyUntil claim=new firstSentAt=0',
    open: 'claim=new firstSentAt=0',
    unread: '-busyUntil claim=new firstSentAt=0',
    overtaken: '-busyUntil claim=new firstSentAt=0 -othersUntil',
    later: 'claim=new first={sentAt:0,refused:true} firstSentAt=0',
  },
  'distrusted while a call works on it': {
    busy: 'claim=new firstSentAt=0',
    overtaken: 'claim=new firstSentAt=0',
  },
  rewritten: { busy: 'claim=new', open: 'claim=new', rejected: 'claim=new' },
  abandoned: {
    open: 'ambiguous=false -body claim=new fields={quantity:new} first={sentAt:0,refused:false} -firstSentAt generation=7 -hold key=key-new rejection={kind:abandoned} state=rejected',
    rejected: `claim=new fields={quantity:new} first={sentAt:0,refused:false} -firstSentAt ${NEXT} refused=false rejection={kind:abandoned}`,
    later: `claim=new fields={quantity:new} first={sentAt:0,refused:false} -firstSentAt ${NEXT} rejection={kind:abandoned}`,
  },
  'abandoned under its name': {
    open: '-body claim=new generation=1 -hold rejection={kind:abandoned} state=rejected',
    rejected: 'claim=new generation=1 refused=false rejection={kind:abandoned}',
  },
}

describe('the next content of a record', () => {
  const lines = Object.entries(ROWS).flatMap(([event, phases]) =>
    Object.entries(phases).map(([phase, expected]) => [event, phase, expected] as const),
  )
  const found = new Map<string, RecordContent>(Object.entries(PHASES))

  it.each(lines)('%s: %s', (event, phase, expected) => {
    const [before, change] = [found.get(phase), EVENTS[event]]
    if (before === undefined || change === undefined) throw new Error(`there is no ${event} or ${phase}`)
    expect(changes(before, apply(before, change))).toBe(expected)
  })

  it('the table describes every event', () => {
    expect(Object.keys(ROWS)).toEqual(Object.keys(EVENTS))
  })

  it('only a requested order starts a record', () => {
    expect(apply(undefined, again)).toEqual({
      ...asked,
      ...key,
      state: 'open',
      ambiguous: false,
      attempts: 0,
      apiKeyTag: '',
      claim,
      readable: false,
      refused: false,
      foreign: false,
    })
    expect(() => apply(undefined, { type: 'rewritten', claim })).toThrow(
      new TypeError('unreachable: no record for the event rewritten'),
    )
  })

  it('a repeated key keeps its doubt and its conflict', () => {
    const doubted = { ...PHASES.rejected, ambiguous: true, foreign: true }
    expect(apply(doubted, again)).toMatchObject({ ambiguous: true, foreign: true })
  })

  it('a random or given key is not recorded as a first key', () => {
    const drawn = { ...key, keyOrigin: 'random' } as const
    expect(apply(PHASES.rejected, { type: 'moved_on', key: drawn })).not.toHaveProperty('first')
    const callers = { ...PHASES.rejected, keyOrigin: 'caller' } as const
    expect(apply(callers, { type: 'moved_on', key })).not.toHaveProperty('first')
  })

  it.each([
    ['the order alone', false, { foreign: false }],
    ['another process too', true, { foreign: true }],
  ])("an order's own refusals explain a conflict if %s sent the key", (_by, shared, expected) => {
    const conflict = { ...closing, rejection: { kind: 'conflict' }, shared } as const
    expect(apply({ ...PHASES.busy, refused: true }, conflict)).toMatchObject(expected)
    expect(apply({ ...PHASES.busy, refused: true, foreign: true }, conflict).foreign).toBe(true)
  })
})

describe('a proof', () => {
  it('a proof applies to the key that was sent, whatever was written meanwhile', () => {
    const sent = { ...PHASES.busy, body: '{"quantity":1}', claim: 'sender' }
    const others = { fingerprint: 'other', apiKeyTag: 'other', claim: 'other', attempts: 7, fields: {} }
    const drawn = { key: 'key-1', keyOrigin: 'random', generation: 1 } as const
    const newest: RecordContent = { ...PHASES.open, ...others, ...drawn }
    const { key: sentKey, keyOrigin, generation, fields, fingerprint, apiKeyTag } = sent
    expect(apply(newest, { type: 'proven', ...proof, sent })).toMatchObject({
      ...{ key: sentKey, keyOrigin, generation, fields, fingerprint, apiKeyTag, claim },
      attempts: 8,
    })
  })

  it('a proof keeps known details if it lacks the order, and the body for a repetition', () => {
    const flawed = { type: 'proven', ...proof, order: undefined } as const
    const known = { ...PHASES.unread, order: { id: 'ord_0', status: 'pending' } }
    expect(apply(known, flawed).order).toEqual(known.order)
    expect(apply(PHASES.rejected, flawed)).not.toHaveProperty('body')
    const sent = { ...PHASES.busy, body: '{"quantity":2}' }
    expect(apply(PHASES.rejected, { ...flawed, sent }).body).toBe('{"quantity":2}')
    expect(apply(PHASES.open, { ...flawed, sent }).body).toBe('{}')
  })

  const named: RecordContent = { ...PHASES.unread, order: { id: 'ord_1' }, claim }
  const { busyUntil: _busyUntil, ...idle } = named
  const sent = PHASES.busy
  const nothing = { ...proof, order: undefined }
  it.each<[string, boolean, RecordContent, Proof]>([
    ['once the order is readable', true, PHASES.created, proof],
    ['if this call has not read it either', true, idle, nothing],
    ['if another call is reading it', true, named, { ...nothing, sent }],
    ['if a list shows only its id', true, named, nothing],
    ['where it is open', false, PHASES.open, nothing],
    ['where it is open and nobody works on it', false, { ...idle, state: 'open' }, nothing],
    [
      'where nothing is told of its id either',
      true,
      { ...idle, order: { status: 'pending' } },
      { ...nothing, orderId: undefined },
    ],
    ['where the claim of this call has ended', true, idle, { ...nothing, sent: { ...sent, claim } }],
    ['where only now the order is read', false, named, proof],
    ['where only now its id is known', false, PHASES.unread, nothing],
    ['where a claim of its own is to be given up', false, named, { ...nothing, sent: { ...sent, claim } }],
  ])('a proof adds nothing %s: %s', (_when, known, newest, its) => {
    expect(isKnown(newest, its)).toBe(known)
  })
})
