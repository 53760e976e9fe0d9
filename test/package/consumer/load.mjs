// Loads every entry point with `import`, and prints the names of its exports.
import { readFile } from 'node:fs/promises'

const manifest = JSON.parse(
  await readFile(new URL(import.meta.resolve('customer-ordering-sdk/package.json'))),
)
/** Entry points that need another package. */
const peers = ['./msw', './undici', './opentelemetry']
const exported = {}
for (const path of Object.keys(manifest.exports)) {
  if (/\.(json|yaml)$/.test(path) || (peers.includes(path) && process.env.WITHOUT_PEERS === 'true')) continue
  exported[path] = Object.keys(await import(path.replace('.', 'customer-ordering-sdk'))).sort()
}
console.log(JSON.stringify(exported))
