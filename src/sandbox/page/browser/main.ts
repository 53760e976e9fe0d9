import type { LiveEvent } from '../../control/live.ts'
import { drawBehaviour } from './behaviour.ts'
import { act, call, report } from './control.ts'
import { byId } from './elements.ts'
import { drawLog, showLog } from './log.ts'
import { makeProgramButtons, noteOverview } from './program.ts'
import { drawRules } from './rules.ts'
import { drawTables } from './tables.ts'
import { drawToggles, makeToggles } from './toggles.ts'
import { drawWallets } from './wallets.ts'

function receive({ overview, requests }: LiveEvent): void {
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

function listen(): void {
  const events = new EventSource('/__sandbox/events')
  events.addEventListener('open', () => connection('good', 'live'))
  events.addEventListener('error', () => {
    connection('bad', 'not connected')
    // If a proxy responded instead of the sandbox, the browser does not reconnect automatically.
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 2000)
  })
  // The cast is safe: the sandbox that serves this page sends the event.
  events.addEventListener('message', (event) => receive(JSON.parse(event.data) as LiveEvent))
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
listen()
