/** Uses the client in a process whose intrinsics are as the argument says; see test/support/hostile-exercise.ts. */
import { changesSince, exercise, globalsNow } from '../../support/hostile-exercise.ts'
import { freezeIntrinsics, NAMES, pollute } from '../../support/hostile-prototypes.ts'

const [, , mode, baseUrl = '', apiKey = ''] = process.argv
// Made by Node when they are asked for first, which has effects of its own.
void [process.stdout, process.stderr]
await fetch(baseUrl)
// zod does not load where it is enumerable.
if (mode === 'polluted before') pollute(NAMES, false)
if (mode === 'frozen') freezeIntrinsics()
const before = globalsNow()
const sdk = await import('../../../src/index.ts')
const changes = changesSince(before)
if (mode === 'polluted after') pollute(NAMES, true)
await exercise(sdk, () => new sdk.MemoryStore(), { baseUrl, apiKey })
process.stdout.write([...changes, 'done'].join('\n'))
