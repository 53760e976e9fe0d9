import { describeWith } from '../../stores/support/services.ts'
import { fleetHolds } from './fleet.ts'

describeWith('clients', 'a fleet over one D1 database, its processes and workerd killed', () =>
  fleetHolds('d1'),
)
