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
await writeFile(FIXTURE, lines(fixture))

/** JSON with a line for each scene's subject, each of its rows, and all its decisions. */
function lines(scenes: Fixture): string {
  const texts = Object.entries(scenes).map(([what, { subject, now, rows, decisions }]) => {
    const list = rows.map((row) => `  ${JSON.stringify(row)}`).join(',\n')
    return `${JSON.stringify(what)}: {
 "subject": ${JSON.stringify(subject)}, "now": ${now}, "rows": [${list && `\n${list}\n `}],
 "decisions": ${JSON.stringify(decisions)}
}`
  })
  return `{\n${texts.join(',\n')}\n}\n`
}
