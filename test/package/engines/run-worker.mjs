// run-worker.mjs FILE: runs a bundled worker in workerd and prints its answer.
import { Miniflare } from 'miniflare'

const { SMOKE_BASE_URL, SMOKE_API_KEY } = process.env
const miniflare = new Miniflare({
  modules: true,
  scriptPath: process.argv[2],
  compatibilityDate: '2026-07-01',
  bindings: { SMOKE_BASE_URL, SMOKE_API_KEY },
  cf: false,
})
const response = await miniflare.dispatchFetch('http://worker.test/')
console.log(await response.text())
await miniflare.dispose()
if (!response.ok) process.exitCode = 1
