/**
 * Writes `test/fixtures/stored-rows.json` anew, with the rows that this source leaves (`npm run build` first, then
 * `node test/client/stored-rows/processes/write.ts`). For a new layout only, and then into a file beside it: the rows of
 * an older build are there to be read.
 */
import { writeFile } from 'node:fs/promises'
import { FIXTURE, type Fixture } from '../fixture.ts'
import { decisionsOver, leave, SCENES } from '../scenes.ts'

const fixture: Record<string, Fixture[string]> = {}
for (const scene of SCENES) {
  const stored = await leave(scene)
  fixture[scene[0]] = { ...stored, decisions: await decisionsOver(stored) }
}
await writeFile(FIXTURE, `${JSON.stringify(fixture, null, 1)}\n`)
