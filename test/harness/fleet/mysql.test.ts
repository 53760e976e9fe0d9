import { describeWith } from '../../stores/support/services.ts'
import { fleetHolds } from './fleet.ts'

describeWith('mariadb', 'a fleet over one MysqlStore, its processes and the server killed', () =>
  fleetHolds('mysql'),
)
