import { type ConnectionAge, FAULTS, type Fault, type TransportName } from './faults.ts'

/** One cell of the matrix, for one version of Node. */
export interface Cell {
  /** The row of the outcome table that it checks, and how it comes about. */
  readonly name: string
  readonly fault: Fault
  readonly age: ConnectionAge
  readonly transport: TransportName
}

const TRANSPORTS: readonly TransportName[] = ['global fetch', 'undici']
const AGES: readonly ConnectionAge[] = ['fresh', 'reused']

/** Every cell. */
export const CELLS: readonly Cell[] = FAULTS.flatMap((fault) =>
  AGES.filter((age) => fault.ages?.includes(age) ?? true).flatMap((age) =>
    TRANSPORTS.filter((transport) => (fault.transport ?? transport) === transport).map((transport) => ({
      name: `${[fault.row].flat().join(' or ')}: ${fault.name} (${age} connection, ${transport})`,
      fault,
      age,
      transport,
    })),
  ),
)

/** What came of a cell: nothing wrong, or what is. */
export interface CellResult {
  readonly name: string
  readonly problems: readonly string[]
  /** Code of the failure as the system or the transport named it, if there was one. */
  readonly cause?: string
}
