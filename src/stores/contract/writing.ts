import type { StoredRow } from '../store.ts'
import type { ContractCase } from './case.ts'
import { expectNoRow, expectRow, expectSame, show } from './expect.ts'
import { insertAll, makeRow, mustUpdate, nextVersion, SCOPE, WRITTEN_AT } from './rows.ts'

/** Strings that a careless store would parse, escape, trim or truncate. */
const OPAQUE_TEXTS: readonly string[] = [
  '',
  ' ',
  ' leading and trailing ',
  '\t\r\n',
  '\u0000',
  'before\u0000after',
  '\u0000\u0001\u001f\u007f\u0080\u009f',
  '"',
  "'",
  "''; DROP TABLE orders; --",
  '`; $1 ? :name @name %s {0}',
  '\\',
  '\\u0000 \\x00 \\n',
  'null',
  'undefined',
  'true',
  '0',
  '1e400',
  '9007199254740993',
  '{"a":1,"a":2}',
  '{ "spaced" : 1.0 }',
  '[1, 2',
  '2024-01-01T00:00:00Z',
  '\ufeffbyte order mark',
  'e\u0301 and \u00e9 differ',
  '\u2028\u2029',
  '\ufffe\uffff\ufffd',
  '👩‍👩‍👧‍👦 𝒳 \u{10ffff}',
]

/** Every Unicode character, in as many strings as necessary. */
function everyCharacter(maxBytes: number): readonly string[] {
  const strings: string[] = []
  let string = ''
  for (let point = 0; point <= 0x10ffff; point++) {
    if (point >= 0xd800 && point <= 0xdfff) continue
    string += String.fromCodePoint(point)
    // Each UTF-16 unit takes at most three bytes. The next check comes after 0x2000 units.
    if (point % 0x1000 === 0 && (string.length + 0x2000) * 3 > maxBytes) {
      strings.push(string)
      string = ''
    }
  }
  return [...strings, string]
}

export const writing: readonly ContractCase[] = [
  {
    title: 'get returns undefined for a row that was never written',
    run: async ({ store }) => {
      expectNoRow(await store.get(SCOPE, makeRow(1).id), 'get() of an empty store')
      await insertAll(store, [makeRow(1)])
      expectNoRow(await store.get(SCOPE, makeRow(2).id), 'get() of another id')
    },
  },
  {
    title: 'get returns an inserted row',
    run: async ({ store }) => {
      const result = await store.insert(makeRow(1))
      expectSame(result.inserted, true, '`inserted` for a new row')
      expectRow(await store.get(SCOPE, makeRow(1).id), makeRow(1), 'the row')
    },
  },
  {
    title: 'insert leaves an existing row as it is and returns it',
    run: async ({ store }) => {
      const first = makeRow(1, { data: 'first' })
      await insertAll(store, [first])
      const second = await store.insert(makeRow(1, { data: 'second', createdAt: WRITTEN_AT + 5 }))
      if (second.inserted) throw new Error('insert() of an existing row resolved to inserted: true')
      expectRow(second.current, first, 'the current row that insert() returns')
      expectRow(await store.get(SCOPE, first.id), first, 'the row after a second insert()')
      const updated = nextVersion(first, { data: 'updated', open: false, state: 'created' })
      await mustUpdate(store, updated)
      const third = await store.insert(makeRow(1, { data: 'third' }))
      if (third.inserted) throw new Error('insert() of an existing closed row resolved to inserted: true')
      expectRow(third.current, updated, 'the current row that insert() returns after an update')
    },
  },
  {
    title: 'update replaces the row that has the expected version',
    run: async ({ store }) => {
      await insertAll(store, [makeRow(1)])
      const next = nextVersion(makeRow(1), { data: 'next' })
      expectSame(await store.update(next, 1), true, 'update() from the stored version')
      expectRow(await store.get(SCOPE, next.id), next, 'the row')
    },
  },
  {
    title: 'update changes nothing and returns false for any other version',
    run: async ({ store }) => {
      const first = makeRow(1)
      const second = nextVersion(first, { data: 'second' })
      await insertAll(store, [first])
      await mustUpdate(store, second)
      for (const expected of [0, 1, 3, Number.MAX_SAFE_INTEGER]) {
        const stale = nextVersion(first, { version: expected + 1, data: `expected ${expected}` })
        expectSame(
          await store.update(stale, expected),
          false,
          `update() of version 2 with expectedVersion ${expected}`,
        )
        expectRow(
          await store.get(SCOPE, first.id),
          second,
          `the row after update() with expectedVersion ${expected}`,
        )
      }
    },
  },
  {
    title: 'update of a missing row returns false and creates nothing',
    run: async ({ store }) => {
      await insertAll(store, [makeRow(1)])
      for (const expected of [0, 1]) {
        const row = makeRow(2, { version: expected + 1 })
        expectSame(
          await store.update(row, expected),
          false,
          `update() of a missing row with expectedVersion ${expected}`,
        )
        expectNoRow(await store.get(SCOPE, row.id), 'a row that was never inserted')
      }
    },
  },
  {
    title: 'update replaces every field except scope and id, and changes no other row',
    run: async ({ store }) => {
      const [first, other] = [makeRow(1), makeRow(2)]
      await insertAll(store, [first, other])
      const next: StoredRow = {
        scope: first.scope,
        id: first.id,
        version: 2,
        open: false,
        state: 'rejected',
        createdAt: WRITTEN_AT - 7,
        updatedAt: WRITTEN_AT - 3,
        data: 'other',
      }
      await mustUpdate(store, next)
      expectRow(await store.get(SCOPE, first.id), next, 'the updated row')
      expectRow(await store.get(SCOPE, other.id), other, 'the other row')
    },
  },
  {
    title: 'update stores the given version, which the next update must expect',
    run: async ({ store }) => {
      let row = makeRow(1)
      await insertAll(store, [row])
      for (let version = 2; version <= 12; version++) {
        const before = row
        row = nextVersion(row, { data: `version ${version}` })
        expectSame(
          await store.update(row, version - 1),
          true,
          `update() from version ${version - 1} to ${version}`,
        )
        expectSame(
          await store.update(nextVersion(before), version - 1),
          false,
          `update() from version ${version - 1} again`,
        )
        expectRow(await store.get(SCOPE, row.id), row, `the row at version ${version}`)
      }
    },
  },
  {
    title: 'open and state are stored independently of each other',
    run: async ({ store }) => {
      const states = ['open', 'created', 'rejected'] as const
      const rows = states.flatMap((state, index) => [
        makeRow(index, { state, open: true }),
        makeRow(index + states.length, { state, open: false }),
      ])
      await insertAll(store, rows)
      for (const row of rows)
        expectRow(await store.get(SCOPE, row.id), row, `the row with state ${row.state} and open ${row.open}`)
    },
  },
  {
    title: 'data is returned exactly as written, whatever it contains',
    run: async ({ store }) => {
      const rows = OPAQUE_TEXTS.map((data, index) => makeRow(index, { data }))
      await insertAll(store, rows)
      for (const row of rows)
        expectRow(await store.get(SCOPE, row.id), row, `the row with data ${show(row.data)}`)
      const turned = rows.map((row, index) => nextVersion(row, { data: OPAQUE_TEXTS.at(-1 - index) ?? '' }))
      for (const row of turned) await mustUpdate(store, row)
      for (const row of turned)
        expectRow(await store.get(SCOPE, row.id), row, `the row updated to ${show(row.data)}`)
    },
  },
  {
    title: 'large data with every Unicode character is returned exactly',
    run: async ({ store, maxBytes }) => {
      for (const [index, data] of everyCharacter(maxBytes).entries()) {
        const row = makeRow(index + 1, { data })
        await insertAll(store, [row])
        expectRow(await store.get(SCOPE, row.id), row, 'the inserted row')
        const grown = nextVersion(row, { data: `${row.data}.` })
        await mustUpdate(store, grown)
        expectRow(await store.get(SCOPE, row.id), grown, 'the updated row')
        const small = nextVersion(grown, { data: 'small again' })
        await mustUpdate(store, small)
        expectRow(await store.get(SCOPE, row.id), small, 'the row whose data was shortened')
      }
    },
  },
  {
    title: 'half of a surrogate pair is returned exactly or rejected, never altered',
    run: async ({ store }) => {
      const rows = [
        makeRow(1, { data: 'high \ud83d alone' }),
        makeRow(2, { data: '\udc00 low alone' }),
        makeRow(3, { scope: 'half \ud800' }),
        makeRow(3, { scope: 'half \ud801' }),
      ]
      const replaced = makeRow(3, { scope: 'half \ufffd', data: 'whole' })
      await insertAll(store, [replaced])
      for (const row of rows) {
        const kept = await store.insert(row).then(
          () => true,
          () => false,
        )
        if (kept) expectRow(await store.get(row.scope, row.id), row, 'the row with half of a surrogate pair')
      }
      expectRow(await store.get(replaced.scope, replaced.id), replaced, 'the row of the scope with U+FFFD')
    },
  },
  {
    title: 'numbers are returned exactly, up to the largest safe integer',
    run: async ({ store }) => {
      const largest = Number.MAX_SAFE_INTEGER
      const row = makeRow(1, { version: largest - 1, createdAt: 0, updatedAt: largest })
      await insertAll(store, [row])
      expectRow(await store.get(SCOPE, row.id), row, 'the inserted row')
      const next = { ...row, version: largest, createdAt: largest - 2, updatedAt: 0 }
      expectSame(
        await store.update(next, largest - 2),
        false,
        'update() with an expectedVersion that is too low',
      )
      expectSame(
        await store.update(next, largest),
        false,
        'update() with an expectedVersion that is too high',
      )
      expectSame(await store.update(next, largest - 1), true, 'update() with the stored version')
      expectRow(await store.get(SCOPE, row.id), next, 'the updated row')
    },
  },
]
