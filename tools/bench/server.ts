/** The service of the measurements, in a process of its own. Responds after `argv[2]` milliseconds. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { orderBody, placed } from './orders.ts'

const latency = Number(process.argv[2] ?? 0)
const TOTAL = 2_000
const rows = Array.from({ length: TOTAL }, () => placed(orderBody()))
const one = JSON.stringify(rows[0])
const pages = new Map<string, string>()

function page(search: string): string {
  const query = new URLSearchParams(search)
  const [offset, limit] = [Number(query.get('offset') ?? 0), Number(query.get('limit'))]
  return JSON.stringify({ data: rows.slice(offset, offset + limit), total: TOTAL })
}

const server = createServer((request, response) => {
  const [, search = ''] = (request.url ?? '').split('?')
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    let text = one
    if (request.method === 'POST') text = JSON.stringify(placed(JSON.parse(Buffer.concat(chunks).toString())))
    else if (search !== '') text = pages.get(search) ?? page(search)
    if (search !== '') pages.set(search, text)
    const respond = (): void => {
      const length = Buffer.byteLength(text)
      response.writeHead(request.method === 'POST' ? 201 : 200, {
        'content-type': 'application/json',
        'content-length': length,
      })
      response.end(text)
    }
    if (latency > 0) setTimeout(respond, latency)
    else respond()
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())
