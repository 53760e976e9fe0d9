/**
 * Runs the suite that every store must pass in workerd: two workers, each with its own isolate,
 * share the objects.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Miniflare } from 'miniflare'
import config from '../wrangler.json' with { type: 'json' }
import { bundle } from './bundle.ts'

const modules = [await bundle('workerd/contract-worker.ts')]
const objects = { className: 'TestedObject', useSQLite: true }
const compatibilityDate = config.compatibility_date
const miniflare = new Miniflare({
  cf: false,
  workers: [
    {
      name: 'one',
      modules,
      compatibilityDate,
      durableObjects: { ORDERS: objects },
      serviceBindings: { OTHER: { name: 'other', entrypoint: 'OtherWorker' } },
    },
    {
      name: 'other',
      modules,
      compatibilityDate,
      durableObjects: { ORDERS: { ...objects, scriptName: 'one' } },
      serviceBindings: { OTHER: 'one' },
    },
  ],
})
after(() => miniflare.dispose())

const list = await miniflare.dispatchFetch('http://worker.test/')
const titles: unknown = await list.json()
assert.ok(Array.isArray(titles) && titles.length > 40)

for (const [number, title] of titles.entries()) {
  test(String(title), async () => {
    const response = await miniflare.dispatchFetch(`http://worker.test/?run=${number}`)
    assert.equal(await response.text(), 'passed')
  })
}
