/** Uses the client after polluting or freezing the built-in prototypes, before the client is loaded. */
import { it } from 'vitest'
import { changesSince, exercise, globalsNow } from '../../client/setup/hostile-exercise.ts'
import { freezeIntrinsics, NAMES, pollute } from '../../client/setup/hostile-prototypes.ts'
import { runAndReport } from '../support/page-report.ts'

const query = new URLSearchParams(location.search)
const service = {
  baseUrl: query.get('service') ?? '',
  apiKey: query.get('apiKey') ?? '',
  repeats: query.get('repeats') === 'true',
}
const mode = query.get('mode') ?? ''

function client(): void {
  it(`works, with prototypes ${mode}`, async () => {
    // This is the page's only test, because frozen prototypes stay frozen. zod cannot load if
    // inherited names are enumerable.
    let clean = mode === 'polluted before' ? pollute(NAMES, false) : () => {}
    if (mode === 'frozen') freezeIntrinsics()
    try {
      const before = globalsNow()
      const sdk = await import('customer-ordering-sdk')
      const { IndexedDbStore } = await import('customer-ordering-sdk/stores/indexeddb')
      const changes = changesSince(before)
      if (changes.length > 0) throw new Error(`changed by loading: ${changes.join(', ')}`)
      if (mode === 'polluted after') clean = pollute([...NAMES, 'timeout'], true)
      const open = () => new IndexedDbStore({ name: `prototypes-${mode}`, openTimeout: 30_000 })
      await exercise(sdk, open, service)
    } finally {
      clean()
    }
  })
}

void runAndReport({ client })
