/** A fleet of processes that race for rows of one store, and are killed while they do. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { EVERYTHING, makeRow, SCOPE, walk } from '../../../src/stores/contract/rows.ts'
import type { OrderStore } from '../../../src/stores/store.ts'

const PROCESSES = 4
const ROWS = 200
const ROUND = 10
const ROUNDS = ROWS / ROUND
/** A process is killed in every second round. */
const KILLS = ROUNDS / 2

/** A racing process, as its parent sees it. */
interface Racer {
  readonly name: string
  readonly child: ChildProcess
  /** Resolves when it has nothing to do, or is gone. */
  idle: Promise<void>
}

/** What the processes said. */
export interface Race {
  /** By race: the names of those who said that they won it. */
  readonly winners: ReadonlyMap<string, readonly string[]>
}

/**
 * Lets processes race for 200 rows: who inserts each, and who replaces its first version. Half way through, something
 * happens to the server.
 *
 * @param place what the processes open, see race-engine.ts
 */
export async function race(place: readonly string[], disaster: () => Promise<void>): Promise<Race> {
  const script = fileURLToPath(new URL('../processes/race-engine.ts', import.meta.url))
  const winners = new Map<string, string[]>()
  const racers = new Set<Racer>()
  /** Ends that nobody asked for. */
  const deaths: unknown[] = []
  let launched = 0

  const launch = (): void => {
    const name = `process-${++launched}`
    const child = fork(script, [name, ...place], { execArgv: [] })
    const racer: Racer = { name, child, idle: untilIdle(child) }
    racers.add(racer)
    child.on('exit', (code, signal) => {
      racers.delete(racer)
      if (signal !== 'SIGKILL' && code !== 0) deaths.push([name, code, signal])
    })
    child.on('message', (message: 'done' | { readonly race: string }) => {
      if (message === 'done') return
      winners.set(message.race, [...(winners.get(message.race) ?? []), name])
    })
  }
  const allIdle = () => Promise.all([...racers].map(({ idle }) => idle))
  const give = (racer: Racer, numbers: readonly number[]): void => {
    racer.idle = untilIdle(racer.child)
    racer.child.send(numbers)
  }

  try {
    for (let count = 0; count < PROCESSES; count++) launch()
    for (let round = 0; round < ROUNDS; round++) {
      await allIdle()
      // Who hears first has the best chance, so it is somebody else in every round.
      const all = [...racers]
      const order = [...all.slice(round % PROCESSES), ...all.slice(0, round % PROCESSES)]
      const numbers = Array.from({ length: ROUND }, (_, index) => round * ROUND + index)
      for (const racer of order) give(racer, numbers)
      if (round % 2 === 0) {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 12))
        order[(round / 2) % PROCESSES]?.child.kill('SIGKILL')
        launch()
      }
      if (round === ROUNDS / 2 - 1) await disaster()
    }
    await allIdle()
    for (const racer of racers) give(racer, [])
    await allIdle()
  } finally {
    for (const { child } of racers) child.kill('SIGKILL')
  }
  expect(deaths).toEqual([])
  expect(launched).toBe(PROCESSES + KILLS)
  return { winners }
}

/** Each row has the one winner that it names of each of its races. */
export async function expectOneWinner({ winners }: Race, store: OrderStore): Promise<void> {
  expect(await walk((options) => store.list(SCOPE, options), 50)).toHaveLength(ROWS)
  expect(await walk((options) => store.listOpen(SCOPE, options), 50)).toEqual([])
  // Only who was killed in between could not say any more that it won.
  let unsaid = 0
  for (let number = 0; number < ROWS; number++) {
    const row = await store.get(SCOPE, makeRow(number).id)
    expect(row?.version).toBe(2)
    const named = row?.data.split(' ') ?? []
    for (const [index, race] of ['insert', 'update'].entries()) {
      const said = winners.get(`${race} ${number}`) ?? []
      if (said.length === 0) unsaid++
      else expect(said).toEqual([named[index]])
    }
  }
  expect(unsaid).toBeLessThanOrEqual(KILLS * ROUND * 2)
  expect(new Set([...winners.values()].flat()).size).toBeGreaterThan(PROCESSES / 2)
  expect(await store.prune(SCOPE, EVERYTHING)).toBe(ROWS)
}

/** Resolves at the next "done" of a process, or when it is gone. */
function untilIdle(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      child.off('message', listen)
      child.off('exit', settle)
      resolve()
    }
    const listen = (message: unknown): void => {
      if (message === 'done') settle()
    }
    child.on('message', listen)
    child.on('exit', settle)
  })
}
