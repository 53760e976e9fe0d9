import type { SandboxRequest } from '../../service/reply.ts'
import { badge, code, time } from './cells.ts'
import { copyButton } from './copy.ts'
import { curlOf } from './curl.ts'
import { byId, element } from './elements.ts'
import { drawTable, type Row } from './table.ts'

const KEPT = 200
/** The newest requests by number, oldest first. */
const kept = new Map<number, SandboxRequest>()
/**
 * Number of the first request with each API key and Idempotency-Key. Repeated requests refer to it.
 */
const firstWith = new Map<string, number>()

function responseOf({ status, delivery, charged }: SandboxRequest): HTMLElement {
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

function cellsOf(request: SandboxRequest): Row {
  const { number, at, method, path, faults, response, apiKeyId } = request
  const line = element('span', {}, `${method} `, code(path))
  if (faults.length > 0) line.append(element('small', { class: 'fault' }, `fault ${faults.join(', ')}`))
  line.append(
    details(
      'request',
      request,
      copyButton('Copy as curl', () => curlOf(number)),
    ),
  )
  if (response !== null) line.append(details('response', response))
  return [
    String(number),
    time(at),
    line,
    responseOf(request),
    keyCell(request),
    apiKeyId === null ? '' : code(apiKeyId),
  ]
}

function details(
  name: string,
  {
    headers,
    body,
  }: {
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  },
  ...more: readonly Node[]
): HTMLElement {
  const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}`)
  const text = [...lines, ...(body === '' ? [] : ['', body])].join('\n')
  return element('details', {}, element('summary', {}, name), element('pre', {}, text), ...more)
}

function keyCell({ number, apiKeyId, idempotencyKey }: SandboxRequest): Node | string {
  if (idempotencyKey === null) return ''
  const place = element('span', {}, code(idempotencyKey))
  const first = firstWith.get(JSON.stringify([apiKeyId, idempotencyKey])) ?? number
  if (first !== number) place.append(element('small', { class: 'fault' }, `same key as No. ${first}`))
  return place
}

function searchedText(request: SandboxRequest): string {
  const { method, path, status, idempotencyKey, apiKeyId, body, faults } = request
  return [method, path, status, idempotencyKey, apiKeyId, body, ...faults].join(' ').toLowerCase()
}

/** Shows the requests that contain the filter's text. */
export function showLog(): void {
  const newest = [...kept.values()].reverse()
  const table = drawTable('log', {
    columns: ['No.', 'Time', 'Request', 'Response', 'Idempotency-Key', 'API key'],
    items: newest,
    total: newest[0]?.number ?? 0,
    keyOf: ({ number }) => number,
    cellsOf,
  })
  const field = byId('filter')
  const wanted = field instanceof HTMLInputElement ? field.value.trim().toLowerCase() : ''
  const rows = table.tBodies[0]?.rows ?? []
  for (const [index, request] of newest.entries()) {
    const row = rows[index]
    if (row !== undefined) row.hidden = !searchedText(request).includes(wanted)
  }
}

export function drawLog(requests: readonly SandboxRequest[], anew: boolean): void {
  if (anew) {
    kept.clear()
    firstWith.clear()
  }
  const [oldest = 0] = kept.keys()
  for (const request of requests) {
    const { number, apiKeyId, idempotencyKey } = request
    // Skip a request that ends after its row was removed.
    if (number < oldest) continue
    kept.set(number, request)
    const scoped = JSON.stringify([apiKeyId, idempotencyKey])
    if (!firstWith.has(scoped)) firstWith.set(scoped, number)
  }
  for (const number of [...kept.keys()].slice(0, -KEPT)) kept.delete(number)
  showLog()
  const last = requests.findLast(({ status }) => status !== 'running')
  if (anew || last === undefined) return
  const how = last.status === 'dropped' ? 'response lost' : String(last.status)
  byId('announcement').textContent = `${last.method} ${last.path}: ${how}${last.charged ? ', charged' : ''}`
}
