/** The processes of a round: how they are started and killed, and what remains of them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { walk } from '../../../src/stores/contract/rows.ts'
import type { StoredRow } from '../../../src/stores/store.ts'
import { type FleetEvent, machineTime, type Task } from './events.ts'
import type { Life } from './history.ts'
import { openStore, type StoreAddress } from './open-store.ts'

export interface Member {
  readonly task: Task
  readonly child: ChildProcess
  readonly stops: { readonly from: number; to: number }[]
  readonly ended: Promise<void>
  endedAt?: number
  killed: boolean
  failure?: string
}

export function start(program: string, task: Task): Member {
  closeSync(openSync(task.log, 'a'))
  const child = spawn(process.execPath, [program, JSON.stringify(task)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  child.stderr?.on('data', (chunk) => {
    output += String(chunk)
  })
  const member: Member = {
    task,
    child,
    stops: [],
    killed: false,
    ended: new Promise((resolve) => {
      child.once('close', (code, signal) => {
        member.endedAt = machineTime()
        if (code !== 0 && !member.killed) member.failure = output || `it ended with ${signal ?? code}`
        resolve()
      })
    }),
  }
  return member
}

export function end(member: Member): void {
  member.killed = true
  member.child.kill('SIGKILL')
}

export function lifeOf({ task, stops, killed, endedAt = machineTime() }: Member): Life {
  const { name, log } = task
  // The last line may be incomplete.
  const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : []
  return {
    name,
    limits: task,
    stops: stops.map(({ from, to }) => ({ from, to: Math.min(to, endedAt) })),
    killed,
    endedAt,
    events: lines.map((line) => JSON.parse(line) as FleetEvent),
  }
}

export async function allRows(address: StoreAddress, members: readonly Member[]): Promise<StoredRow[]> {
  const { store, close } = await openStore(address)
  try {
    const scopes = new Set<string>()
    for (const { events } of members.map(lifeOf))
      for (const event of events) if (event.event === 'writing') scopes.add(event.row.scope)
    const rows: StoredRow[] = []
    for (const scope of scopes) rows.push(...(await walk((options) => store.list(scope, options), 100)))
    return rows
  } finally {
    await store.close()
    await close()
  }
}
