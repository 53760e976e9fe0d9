import { ConfigurationError } from '../errors/classes.ts'
import type { Credentials } from '../http/call.ts'
import type { ApiKey } from '../options.ts'
import type { Read } from './readers.ts'

const PROBLEM = 'must be 1 to 4096 visible ASCII characters without spaces'

/** Removes the line break that a file may add to the key. */
function keyOf(value: unknown): string | undefined {
  const key = typeof value === 'string' ? value.replace(/\r?\n$/, '') : ''
  return /^[!-~]{1,4096}$/.test(key) ? key : undefined
}

export const apiKey: Read<ApiKey> = (value, refuse) => {
  // The cast is safe: `credentialsOf` checks each result of the function.
  if (value === null || typeof value === 'function') return value as ApiKey
  if (typeof value === 'string' && /^bearer\s/i.test(value))
    return refuse("must be the key alone, without 'Bearer': the client adds that")
  if (typeof value !== 'string') return refuse('must be a string, a function or null')
  return keyOf(value) ?? refuse(PROBLEM)
}

/** Holds the key in a closure, so that a log of the credentials does not show it. */
export function credentialsOf(source: ApiKey): Credentials {
  if (typeof source !== 'function') return { rotates: false, get: () => source, proxyTag: undefined }
  return {
    rotates: true,
    get: () => {
      const given: unknown = source()
      return typeof given === 'string' ? checked(given) : Promise.resolve(given).then(checked)
    },
  }
}

function checked(given: unknown): string {
  const key = keyOf(given)
  if (key === undefined) throw new ConfigurationError(`The result of the apiKey function ${PROBLEM}.`)
  return key
}

/** True in a page and in a web worker, where visitors can read the program's memory. */
export function isBrowser(): boolean {
  const scope: Readonly<Record<PropertyKey, unknown>> = globalThis
  if (scope['window'] !== undefined && scope['document'] !== undefined) return true
  const { WorkerGlobalScope } = scope
  // Some server runtimes define this class, too.
  if (typeof WorkerGlobalScope !== 'function' || serverRuntime()) return false
  const { userAgent } = globalThis.navigator ?? {}
  return globalThis instanceof WorkerGlobalScope && userAgent !== 'Cloudflare-Workers'
}

/** True in Node, Bun, Deno, and runtimes that imitate Node. */
export function serverRuntime(): boolean {
  const { process, Deno } = globalThis as { process?: { versions?: { node?: unknown } }; Deno?: unknown }
  return Deno !== undefined || typeof process?.versions?.node === 'string'
}
