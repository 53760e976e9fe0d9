/**
 * Uses the client in a process with changed intrinsics, as the argument states; see
 * test/client/setup/hostile-exercise.ts.
 */
import { changesSince, exercise, globalsNow } from './hostile-exercise.ts'
import { freezeIntrinsics, NAMES, pollute } from './hostile-prototypes.ts'

const [, , mode, baseUrl = '', apiKey = ''] = process.argv
// Load these before the change: Node creates them on first access, with side effects.
void [process.stdout, process.stderr]
await fetch(baseUrl)
// zod cannot load if this is enumerable.
if (mode === 'polluted before') pollute(NAMES, false)
if (mode === 'frozen') freezeIntrinsics()
const before = globalsNow()
const sdk = await import('../../../src/index.ts')
const changes = changesSince(before)
if (mode === 'polluted after') pollute(NAMES, true)
await exercise(sdk, () => new sdk.MemoryStore(), { baseUrl, apiKey })
process.stdout.write([...changes, 'done'].join('\n'))
