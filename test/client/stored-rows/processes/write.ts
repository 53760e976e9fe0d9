/**
 * Writes `test/client/stored-rows/rows.json` with the rows of the current source (`npm run build`
 * first, then `node test/client/stored-rows/processes/write.ts`). Use it only for a new layout, and
 * write to a new file: tests must keep reading the rows of older builds.
 */
import { writeFile } from 'node:fs/promises'
import { decisionsOver, FIXTURE, type Fixture, leave, SCENES } from '../scenes.ts'

const fixture: Record<string, Fixture[string]> = {}
for (const scene of SCENES) {
  const stored = await leave(scene)
  fixture[scene[0]] = { ...stored, decisions: await decisionsOver(stored) }
}
// One line for each scene.
const lines = Object.entries(fixture).map(
  ([what, scene]) => `${JSON.stringify(what)}: ${JSON.stringify(scene)}`,
)
await writeFile(FIXTURE, `{\n${lines.join(',\n')}\n}\n`)
