import { type StoreContractOptions, storeContract } from 'customer-ordering-sdk/stores/contract'
import { describe, expect, it } from 'vitest'
import type {
  InsertResult,
  ListRowsOptions,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from '../../src/idempotency/store.ts'
import { CollectingRunner } from './support/collecting-runner.ts'
import { PlainStore } from './support/plain-store.ts'

/** Runs the suite, or its test of one title, and returns the messages of the tests that failed, by title. */
function failuresOf(
  options: Omit<StoreContractOptions, 'test'>,
  only?: string,
): Promise<Map<string, string>> {
  const runner = new CollectingRunner(only)
  storeContract({ ...options, test: runner })
  return runner.run()
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Rows in insertion order with the number of rows already read as cursor: what `OFFSET` does. */
function pageByOffset(rows: readonly StoredRow[], { after, limit }: ListRowsOptions): RowPage {
  const start = Number(after ?? 0)
  const page = rows.slice(start, start + limit)
  return start + limit < rows.length ? { rows: page, next: String(start + limit) } : { rows: page }
}

class InsertOverwrites extends PlainStore {
  override async insert(row: StoredRow): Promise<InsertResult> {
    this.put(row)
    return { inserted: true }
  }
}

class InsertOverwritesButTells extends PlainStore {
  override async insert(row: StoredRow): Promise<InsertResult> {
    const result = await super.insert(row)
    this.put(row)
    return result
  }
}

class InsertReturnsTheLosersRow extends PlainStore {
  override async insert(row: StoredRow): Promise<InsertResult> {
    const result = await super.insert(row)
    return result.inserted ? result : { inserted: false, current: { ...row } }
  }
}

class InsertReturnsTheFirstRow extends PlainStore {
  readonly #first = new Map<string, StoredRow>()
  override async insert(row: StoredRow): Promise<InsertResult> {
    const result = await super.insert(row)
    const name = this.name(row.scope, row.id)
    if (result.inserted) this.#first.set(name, { ...row })
    return result.inserted ? result : { inserted: false, current: this.#first.get(name) ?? result.current }
  }
}

class InsertLooksBeforeItLeaps extends PlainStore {
  override async insert(row: StoredRow): Promise<InsertResult> {
    const current = await this.get(row.scope, row.id)
    if (current !== undefined) return { inserted: false, current }
    this.put(row)
    return { inserted: true }
  }
}

class UpdateLooksBeforeItLeaps extends PlainStore {
  override async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    const current = await this.get(row.scope, row.id)
    if (current?.version !== expectedVersion) return false
    this.put(row)
    return true
  }
}

class UpdateIgnoresTheVersion extends PlainStore {
  override async update(row: StoredRow): Promise<boolean> {
    if (this.find(row.scope, row.id) === undefined) return false
    this.put(row)
    return true
  }
}

class UpdateTakesOlderVersionsToo extends PlainStore {
  override async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    const current = this.find(row.scope, row.id)
    if (current === undefined || current.version > expectedVersion) return false
    this.put(row)
    return true
  }
}

class UpdateCreates extends PlainStore {
  override async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    const current = this.find(row.scope, row.id)
    if (current !== undefined && current.version !== expectedVersion) return false
    this.put(row)
    return true
  }
}

class UpdateKeepsTheCreationTime extends PlainStore {
  override async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    return super.update({ ...row, createdAt: this.find(row.scope, row.id)?.createdAt ?? 0 }, expectedVersion)
  }
}

class UpdateAlwaysSaysYes extends PlainStore {
  override async update(row: StoredRow, expectedVersion: number): Promise<boolean> {
    await super.update(row, expectedVersion)
    return true
  }
}

class WritesLate extends PlainStore {
  protected override put(row: StoredRow): void {
    const copy = { ...row }
    queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => super.put(copy))))
  }
}

/** Answers some reads, never two in a row, with what it knew before the last write of the row. */
class ReadsLag extends PlainStore {
  readonly #before = new Map<string, StoredRow>()
  #reads = 0
  protected override put(row: StoredRow): void {
    const current = this.find(row.scope, row.id)
    if (current !== undefined) this.#before.set(this.name(row.scope, row.id), current)
    super.put(row)
  }
  override async get(scope: string, id: string): Promise<StoredRow | undefined> {
    const before = this.#before.get(this.name(scope, id))
    return ++this.#reads % 50 === 0 && before !== undefined ? { ...before } : super.get(scope, id)
  }
}

class SharesWhatIsHandedIn extends PlainStore {
  protected override put(row: StoredRow): void {
    this.rows.set(this.name(row.scope, row.id), row)
  }
}

class SharesWhatIsHandedOut extends PlainStore {
  override async get(scope: string, id: string): Promise<StoredRow | undefined> {
    return this.find(scope, id)
  }
}

class ListOpenByOffset extends PlainStore {
  override async listOpen(scope: string, options: ListRowsOptions): Promise<RowPage> {
    const open = [...this.rows.values()].filter((row) => row.scope === scope && row.open)
    return pageByOffset(open, options)
  }
}

class ListOpenByTime extends PlainStore {
  override async listOpen(scope: string, { after, limit }: ListRowsOptions): Promise<RowPage> {
    const key = (row: StoredRow): string => `${row.updatedAt} ${row.id}`
    const rest = [...this.rows.values()]
      .filter((row) => row.scope === scope && row.open && key(row) > (after ?? ''))
      .sort((one, other) => (key(one) < key(other) ? -1 : 1))
    const rows = rest.slice(0, limit)
    const last = rows.at(-1)
    return rest.length <= limit || last === undefined ? { rows } : { rows, next: key(last) }
  }
}

class ListOpenForgetsReopened extends PlainStore {
  readonly #everClosed = new Set<string>()
  protected override put(row: StoredRow): void {
    if (!row.open) this.#everClosed.add(row.id)
    super.put(row)
  }
  override async listOpen(scope: string, options: ListRowsOptions): Promise<RowPage> {
    return this.page(scope, options, (row) => row.open && !this.#everClosed.has(row.id))
  }
}

class ListOpenGoesByState extends PlainStore {
  override async listOpen(scope: string, options: ListRowsOptions): Promise<RowPage> {
    return this.page(scope, options, (row) => row.state === 'open')
  }
}

class ListOpenIgnoresTheLimit extends PlainStore {
  override async listOpen(scope: string): Promise<RowPage> {
    return super.listOpen(scope, { limit: 1_000 })
  }
}

class ListOpenNeverEnds extends PlainStore {
  override async listOpen(scope: string, options: ListRowsOptions): Promise<RowPage> {
    return { next: '', ...(await super.listOpen(scope, options)) }
  }
}

class ListOpenKeepsItsOwnCursor extends PlainStore {
  #last = ''
  override async listOpen(scope: string, options: ListRowsOptions): Promise<RowPage> {
    const page = await super.listOpen(scope, {
      ...options,
      after: options.after === undefined ? '' : this.#last,
    })
    this.#last = page.next ?? ''
    return page
  }
}

class ListIgnoresSince extends PlainStore {
  override async list(scope: string, options: ListRowsOptions): Promise<RowPage> {
    return super.list(scope, { ...options, since: 0 })
  }
}

class ListLeavesOutSinceItself extends PlainStore {
  override async list(
    scope: string,
    options: ListRowsOptions & { readonly since?: number },
  ): Promise<RowPage> {
    return super.list(scope, { ...options, since: (options.since ?? -1) + 1 })
  }
}

class ListSkipsByTextCursor extends PlainStore {
  override async list(
    scope: string,
    { after = '', limit, since = 0 }: ListRowsOptions & { readonly since?: number },
  ): Promise<RowPage> {
    const cursor = (row: StoredRow): string => `${row.updatedAt} ${row.id}`
    const rest = [...this.rows.values()]
      .filter((row) => row.scope === scope && row.updatedAt >= since && cursor(row) > after)
      .sort((one, other) => one.updatedAt - other.updatedAt || (one.id < other.id ? -1 : 1))
    const rows = rest.slice(0, limit)
    const last = rows.at(-1)
    return rest.length <= limit || last === undefined ? { rows } : { rows, next: cursor(last) }
  }
}

class ListComparesTimesAsTexts extends PlainStore {
  override async list(
    scope: string,
    options: ListRowsOptions & { readonly since?: number },
  ): Promise<RowPage> {
    return this.page(scope, options, (row) => String(row.updatedAt) >= String(options.since ?? 0))
  }
}

class PruneComparesTimesAsTexts extends PlainStore {
  override async prune(scope: string, options: PruneOptions): Promise<number> {
    return this.remove(
      (row) =>
        row.scope === scope && !row.open && String(row.updatedAt) < String(this.limitFor(row, options)),
    )
  }
}

class ListByOffset extends PlainStore {
  override async list(
    scope: string,
    options: ListRowsOptions & { readonly since?: number },
  ): Promise<RowPage> {
    const rows = [...this.rows.values()].filter(
      (row) => row.scope === scope && row.updatedAt >= (options.since ?? 0),
    )
    return pageByOffset(rows, options)
  }
}

class ListLeavesOutClosed extends PlainStore {
  override async list(scope: string, options: ListRowsOptions): Promise<RowPage> {
    return super.listOpen(scope, options)
  }
}

class PruneRemovesOpen extends PlainStore {
  override async prune(scope: string, options: PruneOptions): Promise<number> {
    return this.remove((row) => row.scope === scope && row.updatedAt < this.limitFor(row, options))
  }
}

class PruneGoesByState extends PlainStore {
  override async prune(scope: string, options: PruneOptions): Promise<number> {
    return this.remove(
      (row) => row.scope === scope && row.state !== 'open' && row.updatedAt < this.limitFor(row, options),
    )
  }
}

class PruneKnowsOneTime extends PlainStore {
  protected override limitFor(_row: StoredRow, options: PruneOptions): number {
    return options.createdBefore
  }
}

class PruneIncludesTheTime extends PlainStore {
  protected override limitFor(row: StoredRow, options: PruneOptions): number {
    return super.limitFor(row, options) + 1
  }
}

class PruneGoesByCreation extends PlainStore {
  override async prune(scope: string, options: PruneOptions): Promise<number> {
    return this.remove(
      (row) => row.scope === scope && !row.open && row.createdAt < this.limitFor(row, options),
    )
  }
}

class PruneLeavesItsScope extends PlainStore {
  override async prune(_scope: string, options: PruneOptions): Promise<number> {
    return this.remove((row) => !row.open && row.updatedAt < this.limitFor(row, options))
  }
}

class PruneCountsWhatIsLeft extends PlainStore {
  override async prune(scope: string, options: PruneOptions): Promise<number> {
    await super.prune(scope, options)
    return this.rows.size
  }
}

class PruneLooksBeforeItLeaps extends PlainStore {
  override async prune(scope: string, options: PruneOptions): Promise<number> {
    const old = [...this.rows.values()].filter(
      (row) => row.scope === scope && !row.open && row.updatedAt < this.limitFor(row, options),
    )
    await undefined
    return this.remove((row) => old.some(({ id }) => id === row.id))
  }
}

/** Remembers what it inserted, and forgets that when it prunes for good: the next two inserts both win. */
class InsertOverwritesWhatWasPruned extends PlainStore {
  readonly #pruned = new Set<string>()
  override async insert(row: StoredRow): Promise<InsertResult> {
    if (!this.#pruned.has(this.name(row.scope, row.id))) return super.insert(row)
    this.put(row)
    return { inserted: true }
  }
  override async prune(scope: string, options: PruneOptions): Promise<number> {
    const before = [...this.rows.keys()]
    const removed = await super.prune(scope, options)
    for (const name of before) if (!this.rows.has(name)) this.#pruned.add(name)
    return removed
  }
}

/** As a database with a limit of its own, whose caller goes on after the rows that it asked for. */
class ListOpenSkipsBeyondItsCap extends PlainStore {
  override async listOpen(scope: string, options: ListRowsOptions): Promise<RowPage> {
    const page = await super.listOpen(scope, options)
    return { ...page, rows: page.rows.slice(0, 50) }
  }
}

/** Ends a page after so many bytes, and says that it was the last. */
class ListOpenEndsAtAMegabyte extends PlainStore {
  override async listOpen(scope: string, options: ListRowsOptions): Promise<RowPage> {
    const { rows } = await super.listOpen(scope, options)
    let [bytes, count] = [0, 0]
    while (count < rows.length && bytes < 1_000_000) bytes += rows[count++]?.data.length ?? 0
    if (count === rows.length) return super.listOpen(scope, options)
    return { rows: rows.slice(0, count) }
  }
}

/** The same for `list`. */
class ListSkipsBeyondItsCap extends PlainStore {
  override async list(scope: string, options: ListRowsOptions): Promise<RowPage> {
    const page = await super.list(scope, options)
    return { ...page, rows: page.rows.slice(0, 50) }
  }
}

/** As a column with a collation that takes upper and lower case for the same, such as SQL Server's default. */
class IdsIgnoreCase extends PlainStore {
  protected override name(scope: string, id: string): string {
    return super.name(scope, id.toLowerCase())
  }
}

/** As a column of fixed width, or MySQL's comparison with padding. */
class IdsIgnoreTrailingBlanks extends PlainStore {
  protected override name(scope: string, id: string): string {
    return super.name(scope, id.trimEnd())
  }
}

class IdsIgnoreAccents extends PlainStore {
  protected override name(scope: string, id: string): string {
    return super.name(scope, id.normalize('NFD').replace(/\p{Mark}/gu, ''))
  }
}

/** Finds rows by the exact id, and pages by one in lower case. */
class CursorsIgnoreCase extends PlainStore {
  protected override page(
    scope: string,
    { after = '', limit }: ListRowsOptions,
    wanted: (row: StoredRow) => boolean,
  ): RowPage {
    const key = ({ id }: StoredRow): string => id.toLowerCase()
    const rest = [...this.rows.values()]
      .filter((row) => row.scope === scope && key(row) > after && wanted(row))
      .sort((one, other) => (key(one) < key(other) ? -1 : 1))
    const rows = rest.slice(0, limit)
    const last = rows.at(-1)
    return rest.length <= limit || last === undefined ? { rows } : { rows, next: key(last) }
  }
}

class ScopesIgnoreTrailingBlanks extends PlainStore {
  protected override name(scope: string, id: string): string {
    return super.name(scope.trimEnd(), id)
  }
}

class PruneIgnoresTheCaseOfScopes extends PlainStore {
  override async prune(scope: string, options: PruneOptions): Promise<number> {
    return this.remove(
      (row) =>
        row.scope.toLowerCase() === scope.toLowerCase() &&
        !row.open &&
        row.updatedAt < this.limitFor(row, options),
    )
  }
}

class ListIgnoresTrailingBlanksOfScopes extends PlainStore {
  override async list(scope: string, options: ListRowsOptions): Promise<RowPage> {
    const rows = [...this.rows.values()].filter((row) => row.scope.trimEnd() === scope.trimEnd())
    return pageByOffset(rows, options)
  }
}

class ScopesIgnoreCase extends PlainStore {
  protected override name(scope: string, id: string): string {
    return super.name(scope.toLowerCase(), id)
  }
}

class ScopesEndAtNul extends PlainStore {
  protected override name(scope: string, id: string): string {
    return super.name(scope.split('\0', 1)[0] ?? '', id)
  }
}

class StoresUtf8 extends PlainStore {
  protected override put(row: StoredRow): void {
    super.put({ ...row, data: new TextDecoder().decode(new TextEncoder().encode(row.data)) })
  }
}

class ScopesAreUtf8 extends PlainStore {
  protected override name(scope: string, id: string): string {
    return super.name(new TextDecoder().decode(new TextEncoder().encode(scope)), id)
  }
}

class ParsesData extends PlainStore {
  protected override put(row: StoredRow): void {
    let { data } = row
    try {
      data = JSON.stringify(JSON.parse(data))
    } catch {
      // Not JSON: kept as it is.
    }
    super.put({ ...row, data })
  }
}

class CutsData extends PlainStore {
  protected override put(row: StoredRow): void {
    super.put({ ...row, data: row.data.slice(0, 65_535) })
  }
}

class RoundsNumbers extends PlainStore {
  protected override put(row: StoredRow): void {
    super.put({ ...row, version: Math.fround(row.version) })
  }
}

class ClaimsTheDevice extends PlainStore {
  override readonly durability: StoreDurability = 'device'
}

class CannotCloseTwice extends PlainStore {
  #closed = false
  override async close(): Promise<void> {
    if (this.#closed) throw new Error('closed already')
    this.#closed = true
  }
}

/** Each breaks one rule; the title is that of a test that must notice. */
const BROKEN: readonly (readonly [store: new () => OrderStore, title: string])[] = [
  [InsertOverwrites, 'insert leaves an existing row as it is and returns it'],
  [InsertOverwritesButTells, 'insert leaves an existing row as it is and returns it'],
  [InsertReturnsTheLosersRow, 'of racing inserts exactly one wins, and the losers get its row'],
  [InsertReturnsTheFirstRow, 'insert leaves an existing row as it is and returns it'],
  [InsertLooksBeforeItLeaps, 'of racing inserts exactly one wins, and the losers get its row'],
  [InsertLooksBeforeItLeaps, 'concurrent histories are linearizable for every row'],
  [UpdateLooksBeforeItLeaps, 'of racing updates of one version exactly one wins'],
  [UpdateLooksBeforeItLeaps, 'clients that read and update until they succeed lose no update'],
  [UpdateLooksBeforeItLeaps, 'concurrent histories are linearizable for every row'],
  [UpdateIgnoresTheVersion, 'update changes nothing and returns false for any other version'],
  [UpdateTakesOlderVersionsToo, 'update changes nothing and returns false for any other version'],
  [UpdateCreates, 'update of a missing row returns false and creates nothing'],
  [UpdateKeepsTheCreationTime, 'update replaces every field but scope and id, and no other row'],
  [UpdateAlwaysSaysYes, 'the version handed in is the one stored, and the only one to expect next'],
  [WritesLate, 'concurrent histories are linearizable for every row'],
  [ReadsLag, 'concurrent histories are linearizable for every row'],
  [SharesWhatIsHandedIn, 'changing a row after it was handed in does not change the stored one'],
  [SharesWhatIsHandedOut, 'changing a row that was handed out does not change the stored one'],
  [ListOpenByOffset, 'listOpen never omits a row that stays open while others change between pages'],
  [ListOpenByOffset, 'listOpen reaches every row when each is closed once it was seen, as recovery does'],
  [ListOpenByTime, 'listOpen never omits a row that stays open while others change between pages'],
  [ListOpenForgetsReopened, 'listOpen follows rows that are closed and opened again'],
  [ListOpenGoesByState, 'listOpen returns the open rows of its scope, each once, whatever the limit'],
  [ListOpenIgnoresTheLimit, 'listOpen returns the open rows of its scope, each once, whatever the limit'],
  [ListOpenNeverEnds, 'listOpen and list of an empty scope are one empty page'],
  [ListOpenKeepsItsOwnCursor, 'pages do not depend on who else is reading'],
  [ListIgnoresSince, 'list with since returns the rows written at that time or later'],
  [ListLeavesOutSinceItself, 'list with since returns the rows written at that time or later'],
  [ListSkipsByTextCursor, 'list and prune take times as numbers, however many digits they have'],
  [ListComparesTimesAsTexts, 'list and prune take times as numbers, however many digits they have'],
  [PruneComparesTimesAsTexts, 'list and prune take times as numbers, however many digits they have'],
  [ListByOffset, 'list never omits a row that stays as it is while others change between pages'],
  [ListLeavesOutClosed, 'list returns all rows of its scope, open and closed, each once, whatever the limit'],
  [PruneRemovesOpen, 'prune never removes an open row, whatever its state and age'],
  [PruneGoesByState, 'prune never removes an open row, whatever its state and age'],
  [PruneKnowsOneTime, 'prune keeps the times of the two states apart'],
  [PruneIncludesTheTime, 'prune removes closed rows last written before the time given for their state'],
  [PruneGoesByCreation, 'prune goes by the last write of a row'],
  [PruneLeavesItsScope, 'prune stays in its scope'],
  [PruneCountsWhatIsLeft, 'prune returns how many rows it removed, and none the second time'],
  [PruneLooksBeforeItLeaps, 'of a racing prune and update exactly one gets the row'],
  [
    InsertOverwritesWhatWasPruned,
    'a row that was pruned and inserted anew is not overwritten by another insert',
  ],
  [
    ListOpenSkipsBeyondItsCap,
    'listOpen and list reach every one of many rows, small and large, with the limit that the client uses',
  ],
  [
    ListOpenEndsAtAMegabyte,
    'listOpen and list reach every one of many rows, small and large, with the limit that the client uses',
  ],
  [
    ListSkipsBeyondItsCap,
    'listOpen and list reach every one of many rows, small and large, with the limit that the client uses',
  ],
  [IdsIgnoreCase, 'ids are compared exactly: upper and lower case, blanks and accents make another row'],
  [
    IdsIgnoreTrailingBlanks,
    'ids are compared exactly: upper and lower case, blanks and accents make another row',
  ],
  [IdsIgnoreAccents, 'ids are compared exactly: upper and lower case, blanks and accents make another row'],
  [CursorsIgnoreCase, 'ids are compared exactly: upper and lower case, blanks and accents make another row'],
  [ScopesIgnoreTrailingBlanks, 'scopes never see or change each other, however alike their names are'],
  [PruneIgnoresTheCaseOfScopes, 'list and prune keep to their scope, however alike the names of others are'],
  [
    ListIgnoresTrailingBlanksOfScopes,
    'list and prune keep to their scope, however alike the names of others are',
  ],
  [ScopesIgnoreCase, 'scopes never see or change each other, however alike their names are'],
  [ScopesEndAtNul, 'scopes never see or change each other, however alike their names are'],
  [StoresUtf8, 'text with half of a surrogate pair comes back exactly or is refused, never altered'],
  [ScopesAreUtf8, 'text with half of a surrogate pair comes back exactly or is refused, never altered'],
  [ParsesData, 'data comes back exactly as it was written, whatever it looks like'],
  [CutsData, 'data of every Unicode character, more than 4 MB, comes back exactly'],
  [RoundsNumbers, 'numbers come back exactly, up to the largest safe integer'],
  [ClaimsTheDevice, 'a store that is not opened again by the suite claims no more than memory'],
  [CannotCloseTwice, 'close can be called again'],
]

describe('the store contract', () => {
  it('is kept by the store that the broken ones derive from', async () => {
    expect(await failuresOf({ createStore: () => new PlainStore() })).toEqual(new Map())
  })

  it.each(BROKEN.map(([store, title]) => ({ name: store.name, store, title })))(
    'catches $name: $title',
    async ({ store: Store, title }) => {
      const failures = await failuresOf({ createStore: () => new Store() }, title)
      expect([...failures.keys()]).toEqual([title])
    },
  )

  it('catches a second handle that reads from a copy', async () => {
    class Cached extends PlainStore {
      readonly #origin: OrderStore | undefined
      readonly #cache = new Map<string, StoredRow>()
      constructor(origin?: OrderStore) {
        super()
        this.#origin = origin
      }
      override async get(scope: string, id: string): Promise<StoredRow | undefined> {
        if (this.#origin === undefined) return super.get(scope, id)
        const name = this.name(scope, id)
        const row = this.#cache.get(name) ?? (await this.#origin.get(scope, id))
        if (row !== undefined) this.#cache.set(name, row)
        return row
      }
      override insert(row: StoredRow): Promise<InsertResult> {
        return this.#origin?.insert(row) ?? super.insert(row)
      }
      override update(row: StoredRow, expectedVersion: number): Promise<boolean> {
        return this.#origin?.update(row, expectedVersion) ?? super.update(row, expectedVersion)
      }
    }
    const failures = await failuresOf({
      createStore: () => new Cached(),
      openSecond: (store) => new Cached(store),
    })
    expect([...failures.keys()]).toEqual([
      'a resolved write is seen by the next read through another handle',
      'clients of two handles that read and update until they succeed lose no update',
      'concurrent histories through two handles are linearizable for every row',
    ])
  })

  it('catches a store whose rows are gone after opening again', async () => {
    const failures = await failuresOf({
      createStore: () => new ClaimsTheDevice(),
      reopenStore: () => new ClaimsTheDevice(),
    })
    expect([...failures.keys()]).toEqual(['what was written is there after closing and opening again'])
  })

  it('tells what a racing writer saw, and the seed to see it again', async () => {
    const failures = await failuresOf({ createStore: () => new UpdateLooksBeforeItLeaps(), seed: 7 })
    const message = failures.get('concurrent histories are linearizable for every row')
    expect(message).toContain('with seed 7: no order of the calls on row')
    expect(message).toMatch(
      /client \d: update from version \d+ to version \d+, "written by \d in call \d+" returned true/,
    )
  })

  it('fails a store whose calls are rejected, with the reason', async () => {
    class Rejects extends PlainStore {
      override async update(): Promise<boolean> {
        throw new Error('the disk is on fire')
      }
    }
    const failures = await failuresOf({ createStore: () => new Rejects() })
    expect(failures.get('update replaces the row that has the expected version')).toBe('the disk is on fire')
    expect(failures.get('concurrent histories are linearizable for every row')).toMatch(
      /calls were rejected, the first with: Error: the disk is on fire/,
    )
  })

  it('shows the failure of a test and not that of cleaning up after it', async () => {
    class FailsTwice extends PlainStore {
      override async get(): Promise<StoredRow | undefined> {
        await nextTurn()
        throw new Error('cannot read')
      }
      override async close(): Promise<void> {
        throw new Error('cannot close')
      }
    }
    const failures = await failuresOf({
      createStore: () => new FailsTwice(),
      history: { clients: 1, operations: 1 },
    })
    expect(failures.get('get returns undefined for a row that nobody wrote')).toBe('cannot read')
    expect(failures.get('durability is memory, device or server')).toBe('cannot close')
  })

  it('closes every handle and then removes the store, also after a failure', async () => {
    const events: string[] = []
    class Watched extends InsertOverwrites {
      readonly #name: string
      constructor(name: string) {
        super()
        this.#name = name
      }
      override async close(): Promise<void> {
        events.push(`close ${this.#name}`)
      }
    }
    const failures = await failuresOf(
      {
        createStore: () => new Watched('first'),
        openSecond: () => new Watched('second'),
        removeStore: () => events.push('remove'),
      },
      'of racing inserts through two handles exactly one wins, and the losers get its row',
    )
    expect(failures.size).toBe(1)
    expect(events).toEqual(['close first', 'close second', 'remove'])
  })
})
