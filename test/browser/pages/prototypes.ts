/** Uses the client where the objects that everything inherits from are polluted or frozen, before it is loaded. */
import { it } from 'vitest'
import { changesSince, exercise, globalsNow } from '../../support/hostile-exercise.ts'
import { freezeIntrinsics, NAMES, pollute } from '../../support/hostile-prototypes.ts'
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
    // What is frozen cannot be thawed, so this is the page's only test. zod does not load where names are enumerable.
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
