/** Runs before each file of tests where `SEEDED_BUG` names a bug. */
import { sow } from './seeded-bugs.ts'

const name = process.env['SEEDED_BUG']
if (name !== undefined && name !== '') sow(name)
