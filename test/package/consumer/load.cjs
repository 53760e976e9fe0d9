// The same by `require`.
const manifest = require('customer-ordering-sdk/package.json')

const peers = ['./msw', './undici', './opentelemetry']
const exported = {}
for (const path of Object.keys(manifest.exports)) {
  if (/\.(json|yaml)$/.test(path) || (peers.includes(path) && process.env.WITHOUT_PEERS === 'true')) continue
  exported[path] = Object.keys(require(path.replace('.', 'customer-ordering-sdk'))).sort()
}
console.log(JSON.stringify(exported))
