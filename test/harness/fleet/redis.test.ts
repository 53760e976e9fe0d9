import { announceMissing, describeWith } from '../../stores/support/redis.ts'
import { fleetHolds } from './fleet.ts'

announceMissing('a fleet over one RedisStore')
describeWith('server', 'a fleet over one RedisStore, its processes and the server killed', () =>
  fleetHolds('redis'),
)
