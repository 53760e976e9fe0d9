import { describeWith } from '../../stores/support/redis.ts'
import { fleetHolds } from './fleet.ts'

describeWith('server', 'a fleet over one RedisStore, its processes and the server killed', () =>
  fleetHolds('redis'),
)
