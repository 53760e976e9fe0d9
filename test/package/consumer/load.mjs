// Loads every entry point, by `import` or by `require`, and prints the names of its exports.
import { createRequire } from 'node:module'

const [, , how, without] = process.argv
const require = createRequire(import.meta.url)
const manifest = require('customer-ordering-sdk/package.json')
/** Entry points that need another package. */
const peers = ['./msw', './undici', './opentelemetry']
const exported = {}
for (const path of Object.keys(manifest.exports)) {
  if (/\.(json|yaml)$/.test(path) || (peers.includes(path) && without === 'without peers')) continue
  const name = path.replace('.', 'customer-ordering-sdk')
  exported[path] = Object.keys(how === 'require' ? require(name) : await import(name)).sort()
}
console.log(JSON.stringify(exported))
