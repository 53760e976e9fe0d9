import { type ConnectionAge, FAULTS, type Fault, type TransportName } from './faults.ts'

export interface Cell {
  /** The row of the outcome table that it checks, and the fault that causes it. */
  readonly name: string
  readonly fault: Fault
  readonly age: ConnectionAge
  readonly transport: TransportName
}

const TRANSPORTS: readonly TransportName[] = ['global fetch', 'undici']
const AGES: readonly ConnectionAge[] = ['fresh', 'reused']

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

export interface CellResult {
  readonly name: string
  readonly problems: readonly string[]
  /** The failure's code from the system or the transport, if any. */
  readonly cause?: string
}
