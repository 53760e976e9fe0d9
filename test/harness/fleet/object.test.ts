import { describeWith } from '../../stores/support/services.ts'
import { fleetHolds } from './fleet.ts'

describeWith('clients', 'a fleet over one Durable Object, its processes and workerd killed', () =>
  fleetHolds('object'),
)
