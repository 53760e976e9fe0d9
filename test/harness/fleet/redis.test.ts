import { describeWith } from '../../stores/support/services.ts'
import { fleetHolds } from './fleet.ts'

describeWith('redis', 'a fleet over one RedisStore, its processes and the server killed', () =>
  fleetHolds('redis'),
)
