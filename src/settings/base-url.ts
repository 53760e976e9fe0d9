import { isObject } from '../defined.ts'
import type { Read } from './readers.ts'

const LOOPBACK = /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

export const baseUrl: Read<string> = (value, refuse) => {
  const given = isObject(value) ? value['href'] : value
  let url: URL | undefined
  try {
    url = new URL(typeof given === 'string' ? given : '')
  } catch {
    // Rejected below: the runtime's own error quotes the address, which may contain a password.
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return refuse('must be absolute, such as https://api.example.com (in a page: location.origin + "/api")')
  }
  if (url.username !== '' || url.password !== '') refuse('must not contain a user name or password')
  if (/\/v1\/*$/.test(url.pathname)) refuse('must not end in /v1: the client adds that')
  if (/[?#]/.test(String(given))) refuse('must not have a query or a fragment')
  return url.origin + url.pathname.replace(/\/+$/, '')
}

export function isInsecure(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  return protocol === 'http:' && !LOOPBACK.test(hostname)
}

export const INSECURE: string =
  'must be an https address: over http, others could read the orders and any API key. On a private network, set allowInsecureHttp'
