import { describe } from 'vitest'
import { fleetHolds } from './fleet.ts'

describe('a fleet over one SqliteStore, its processes killed and stopped', () => fleetHolds('sqlite'))
