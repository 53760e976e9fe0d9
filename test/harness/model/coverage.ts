/** Shows which entries of the rules are used, and which check detects each changed entry. */

import { wrongLine } from '../../unit/orders/rule-lines.ts'
import { type Command, type Phase, RULES } from './core.ts'
import type { Found } from './search.ts'

/** An entry of a cell: a step with a condition, or the last step. */
export interface Entry {
  /** Phase, command, condition and step: the entry's content, whatever comes before it. */
  readonly name: string
  readonly phase: Phase
  readonly command: Command
  readonly cell: readonly unknown[]
  readonly index: number
}

const stepOf = (entry: unknown): unknown => (Array.isArray(entry) ? entry[1] : entry)
const wordsOf = (step: unknown): string =>
  typeof step === 'object' && step !== null ? Object.values(step).join(' ') : String(step)

function conditionOf(entry: unknown): string {
  return Array.isArray(entry) && typeof entry[0] === 'function' ? `${entry[0].name}: ` : ''
}

const cells: ReadonlySet<readonly unknown[]> = new Set(
  Object.values(RULES).flatMap((row): (readonly unknown[])[] => Object.values(row)),
)

/** Every entry once, even if two phases share a row. */
export const ENTRIES: readonly Entry[] = [...cells].flatMap((cell) => {
  const [phase, row] =
    Object.entries(RULES).find(([, each]) => Object.values<unknown>(each).includes(cell)) ?? []
  const command = Object.entries(row ?? {}).find(([, each]: [string, unknown]) => each === cell)?.[0]
  return cell.map((entry, index) => ({
    name: `${phase} × ${command}, ${conditionOf(entry)}${wordsOf(stepOf(entry))}`,
    phase: phase as Phase,
    command: command as Command,
    cell,
    index,
  }))
})

/** A cell with a plausible mistake. */
export interface Neighbour {
  readonly name: string
  readonly entry: Entry
  readonly cell: readonly unknown[]
}

/**
 * The plausible wrong neighbours of an entry: the entry is dropped, it takes the step of the next
 * one, or, as the last entry, the last step of the next phase.
 */
function neighboursOf(entry: Entry): readonly Neighbour[] {
  const { cell, index, command, phase } = entry
  const own = cell[index]
  const words = wordsOf(stepOf(own))
  if (!Array.isArray(own)) {
    const phases = Object.keys(RULES)
    const at = phases.indexOf(phase)
    const later = [...phases.slice(at + 1), ...phases.slice(0, at)]
    const other = later
      .map((each): unknown => Object.values(RULES)[phases.indexOf(each)]?.[command].at(-1))
      .find((step) => wordsOf(step) !== words)
    return [{ name: `${entry.name} → ${wordsOf(other)}`, entry, cell: cell.with(index, other) }]
  }
  const dropped = { name: `${entry.name} → dropped`, entry, cell: cell.toSpliced(index, 1) }
  const next = stepOf(cell[index + 1])
  const isSame = wordsOf(next) === words || !Array.isArray(cell[index + 1])
  if (isSame) return [dropped]
  return [
    dropped,
    { name: `${entry.name} → ${wordsOf(next)}`, entry, cell: cell.with(index, [own[0], next]) },
  ]
}

export const NEIGHBOURS: readonly Neighbour[] = ENTRIES.flatMap(neighboursOf)

/** Runs something with a changed cell in the rules. */
function withCell<T>({ entry: { cell: before }, cell }: Neighbour, run: () => T): T {
  const rows = Object.values(RULES).filter((row) => Object.values<unknown>(row).includes(before))
  const put = (value: readonly unknown[], instead: readonly unknown[]): void => {
    for (const row of rows)
      for (const [command, each] of Object.entries(row))
        if (each === instead) Object.assign(row, { [command]: value })
  }
  put(cell, before)
  try {
    return run()
  } finally {
    put(before, cell)
  }
}

/**
 * The checks that detect a wrong neighbour: a broken promise in some world, and a line of the
 * table.
 */
export interface Noticed {
  readonly promise: string | undefined
  readonly line: string | undefined
}

export function noticed(neighbour: Neighbour, searches: readonly Found[], bound: number): Noticed {
  const { cell, index } = neighbour.entry
  return withCell(neighbour, () => {
    let promise: string | undefined
    for (const search of searches) {
      promise = search.searchFrom(cell, index, bound)?.split('\n')[0]
      if (promise !== undefined) break
    }
    return { promise, line: wrongLine() }
  })
}

/** Entries that no world of these searches uses. */
export function unused(searches: readonly Found[]): readonly string[] {
  return ENTRIES.filter(({ cell, index }) => !searches.some(({ uses }) => uses.get(cell)?.has(index))).map(
    ({ name }) => name,
  )
}
