import type { SandboxRequest } from '../../service/reply.ts'
import { badge, code, time } from './cells.ts'
import { byId, element } from './elements.ts'
import { drawEach } from './keyed.ts'

/** Oldest first. */
let latest: readonly SandboxRequest[] = []

function responseOf({ status, delivery, charged, faults }: SandboxRequest): HTMLElement {
  const place = element('span', { class: 'response' })
  if (status === 'running') place.append(badge('info', 'running'))
  else if (status === 'dropped') place.append(badge('bad', delivery === 'stall' ? 'no response' : 'lost'))
  else place.append(badge(status < 300 ? 'good' : status < 500 ? 'warn' : 'bad', String(status)))
  const cut = { cut: 'cut off', stallBody: 'stopped halfway' } as const
  if (delivery === 'cut' || delivery === 'stallBody') place.append(badge('bad', cut[delivery]))
  if (charged) place.append(badge('info', 'charged'))
  if (faults.length > 0) place.append(badge('plain', faults.join(', ')))
  return place
}

/** A request and its response on one line, which opens to both in full. */
function rowOf(request: SandboxRequest): HTMLElement {
  const { number, at, method, path, response } = request
  const line = element(
    'summary',
    { class: 'line' },
    element('span', { class: 'number' }, String(number)),
    time(at),
    element('span', { class: 'request' }, `${method} `, code(path)),
    responseOf(request),
    keyOf(request),
  )
  const full = element('div', { class: 'exchange' }, message('Request', request))
  if (response !== null) full.append(message('Response', response))
  return element('li', { 'data-number': String(number) }, element('details', {}, line, full))
}

function message(title: string, { headers, body }: Pick<SandboxRequest, 'headers' | 'body'>): HTMLElement {
  const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}`)
  const text = [...lines, ...(body === '' ? [] : ['', formatted(body)])].join('\n')
  return element('div', {}, element('h3', {}, title), element('pre', { tabindex: '0' }, text))
}

/** JSON with a line for each field. Bodies that are cut or no JSON stay as they are. */
function formatted(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}

function keyOf({ number, apiKeyId, idempotencyKey }: SandboxRequest): HTMLElement {
  const place = element('span', { class: 'key' })
  if (idempotencyKey === null) return place
  const first = latest.find((each) => each.apiKeyId === apiKeyId && each.idempotencyKey === idempotencyKey)
  if (first !== undefined && first.number !== number)
    place.append(badge('plain', `same key as No. ${first.number}`), ' ')
  place.append(code(idempotencyKey))
  return place
}

/** All that the row shows, and the body as it was sent: a search may be for either. */
function searchedText({ body, response, apiKeyId }: SandboxRequest, row: Element | undefined): string {
  return [row?.textContent, body, response?.body, apiKeyId].join(' ').toLowerCase()
}

export function showLog(): void {
  const newest = latest.toReversed()
  const place = byId('log-rows')
  drawEach(place, newest, ({ number }) => number, rowOf)
  const field = byId('filter')
  const wanted = field instanceof HTMLInputElement ? field.value.trim().toLowerCase() : ''
  const words = wanted.split(/\s+/)
  let shown = 0
  for (const [index, request] of newest.entries()) {
    const row = place.children[index]
    const text = searchedText(request, row)
    const found = words.every((word) => text.includes(word))
    row?.toggleAttribute('hidden', !found)
    if (found) shown++
  }
  const total = newest[0]?.number ?? 0
  byId('log').hidden = shown === 0
  byId('log-none').hidden = total > 0
  byId('log-count').textContent = shown < total ? `${shown} of ${total}` : String(total)
  byId('log-no-match').textContent = total > 0 && shown === 0 ? `No request matches “${wanted}”.` : ''
}

export function drawLog(requests: readonly SandboxRequest[]): void {
  latest = requests
  showLog()
  const last = requests.findLast(({ status }) => status !== 'running')
  if (last === undefined) return
  const how = last.status === 'dropped' ? 'response lost' : String(last.status)
  byId('announcement').textContent = `${last.method} ${last.path}: ${how}${last.charged ? ', charged' : ''}`
}
