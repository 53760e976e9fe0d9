import type { PageContent } from '../../control/overview.ts'
import { drawBehaviour } from './behaviour.ts'
import { act, call, report } from './control.ts'
import { byId } from './elements.ts'
import { drawLog, showLog } from './log.ts'
import { makeProgramButtons, noteOverview } from './program.ts'
import { drawRules } from './rules.ts'
import { drawTables } from './tables.ts'
import { drawToggles, makeToggles } from './toggles.ts'
import { drawWallets } from './wallets.ts'

function receive({ overview, requests }: PageContent): void {
  noteOverview(overview)
  drawWallets(overview.customers)
  drawToggles(overview.faults)
  drawRules(overview.faults)
  drawBehaviour(overview)
  drawTables(overview)
  drawLog(requests)
}

function connection(kind: 'good' | 'bad', text: string): void {
  const place = byId('connection')
  place.className = `badge ${kind}`
  if (place.textContent !== text) place.textContent = text
}

const POLL_MS = 300

/** Reads all of the page again and again: what is drawn already stays as it is. */
async function poll(): Promise<void> {
  const content = await call('GET', '/page').catch(() => undefined)
  connection(content === undefined ? 'bad' : 'good', content === undefined ? 'not connected' : 'live')
  // The cast is safe: the sandbox that serves this page sends the content.
  if (content !== undefined) receive(content as PageContent)
  setTimeout(poll, POLL_MS)
}

byId('address').textContent = location.origin
byId('example-address').textContent = location.origin
makeToggles()
makeProgramButtons()
byId('filter').addEventListener('input', showLog)
byId('reset').addEventListener('click', () => {
  if (confirm('Reset everything? Orders, charges, keys, rules and switches return to their initial state.'))
    act(() => call('POST', '/reset'))
})
byId('forget').addEventListener('click', () => act(() => call('POST', '/forget-keys')))
byId('clear-rules').addEventListener('click', () => act(() => call('DELETE', '/faults')))
byId('preset').addEventListener('change', (event) => {
  if (!(event.target instanceof HTMLSelectElement)) return
  const body = JSON.stringify({ preset: event.target.value })
  act(() => call('PUT', '/behaviour', body))
})
byId('rule-form').addEventListener('submit', (event) => {
  event.preventDefault()
  const field = byId('rule')
  const text = field instanceof HTMLTextAreaElement ? field.value : ''
  report(null, 'rule-problem')
  call('POST', '/faults', text).catch((error: unknown) => report(error, 'rule-problem'))
})
void poll()
