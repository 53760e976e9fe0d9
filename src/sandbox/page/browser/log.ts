import type { SandboxRequest } from '../../service/reply.ts'
import { badge, code, time } from './cells.ts'
import { copyButton } from './copy.ts'
import { curlOf } from './curl.ts'
import { byId, element } from './elements.ts'
import { drawTable, type Row } from './table.ts'

const MAX_REQUESTS = 200
const requestsByNumber = new Map<number, SandboxRequest>()
const firstNumberByKey = new Map<string, number>()

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
  const first = firstNumberByKey.get(JSON.stringify([apiKeyId, idempotencyKey])) ?? number
  if (first !== number) place.append(element('small', { class: 'fault' }, `same key as No. ${first}`))
  return place
}

function searchedText(request: SandboxRequest): string {
  const { method, path, status, idempotencyKey, apiKeyId, body, faults } = request
  return [method, path, status, idempotencyKey, apiKeyId, body, ...faults].join(' ').toLowerCase()
}

export function showLog(): void {
  const newest = [...requestsByNumber.values()].reverse()
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
    requestsByNumber.clear()
    firstNumberByKey.clear()
  }
  const [oldest = 0] = requestsByNumber.keys()
  for (const request of requests) {
    const { number, apiKeyId, idempotencyKey } = request
    // Skip a request that ends after its row was removed.
    if (number < oldest) continue
    requestsByNumber.set(number, request)
    const scoped = JSON.stringify([apiKeyId, idempotencyKey])
    if (!firstNumberByKey.has(scoped)) firstNumberByKey.set(scoped, number)
  }
  for (const number of [...requestsByNumber.keys()].slice(0, -MAX_REQUESTS)) requestsByNumber.delete(number)
  showLog()
  const last = requests.findLast(({ status }) => status !== 'running')
  if (anew || last === undefined) return
  const how = last.status === 'dropped' ? 'response lost' : String(last.status)
  byId('announcement').textContent = `${last.method} ${last.path}: ${how}${last.charged ? ', charged' : ''}`
}
