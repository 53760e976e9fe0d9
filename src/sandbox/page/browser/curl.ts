import type { SandboxRequest } from '../../service/reply.ts'
import { call } from './control.ts'

/** Headers that curl adds itself, or that belong to one connection. */
const LEFT_OUT =
  /^(host|connection|content-length|accept-encoding|user-agent|accept|accept-language|sec-.*|origin|referer)$/

/**
 * Returns the request as a curl command. The command reads the API key from the environment
 * variable that the button "Copy export lines" sets.
 */
export async function curlOf(number: number): Promise<string> {
  // Fetch the whole request: the page's own copy of a long body is truncated.
  const found = (await call('GET', `/requests?after=${number - 1}&limit=1`)) as readonly SandboxRequest[]
  const [request] = found
  if (request === undefined) throw new Error(`Request No. ${number} is no longer in the log.`)
  const { method, path, headers, body, apiKeyId } = request
  const parts = [`curl -X ${method} ${quoted(location.origin + path)}`]
  if (apiKeyId !== null) parts.push('-H "authorization: Bearer $CUSTOMER_ORDERING_API_KEY"')
  for (const [name, value] of Object.entries(headers))
    if (!LEFT_OUT.test(name)) parts.push(`-H ${quoted(`${name}: ${value}`)}`)
  if (body !== '') parts.push(`--data-raw ${quoted(body)}`)
  return parts.join(' \\\n  ')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
