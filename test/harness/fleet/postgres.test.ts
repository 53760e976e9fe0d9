import { describeWith } from '../../stores/support/services.ts'
import { fleetHolds } from './fleet.ts'

describeWith('postgres', 'a fleet over one PostgresStore, its processes and the server killed', () =>
  fleetHolds('postgres'),
)
