import type { SandboxRequest } from '../../service/reply.ts'
import { call } from './control.ts'

/** Headers that curl sets itself, or that only browsers send. */
const OMITTED_HEADERS =
  /^(host|connection|content-length|accept-encoding|user-agent|accept|accept-language|sec-.*|origin|referer)$/

export async function curlOf(number: number): Promise<string> {
  // Fetch the whole request: the page received long bodies truncated.
  // The cast is safe: the response comes from the sandbox that serves this page.
  const found = (await call('GET', `/requests?after=${number - 1}&limit=1`)) as readonly SandboxRequest[]
  const [request] = found
  if (request === undefined) throw new Error(`Request No. ${number} is no longer in the log.`)
  const { method, path, headers, body, apiKeyId } = request
  const parts = [`curl -X ${method} ${quoted(location.origin + path)}`]
  // The button "Copy export lines" copies a line that sets this variable.
  if (apiKeyId !== null) parts.push('-H "authorization: Bearer $CUSTOMER_ORDERING_API_KEY"')
  for (const [name, value] of Object.entries(headers))
    if (!OMITTED_HEADERS.test(name)) parts.push(`-H ${quoted(`${name}: ${value}`)}`)
  if (body !== '') parts.push(`--data-raw ${quoted(body)}`)
  return parts.join(' \\\n  ')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
