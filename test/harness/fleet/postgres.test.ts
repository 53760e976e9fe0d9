import { describeWith } from '../../stores/support/postgres.ts'
import { fleetHolds } from './fleet.ts'

describeWith('server', 'a fleet over one PostgresStore, its processes and the server killed', () =>
  fleetHolds('postgres'),
)
