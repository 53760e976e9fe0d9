/**
 * Writes `test/fixtures/stored-rows.json` with the rows of the current source (`npm run build`
 * first, then `node test/client/stored-rows/processes/write.ts`). Use it only for a new layout, and
 * write to a new file: tests must keep reading the rows of older builds.
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

/** JSON with one line for each subject, each row, and all decisions of a scene. */
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
