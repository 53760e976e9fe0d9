import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { explainHistory, recordHistory } from 'customer-ordering-sdk/stores/contract'
import { PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { OrderStore } from '../../../src/idempotency/store.ts'
import { describeWith, HOOK_TIMEOUT, PostgresServer } from '../support/postgres.ts'
import { execute, makePool } from '../support/postgres-clients.ts'

const PROCESSES = 4
const ROWS = 200
const ROUND = 10
/** A process is killed in every second round. */
const KILLS = ROWS / ROUND / 2

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds))

/** A racing process, as its parent sees it. */
interface Racer {
  readonly name: string
  readonly child: ChildProcess
  /** Resolves when it has nothing to do, or is gone. */
  idle: Promise<void>
}

describeWith('server', 'PostgresStore and a fleet of processes', () => {
  let server: PostgresServer | undefined
  const racers = new Set<Racer>()

  beforeAll(async () => {
    server = await PostgresServer.start()
  }, HOOK_TIMEOUT)
  afterAll(() => server?.stop(), HOOK_TIMEOUT)
  afterEach(() => {
    for (const { child } of racers) child.kill('SIGKILL')
  })

  it.each(['restart', 'crash'] as const)(
    'that race for 200 rows, are killed, and live through a %s of the server: each row has one winner',
    async (disaster) => {
      if (server === undefined) throw new Error('not started')
      const database = `fleet_${disaster}`
      const url = server.urlFor({ database })
      await execute(server.url, `CREATE DATABASE ${database}`)
      /** By race: the names of those who said that they won it. */
      const winners = new Map<string, string[]>()
      /** Processes that ended by themselves. */
      const deaths: string[] = []
      let launched = 0

      const launch = (): void => {
        const name = `process-${++launched}`
        const script = fileURLToPath(new URL('processes/race.ts', import.meta.url))
        const child = fork(script, [url, name], { execArgv: [] })
        const racer: Racer = { name, child, idle: untilIdle(child) }
        racers.add(racer)
        child.setMaxListeners(0)
        child.on('exit', (code, signal) => {
          racers.delete(racer)
          if (signal !== 'SIGKILL' && code !== 0) deaths.push(`${name} ended with ${signal ?? code}`)
        })
        child.on('message', (message: 'done' | { readonly race: string }) => {
          if (message === 'done') return
          winners.set(message.race, [...(winners.get(message.race) ?? []), name])
        })
      }
      const allIdle = () => Promise.all([...racers].map(({ idle }) => idle))

      for (let count = 0; count < PROCESSES; count++) launch()
      for (let first = 0; first < ROWS; first += ROUND) {
        await allIdle()
        const round = first / ROUND
        // Who hears first has the best chance, so it is somebody else in every round.
        const order = [...racers].sort((one, other) => hash(one.name, round) - hash(other.name, round))
        for (const racer of order) {
          racer.idle = untilIdle(racer.child)
          racer.child.send(Array.from({ length: ROUND }, (_, index) => first + index))
        }
        if (round % 2 === 0) {
          await pause(Math.random() * 12)
          order[round % order.length]?.child.kill('SIGKILL')
          launch()
        }
        if (round === ROWS / ROUND / 2 - 1) await server[disaster]()
      }
      await allIdle()
      for (const racer of racers) {
        racer.idle = untilIdle(racer.child)
        racer.child.send([])
      }
      await allIdle()

      expect(deaths).toEqual([])
      expect(launched).toBe(PROCESSES + KILLS)
      const rows = await execute(
        url,
        'SELECT version::int AS version, data FROM customer_ordering_rows ORDER BY created_at',
      )
      expect(rows.map(({ version }) => version)).toEqual(Array.from({ length: ROWS }, () => 2))
      // Who says that it won is whom the row names. Only who was killed in between could not say so any more.
      let unsaid = 0
      for (const [number, { data }] of rows.entries()) {
        const [inserter = '', updater = ''] = String(data).split(' ')
        const said = [winners.get(`insert ${number}`) ?? [], winners.get(`update ${number}`) ?? []]
        expect(said[0]).toEqual(said[0]?.length === 0 ? [] : [inserter])
        expect(said[1]).toEqual(said[1]?.length === 0 ? [] : [updater])
        unsaid += said.filter(({ length }) => length === 0).length
      }
      expect(unsaid).toBeLessThanOrEqual(KILLS * ROUND * 2)
      const different = new Set([...winners.values()].flat())
      expect(different.size).toBeGreaterThan(PROCESSES / 2)
    },
  )

  it.each(['restart', 'crash'] as const)(
    'that read and write through a %s of the server: an order of all calls explains what each saw',
    async (disaster) => {
      if (server === undefined) throw new Error('not started')
      const database = `history_${disaster}`
      const url = server.urlFor({ database })
      await execute(server.url, `CREATE DATABASE ${database}`)
      const pools = [makePool(url), makePool(url)]
      const stores = pools.map((client) => patient(new PostgresStore({ client })))
      await stores[0]?.get('scope', 'id')
      const recording = recordHistory(stores, { seed: 7, operations: 600 })
      const disasters = (async () => {
        for (let count = 0; count < 2; count++) {
          await pause(100)
          await server?.[disaster]()
        }
      })()
      const { calls, failures } = await recording
      await disasters
      expect(failures.length).toBeGreaterThan(0)
      expect(calls.filter((call) => 'updated' in call && call.updated === true).length).toBeGreaterThan(50)
      expect(explainHistory(calls)).toBeUndefined()
      for (const pool of pools) await pool.end()
    },
  )
})

/** Resolves at the next "done" of a process, or when it is gone. */
function untilIdle(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    const listen = (message: unknown): void => {
      if (message !== 'done') return
      child.off('message', listen)
      resolve()
    }
    child.on('message', listen)
    child.once('exit', () => resolve())
  })
}

/** Some order of names that is another one in every round. */
function hash(name: string, round: number): number {
  return [...`${round} ${name}`].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 9_973, 7)
}

/**
 * The store, but a call that fails is over only when the server is back. Else the clients would fail all their calls
 * meanwhile, and each of those may or may not have been applied: too many possibilities to go through.
 */
function patient(store: OrderStore): OrderStore {
  const slowly = async <T>(call: Promise<T>): Promise<T> => {
    try {
      return await call
    } catch (error) {
      for (let back = false; !back; ) {
        await pause(10)
        back = await store.get('scope', 'id').then(
          () => true,
          () => false,
        )
      }
      throw error
    }
  }
  return {
    durability: store.durability,
    get: (scope, id) => slowly(store.get(scope, id)),
    insert: (row) => slowly(store.insert(row)),
    update: (row, expectedVersion) => slowly(store.update(row, expectedVersion)),
    listOpen: (scope, options) => slowly(store.listOpen(scope, options)),
    list: (scope, options) => slowly(store.list(scope, options)),
    prune: (scope, options) => slowly(store.prune(scope, options)),
    close: () => store.close(),
  }
}
