/**
 * Runs the long programme: every script of package.json that begins with `verify:`, one after the other, and prints one
 * table at the end. Further arguments choose some of them: `npm run verify -- kills browser`.
 */
import { spawnSync } from 'node:child_process'
import manifest from '../package.json' with { type: 'json' }

const PREFIX = 'verify:'
const all = Object.keys(manifest.scripts)
  .filter((name) => name.startsWith(PREFIX))
  .map((name) => name.slice(PREFIX.length))
const chosen = process.argv.length > 2 ? process.argv.slice(2) : all
const unknown = chosen.filter((name) => !all.includes(name))
if (unknown.length > 0) {
  console.error(`There is no ${unknown.join(', ')}. There are: ${all.join(', ')}.`)
  process.exit(2)
}

const rows = chosen.map((name) => {
  console.log(`\n== ${PREFIX}${name}`)
  const begin = performance.now()
  const { status, stdout } = spawnSync('npm', ['run', '-s', `${PREFIX}${name}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
  })
  process.stdout.write(stdout)
  const last = stdout.trimEnd().split('\n').at(-1) ?? ''
  return { name, passed: status === 0, minutes: (performance.now() - begin) / 60_000, last }
})

console.log('\nprogramme        result  minutes  its last line')
for (const { name, passed, minutes, last } of rows)
  console.log(
    `${name.padEnd(16)} ${passed ? 'passed' : 'FAILED'}  ${minutes.toFixed(1).padStart(7)}  ${last}`,
  )
process.exitCode = rows.every(({ passed }) => passed) ? 0 : 1
