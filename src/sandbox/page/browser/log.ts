import type { SandboxRequest } from '../../service/reply.ts'
import { badge, code, time } from './cells.ts'
import { copyButton } from './copy.ts'
import { curlOf } from './curl.ts'
import { byId, element } from './elements.ts'
import { fillRow, tableOf } from './table.ts'

const KEPT = 200
const logRows = new Map<number, HTMLTableRowElement>()
/** The first request with each key of an API key: repetitions link to it. */
const firstWith = new Map<string, number>()
const logColumns = ['No.', 'Time', 'Request', 'Response', 'Idempotency-Key', 'API key']

function answerOf({ status, delivery, charged }: SandboxRequest): HTMLElement {
  const place = element('span')
  if (status === 'running') place.append(badge('info', 'running'))
  else if (status === 'dropped') place.append(badge('bad', delivery === 'stall' ? 'no response' : 'lost'))
  else place.append(badge(status < 300 ? 'good' : status < 500 ? 'warn' : 'bad', String(status)))
  const cut = { cut: 'cut off', stallBody: 'stopped halfway', huge: 'huge' } as const
  if (delivery === 'cut' || delivery === 'stallBody' || delivery === 'huge')
    place.append(badge('bad', cut[delivery]))
  if (charged) place.append(badge('info', 'charged'))
  return place
}

function drawRequest(request: SandboxRequest): void {
  const known = logRows.get(request.number)
  const row = known ?? element('tr', { class: 'new' })
  const opened = new Set(
    [...row.querySelectorAll('details[open] summary')].map(({ textContent }) => textContent),
  )
  const details = (name: string, ...content: readonly (Node | string)[]): HTMLElement => {
    const made = element('details', {}, element('summary', {}, name), ...content)
    made.open = opened.has(name)
    return made
  }
  const line = element('span', {}, `${request.method} `, code(request.path))
  if (request.faults.length > 0)
    line.append(element('small', { class: 'fault' }, `fault ${request.faults.join(', ')}`))
  const curl = copyButton('Copy as curl', () => curlOf(request.number))
  line.append(details('request', element('pre', {}, messageOf(request)), curl))
  if (request.response !== null)
    line.append(details('response', element('pre', {}, messageOf(request.response))))
  fillRow(row, logColumns, [
    String(request.number),
    time(request.at),
    line,
    answerOf(request),
    request.idempotencyKey === null ? '' : keyOf(request, request.idempotencyKey),
    request.apiKeyId === null ? '' : code(request.apiKeyId),
  ])
  texts.set(row, searchedText(request))
  hideUnwanted(row)
  if (known !== undefined) return
  logRows.set(request.number, row)
  byId('log').querySelector('tbody')?.prepend(row)
  const [oldest] = logRows.keys()
  if (logRows.size > KEPT && oldest !== undefined) {
    logRows.get(oldest)?.remove()
    logRows.delete(oldest)
  }
}

function keyOf({ number, apiKeyId }: SandboxRequest, key: string): HTMLElement {
  const place = element('span', {}, code(key))
  const scoped = JSON.stringify([apiKeyId, key])
  const first = firstWith.get(scoped) ?? number
  firstWith.set(scoped, first)
  if (first !== number) place.append(element('small', { class: 'fault' }, `same key as No. ${first}`))
  return place
}

/** The filter searches these strings of each row. */
const texts = new WeakMap<HTMLTableRowElement, string>()

function searchedText({
  method,
  path,
  status,
  idempotencyKey,
  apiKeyId,
  body,
  faults,
}: SandboxRequest): string {
  return [method, path, status, idempotencyKey, apiKeyId, body, ...faults].join(' ').toLowerCase()
}

function hideUnwanted(row: HTMLTableRowElement): void {
  const field = byId('filter')
  const wanted = field instanceof HTMLInputElement ? field.value.trim().toLowerCase() : ''
  row.hidden = !(texts.get(row) ?? '').includes(wanted)
}

/** Shows only the requests that contain the filter's words. */
export function filterLog(): void {
  for (const row of logRows.values()) hideUnwanted(row)
}

function messageOf({
  headers,
  body,
}: {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [...lines, ...(body === '' ? [] : ['', body])].join('\n')
}

export function drawLog(requests: readonly SandboxRequest[], anew: boolean): void {
  if (anew) {
    logRows.clear()
    firstWith.clear()
    const table = tableOf(logColumns, 'Requests, newest first')
    table.classList.add('log')
    byId('log').replaceChildren(table)
  }
  for (const request of requests) drawRequest(request)
  byId('log').hidden = logRows.size === 0
  byId('log-empty').hidden = logRows.size > 0
  const newest = [...logRows.keys()].at(-1) ?? 0
  byId('log-count').textContent = newest > logRows.size ? `${logRows.size} of ${newest}` : String(newest)
  const last = requests.findLast(({ status }) => status !== 'running')
  if (anew || last === undefined) return
  const how = last.status === 'dropped' ? 'response lost' : String(last.status)
  byId('announcement').textContent = `${last.method} ${last.path}: ${how}${last.charged ? ', charged' : ''}`
}
