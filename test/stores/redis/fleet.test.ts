import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { RedisStore } from 'customer-ordering-sdk/stores/redis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { EVERYTHING, makeRow, SCOPE, walk } from '../../../src/stores/contract/rows.ts'
import { describeWith, RedisServers } from '../support/redis.ts'
import { connect } from '../support/redis-clients.ts'

const PROCESSES = 4
const ROWS = 200
const ROUND = 10
/** A process is killed in every second round. */
const KILLS = ROWS / ROUND / 2

/** A racing process, as its parent sees it. */
interface Racer {
  readonly name: string
  readonly child: ChildProcess
  /** Resolves when it has nothing to do, or is gone. */
  idle: Promise<void>
}

describeWith('server', 'RedisStore and a fleet of processes', () => {
  describe.each(['single', 'cluster'] as const)('that share a %s of Redis', (kind) => {
    let servers: RedisServers | undefined
    const racers = new Set<Racer>()

    beforeAll(async () => {
      servers = await RedisServers.start(kind, '--appendfsync', 'always')
    })
    afterAll(() => servers?.stop())
    afterEach(() => {
      for (const { child } of racers) child.kill('SIGKILL')
    })

    it('race for 200 rows, are killed, and live through the crash of the servers: each row has one winner', async () => {
      if (servers === undefined) throw new Error('not started')
      const prefix = 'fleet:'
      const script = fileURLToPath(new URL('processes/race.ts', import.meta.url))
      /** By race: the names of those who said that they won it. */
      const winners = new Map<string, string[]>()
      /** Ends that nobody asked for. */
      const deaths: unknown[] = []
      let launched = 0

      const launch = (): void => {
        const name = `process-${++launched}`
        const child = fork(script, [(servers?.ports ?? []).join(), prefix, name], { execArgv: [] })
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

      for (let count = 0; count < PROCESSES; count++) launch()
      for (let round = 0; round < ROWS / ROUND; round++) {
        await allIdle()
        // Who hears first has the best chance, so it is somebody else in every round.
        const all = [...racers]
        const order = [...all.slice(round % PROCESSES), ...all.slice(0, round % PROCESSES)]
        for (const racer of order)
          give(
            racer,
            Array.from({ length: ROUND }, (_, index) => round * ROUND + index),
          )
        if (round % 2 === 0) {
          await new Promise((resolve) => setTimeout(resolve, Math.random() * 10))
          order[(round / 2) % PROCESSES]?.child.kill('SIGKILL')
          launch()
        }
        if (round === ROWS / ROUND / 2 - 1) await servers.crash()
      }
      await allIdle()
      for (const racer of racers) give(racer, [])
      await allIdle()

      expect(deaths).toEqual([])
      expect(launched).toBe(PROCESSES + KILLS)
      const connection = await connect('ioredis', servers.ports)
      try {
        const store = new RedisStore({ client: connection.client, prefix })
        expect(await walk((options) => store.list(SCOPE, options), 50)).toHaveLength(ROWS)
        expect(await walk((options) => store.listOpen(SCOPE, options), 50)).toEqual([])
        // Who says that it won is whom the row names. Only who was killed in between could not say so any more.
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
      } finally {
        connection.close()
      }
    })
  })
})

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
