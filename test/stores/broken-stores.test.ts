import { type StoreContractOptions, storeContract } from 'customer-ordering-sdk/stores/contract'
import { describe, expect, it } from 'vitest'
import type { ListRowsOptions, OrderStore, RowPage, StoredRow } from '../../src/stores/store.ts'
import { CollectingRunner } from './support/collecting-runner.ts'
import { PlainStore } from './support/plain-store.ts'

/** Runs the suite, or its test with one title. Returns the messages of the failed tests, by title. */
function failuresOf(
  options: Omit<StoreContractOptions, 'test'>,
  only?: string,
): Promise<Map<string, string>> {
  const runner = new CollectingRunner(only)
  storeContract({ ...options, test: runner })
  return runner.run()
}

/** Replacements for a store's methods. `plain` has the original ones. */
type Mistake = (plain: PlainStore) => Partial<PlainStore>

function storeWith(mistake: Mistake): PlainStore {
  const store = new PlainStore()
  return Object.assign(store, mistake(new PlainStore(store)))
}

/** Pages rows in insertion order, with the number of rows read as cursor, like `OFFSET`. */
function pageByOffset(rows: readonly StoredRow[], { after, limit }: ListRowsOptions): RowPage {
  const start = Number(after ?? 0)
  const page = rows.slice(start, start + limit)
  return start + limit < rows.length ? { rows: page, next: String(start + limit) } : { rows: page }
}

/** Rows after a string that each has. */
function pageByKey(
  all: Iterable<StoredRow>,
  { after = '', limit }: ListRowsOptions,
  key: (row: StoredRow) => string,
  compare = (one: StoredRow, other: StoredRow): number => (key(one) < key(other) ? -1 : 1),
): RowPage {
  const rest = [...all].filter((row) => key(row) > after).sort(compare)
  const rows = rest.slice(0, limit)
  const last = rows.at(-1)
  return rest.length <= limit || last === undefined ? { rows } : { rows, next: key(last) }
}

const byTime = ({ updatedAt, id }: StoredRow): string => `${updatedAt} ${id}`
const byNumber = (one: StoredRow, other: StoredRow): number =>
  one.updatedAt - other.updatedAt || (one.id < other.id ? -1 : 1)
const inUtf8 = (text: string): string => new TextDecoder().decode(new TextEncoder().encode(text))

/** A store that compares scopes or ids inexactly. */
const comparing =
  (scopes: (scope: string) => string, ids: (id: string) => string = (id) => id): Mistake =>
  (plain) => ({ name: (scope, id) => plain.name(scopes(scope), ids(id)) })
const exactly = (scope: string): string => scope

/** A store that changes stored rows. */
const keeping =
  (change: (row: StoredRow) => Partial<StoredRow>): Mistake =>
  (plain) => ({ put: (row) => plain.put({ ...row, ...change(row) }) })

const closedBefore = ({ open, updatedAt }: StoredRow, limit: number): boolean => !open && updatedAt < limit

/** A store that prunes the wrong rows, or in the wrong scopes. */
const pruning =
  (isOld: typeof closedBefore, inScope = (row: StoredRow, scope: string) => row.scope === scope): Mistake =>
  (plain) => ({
    prune: async (scope, options) =>
      plain.remove((row) => inScope(row, scope) && isOld(row, plain.limitFor(row, options))),
  })

/** A store whose updates write if `applies`, without a check of the version otherwise. */
const updating =
  (applies: (current: StoredRow | undefined, expectedVersion: number) => boolean): Mistake =>
  (plain) => ({
    update: async (row, expectedVersion) => {
      if (!applies(plain.find(row.scope, row.id), expectedVersion)) return false
      plain.put(row)
      return true
    },
  })

/** A store whose list of open rows is wrong. */
const listingOpen =
  (page: (open: readonly StoredRow[], options: ListRowsOptions) => RowPage): Mistake =>
  (plain) => ({
    listOpen: async (scope, options) => {
      const open = plain.of(scope).filter((row) => row.open)
      return page(open, options)
    },
  })

/** A store whose list of all rows is wrong. */
const listing =
  (page: (rows: readonly StoredRow[], options: ListRowsOptions) => RowPage): Mistake =>
  (plain) => ({
    list: async (scope, options) => {
      const rows = plain.of(scope).filter((row) => row.updatedAt >= (options.since ?? 0))
      return page(rows, options)
    },
  })

const insertLooksBeforeItLeaps: Mistake = (plain) => ({
  insert: async (row) => {
    const current = await plain.get(row.scope, row.id)
    if (current !== undefined) return { inserted: false, current }
    plain.put(row)
    return { inserted: true }
  },
})

const updateLooksBeforeItLeaps: Mistake = (plain) => ({
  update: async (row, expectedVersion) => {
    const current = await plain.get(row.scope, row.id)
    if (current?.version !== expectedVersion) return false
    plain.put(row)
    return true
  },
})

const insertOverwrites: Mistake = (plain) => ({
  insert: async (row) => {
    plain.put(row)
    return { inserted: true }
  },
})

const listOpenByOffset = listingOpen(pageByOffset)

/** Like a database with its own limit, whose caller continues after the rows that it requested. */
const capped = (page: RowPage): RowPage => ({ ...page, rows: page.rows.slice(0, 50) })

const claimsTheDevice: Mistake = () => ({ durability: 'device' })

/** Stores that each break one rule. The title is that of the test that must detect it. */
const MISTAKES: Readonly<Record<string, Readonly<Record<string, Mistake>>>> = {
  'insert leaves an existing row as it is and returns it': {
    'insert overwrites': insertOverwrites,
    'insert overwrites, but tells': (plain) => ({
      insert: async (row) => {
        const result = await plain.insert(row)
        plain.put(row)
        return result
      },
    }),
    'insert returns the first row': (plain) => {
      const first = new Map<string, StoredRow>()
      return {
        insert: async (row) => {
          const result = await plain.insert(row)
          const name = plain.name(row.scope, row.id)
          if (result.inserted) first.set(name, { ...row })
          return result.inserted ? result : { inserted: false, current: first.get(name) ?? result.current }
        },
      }
    },
  },
  "exactly one of several racing inserts wins, and the losers get the winner's row": {
    'insert returns the row of the loser': (plain) => ({
      insert: async (row) => {
        const result = await plain.insert(row)
        return result.inserted ? result : { inserted: false, current: { ...row } }
      },
    }),
    'insert looks before it leaps': insertLooksBeforeItLeaps,
  },
  'concurrent histories are linearizable for every row': {
    'insert looks before it leaps': insertLooksBeforeItLeaps,
    'update looks before it leaps': updateLooksBeforeItLeaps,
    'writes come late': (plain) => ({
      put: (row) => {
        const copy = { ...row }
        queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => plain.put(copy))))
      },
    }),
    'some reads, never two in a row, return what was before the last write': (plain) => {
      const before = new Map<string, StoredRow>()
      let reads = 0
      return {
        put: (row) => {
          const current = plain.find(row.scope, row.id)
          if (current !== undefined) before.set(plain.name(row.scope, row.id), current)
          plain.put(row)
        },
        get: async (scope, id) => {
          const old = before.get(plain.name(scope, id))
          return ++reads % 50 === 0 && old !== undefined ? { ...old } : plain.get(scope, id)
        },
      }
    },
  },
  'exactly one of several racing updates of one version wins': {
    'update looks before it leaps': updateLooksBeforeItLeaps,
  },
  'clients that read and update in a loop lose no update': {
    'update looks before it leaps': updateLooksBeforeItLeaps,
  },
  'update changes nothing and returns false for any other version': {
    'update ignores the version': updating((current) => current !== undefined),
    'update takes older versions, too': updating(
      (current, expectedVersion) => current !== undefined && current.version <= expectedVersion,
    ),
  },
  'update of a missing row returns false and creates nothing': {
    'update creates': updating(
      (current, expectedVersion) => current === undefined || current.version === expectedVersion,
    ),
  },
  'update replaces every field except scope and id, and changes no other row': {
    'update keeps the time of creation': (plain) => ({
      update: (row, expectedVersion) =>
        plain.update({ ...row, createdAt: plain.find(row.scope, row.id)?.createdAt ?? 0 }, expectedVersion),
    }),
  },
  'update stores the given version, which the next update must expect': {
    'update always says yes': (plain) => ({
      update: async (row, expectedVersion) => {
        await plain.update(row, expectedVersion)
        return true
      },
    }),
  },
  'changing a row after a write does not change the stored row': {
    'rows are shared with who hands them in': (plain) => ({
      put: (row) => void plain.rows.set(plain.name(row.scope, row.id), row),
    }),
  },
  'changing a row that a read returned does not change the stored row': {
    'rows are shared with whom they are handed out to': (plain) => ({
      get: async (scope, id) => plain.find(scope, id),
    }),
  },
  'listOpen never omits a row that stays open, even if other rows change between pages': {
    'listOpen goes by offset': listOpenByOffset,
    'listOpen goes by time': listingOpen((rows, options) => pageByKey(rows, options, byTime)),
  },
  'listOpen reaches every row even if its caller closes each row, as recovery does': {
    'listOpen goes by offset': listOpenByOffset,
  },
  'listOpen reflects that a row was closed or reopened': {
    'listOpen forgets rows that were opened again': (plain) => {
      const everClosed = new Set<string>()
      return {
        put: (row) => {
          if (!row.open) everClosed.add(row.id)
          plain.put(row)
        },
        listOpen: async (scope, options) =>
          plain.page(scope, options, (row) => row.open && !everClosed.has(row.id)),
      }
    },
  },
  'listOpen returns each open row of its scope once, for any limit': {
    'listOpen goes by state': (plain) => ({
      listOpen: async (scope, options) => plain.page(scope, options, (row) => row.state === 'open'),
    }),
    'listOpen ignores the limit': (plain) => ({
      listOpen: (scope) => plain.listOpen(scope, { limit: 1_000 }),
    }),
  },
  'listOpen and list return one empty page for an empty scope': {
    'listOpen never ends': (plain) => ({
      listOpen: async (scope, options) => ({ next: '', ...(await plain.listOpen(scope, options)) }),
    }),
  },
  "concurrent readers do not affect each other's pages": {
    'listOpen keeps a cursor of its own': (plain) => {
      let last = ''
      return {
        listOpen: async (scope, options) => {
          const after = options.after === undefined ? '' : last
          const page = await plain.listOpen(scope, { ...options, after })
          last = page.next ?? ''
          return page
        },
      }
    },
  },
  'list returns the rows last written at `since` or later': {
    'list ignores since': (plain) => ({
      list: (scope, options) => plain.list(scope, { ...options, since: 0 }),
    }),
    'list leaves out the time itself': (plain) => ({
      list: (scope, options) => plain.list(scope, { ...options, since: (options.since ?? -1) + 1 }),
    }),
  },
  'list and prune compare times as numbers, whatever their number of digits': {
    'list goes on after a cursor that is a string': listing((rows, options) =>
      pageByKey(rows, options, byTime, byNumber),
    ),
    'list compares times as strings': (plain) => ({
      list: async (scope, options) =>
        plain.page(scope, options, (row) => String(row.updatedAt) >= String(options.since ?? 0)),
    }),
    'prune compares times as strings': pruning(
      ({ open, updatedAt }, limit) => !open && String(updatedAt) < String(limit),
    ),
  },
  'list never omits an unchanged row, even if other rows change between pages': {
    'list goes by offset': listing(pageByOffset),
  },
  'list returns each row of its scope once, open or closed, for any limit': {
    'list leaves out closed rows': (plain) => ({ list: (scope, options) => plain.listOpen(scope, options) }),
  },
  'prune never removes an open row, regardless of its state and age': {
    'prune removes open rows': pruning((row, limit) => row.updatedAt < limit),
    'prune goes by state': pruning((row, limit) => row.state !== 'open' && row.updatedAt < limit),
  },
  'prune applies a separate cutoff time to each state': {
    'prune knows one time': () => ({ limitFor: (_row, { createdBefore }) => createdBefore }),
  },
  'prune removes the closed rows last written before the cutoff time for their state': {
    'prune includes the time': (plain) => ({ limitFor: (row, options) => plain.limitFor(row, options) + 1 }),
  },
  "prune compares the cutoff with the time of a row's last write": {
    'prune goes by creation': pruning((row, limit) => !row.open && row.createdAt < limit),
  },
  'prune removes no row of another scope': { 'prune leaves its scope': pruning(closedBefore, () => true) },
  'prune returns the number of removed rows, and 0 the second time': {
    'prune counts what is left': (plain) => ({
      prune: async (scope, options) => {
        await plain.prune(scope, options)
        return plain.rows.size
      },
    }),
  },
  'either a racing prune or a racing update gets the row, but not both': {
    'prune looks before it leaps': (plain) => ({
      prune: async (scope, options) => {
        const old = plain.of(scope).filter((row) => plain.isOld(row, options))
        await undefined
        return plain.remove((row) => old.some(({ id }) => id === row.id))
      },
    }),
  },
  'another insert does not overwrite a row that was inserted again after a prune': {
    'inserts overwrite what was pruned': (plain) => {
      const pruned = new Set<string>()
      return {
        insert: async (row) => {
          if (!pruned.has(plain.name(row.scope, row.id))) return plain.insert(row)
          plain.put(row)
          return { inserted: true }
        },
        prune: async (scope, options) => {
          const before = [...plain.rows.keys()]
          const removed = await plain.prune(scope, options)
          for (const name of before) if (!plain.rows.has(name)) pruned.add(name)
          return removed
        },
      }
    },
  },
  "listOpen and list reach every row of a large scope with the client's limit": {
    'listOpen skips rows beyond its cap': (plain) => ({
      listOpen: async (scope, options) => capped(await plain.listOpen(scope, options)),
    }),
    'list skips rows beyond its cap': (plain) => ({
      list: async (scope, options) => capped(await plain.list(scope, options)),
    }),
    'listOpen ends a page after so many bytes, and says that it was the last': (plain) => ({
      listOpen: async (scope, options) => {
        const { rows } = await plain.listOpen(scope, options)
        let [bytes, count] = [0, 0]
        while (count < rows.length && bytes < 1_000_000) bytes += rows[count++]?.data.length ?? 0
        if (count === rows.length) return plain.listOpen(scope, options)
        return { rows: rows.slice(0, count) }
      },
    }),
  },
  'ids are compared exactly: case, whitespace and accents distinguish rows': {
    // Like a column with a collation, such as SQL Server's default.
    'ids ignore case': comparing(exactly, (id) => id.toLowerCase()),
    // Like a column of fixed width, or MySQL's comparison with padding.
    'ids ignore trailing blanks': comparing(exactly, (id) => id.trimEnd()),
    'ids ignore accents': comparing(exactly, (id) => id.normalize('NFD').replace(/\p{Mark}/gu, '')),
    'rows are found by the exact id, and paged by one in lower case': (plain) => ({
      page: (scope, options, wanted) =>
        pageByKey(plain.of(scope).filter(wanted), options, ({ id }) => id.toLowerCase()),
    }),
  },
  'a scope never sees or changes rows of another scope, however similar their names are': {
    'scopes ignore trailing blanks': comparing((scope) => scope.trimEnd()),
    'scopes ignore case': comparing((scope) => scope.toLowerCase()),
    'scopes end at NUL': comparing((scope) => scope.split('\0', 1)[0] ?? ''),
  },
  'list and prune access only their own scope, however similar other scope names are': {
    'prune ignores the case of scopes': pruning(
      closedBefore,
      (row, scope) => row.scope.toLowerCase() === scope.toLowerCase(),
    ),
    'list ignores trailing blanks of scopes': ({ rows }) => ({
      list: async (scope, options) =>
        pageByOffset(
          [...rows.values()].filter((row) => row.scope.trimEnd() === scope.trimEnd()),
          options,
        ),
    }),
  },
  'half of a surrogate pair is returned exactly or rejected, never altered': {
    'data is UTF-8': keeping(({ data }) => ({ data: inUtf8(data) })),
    'scopes are UTF-8': comparing(inUtf8),
  },
  'data is returned exactly as written, whatever it contains': {
    'data that is JSON is parsed': keeping(({ data }) => {
      try {
        return { data: JSON.stringify(JSON.parse(data)) }
      } catch {
        // Data that is not JSON stays unchanged.
        return {}
      }
    }),
  },
  'large data with every Unicode character is returned exactly': {
    'data is cut': keeping(({ data }) => ({ data: data.slice(0, 65_535) })),
  },
  'numbers are returned exactly, up to the largest safe integer': {
    'numbers are rounded': keeping(({ version }) => ({ version: Math.fround(version) })),
  },
  'a store that the suite cannot reopen declares durability memory': {
    'it claims the device': claimsTheDevice,
  },
  'close can be called again': {
    'it cannot be closed twice': () => {
      let closed = false
      return {
        close: async () => {
          if (closed) throw new Error('closed already')
          closed = true
        },
      }
    },
  },
}

it('the reference store, from which the broken stores derive, passes the contract', async () => {
  expect(await failuresOf({ createStore: () => new PlainStore() })).toEqual(new Map())
})

describe.each(Object.entries(MISTAKES))('the contract test "%s"', (title, mistakes) => {
  it.each(Object.entries(mistakes))('detects a store where %s', async (_, mistake) => {
    const failures = await failuresOf({ createStore: () => storeWith(mistake) }, title)
    expect([...failures.keys()]).toEqual([title])
  })
})

it('the contract detects a second handle that reads from a copy', async () => {
  const cached = (origin: OrderStore): PlainStore =>
    storeWith(() => {
      const cache = new Map<string, StoredRow>()
      return {
        insert: (row) => origin.insert(row),
        update: (row, expectedVersion) => origin.update(row, expectedVersion),
        get: async (scope, id) => {
          const row = cache.get(id) ?? (await origin.get(scope, id))
          if (row !== undefined) cache.set(id, row)
          return row
        },
      }
    })
  const failures = await failuresOf({ createStore: () => new PlainStore(), openSecond: cached })
  expect([...failures.keys()]).toEqual([
    'the next read through another handle sees a resolved write',
    'clients of two handles that read and update in a loop lose no update',
    'concurrent histories through two handles are linearizable for every row',
  ])
})

it('the contract detects a store that loses its rows when it is reopened', async () => {
  const failures = await failuresOf({
    createStore: () => storeWith(claimsTheDevice),
    reopenStore: () => storeWith(claimsTheDevice),
  })
  expect([...failures.keys()]).toEqual(['rows survive closing and reopening the store'])
})

it('a failure of a race shows what the writer saw, and the seed to repeat it', async () => {
  const failures = await failuresOf({ createStore: () => storeWith(updateLooksBeforeItLeaps), seed: 7 })
  const message = failures.get('concurrent histories are linearizable for every row')
  expect(message).toContain('with seed 7: no order of the calls on row')
  expect(message).toMatch(
    /client \d: update from version \d+ to version \d+, "written by \d in call \d+": returned true/,
  )
})

it('a store whose calls are rejected fails the contract with the reason', async () => {
  const update = () => Promise.reject(new Error('the disk is on fire'))
  const failures = await failuresOf({ createStore: () => storeWith(() => ({ update })) })
  expect(failures.get('update replaces the row that has the expected version')).toBe('the disk is on fire')
  expect(failures.get('concurrent histories are linearizable for every row')).toMatch(
    /rejected calls: \d+, the first with: Error: the disk is on fire/,
  )
})

it('the contract reports the failure of a test, not a later failure of its cleanup', async () => {
  const failsTwice: Mistake = () => ({
    get: async () => {
      await new Promise((resolve) => setImmediate(resolve))
      throw new Error('cannot read')
    },
    close: () => Promise.reject(new Error('cannot close')),
  })
  const failures = await failuresOf({
    createStore: () => storeWith(failsTwice),
    history: { clients: 1, operations: 1 },
  })
  expect(failures.get('get returns undefined for a row that was never written')).toBe('cannot read')
  expect(failures.get('durability is memory, device or server')).toBe('cannot close')
})

it('the contract closes every handle, then removes the store, even after a failure', async () => {
  const events: string[] = []
  const watched = (name: string): PlainStore =>
    storeWith((plain) => ({
      ...insertOverwrites(plain),
      close: async () => void events.push(`close ${name}`),
    }))
  const failures = await failuresOf(
    {
      createStore: () => watched('first'),
      openSecond: () => watched('second'),
      removeStore: () => events.push('remove'),
    },
    "exactly one of several racing inserts through two handles wins, and the losers get the winner's row",
  )
  expect(failures.size).toBe(1)
  expect(events).toEqual(['close first', 'close second', 'remove'])
})
