import { parse, v5 } from 'uuid'
import { KEY_NAMESPACE } from './identity/keys.ts'

const NAMESPACE: Uint8Array = /* @__PURE__ */ parse(KEY_NAMESPACE)

type Hash = (algorithm: 'sha1', bytes: Uint8Array, encoding: 'hex') => string

interface Platform {
  readonly process?: { getBuiltinModule?(name: 'crypto'): { readonly hash?: Hash } | undefined }
}

/**
 * UUID v5 (RFC 9562, section 5.5) of a name in this package's namespace.
 *
 * Uses Node's own SHA-1, because computing ids with the uuid package took a third of the time that
 * `create()` adds to a request (docs/performance.md).
 */
export function uuidV5(name: string): string {
  derive ??= fastest(globalThis)
  return derive(name)
}

let derive: ((name: string) => string) | undefined

export function fastest(platform: Platform): (name: string) => string {
  try {
    // Not imported, because bundlers for browsers would try to include the module.
    const hash = platform.process?.getBuiltinModule?.('crypto')?.hash
    if (typeof hash !== 'function') return byPackage
    // Throws if the platform forbids SHA-1.
    hash('sha1', new Uint8Array(), 'hex')
    const byPlatform = derivedBy(hash)
    // With a wrong id, a retry would send another Idempotency-Key and could charge twice.
    for (const name of PROBES) if (byPlatform(name) !== byPackage(name)) return byPackage
    return byPlatform
  } catch {
    return byPackage
  }
}

/** Test names: one fits in one SHA-1 block, one needs several, one is too long for `shared`. */
const PROBES: readonly string[] = [1, 30, 500].map((times) => '\u00e9 \u{1f600}'.repeat(times))

function byPackage(name: string): string {
  // Passes bytes: the uuid package encodes strings slowly, and parses a namespace string twice.
  return v5(new TextEncoder().encode(name), NAMESPACE)
}

function derivedBy(hash: Hash): (name: string) => string {
  const encoder = new TextEncoder()
  const start = NAMESPACE.length
  const shared = new Uint8Array(1024)
  shared.set(NAMESPACE)
  const sharedName = shared.subarray(start)
  return (name) => {
    let bytes = shared
    let nameBytes = sharedName
    // A UTF-16 code unit takes at most three bytes of UTF-8.
    if (start + 3 * name.length > shared.length) {
      bytes = new Uint8Array(start + 3 * name.length)
      bytes.set(NAMESPACE)
      nameBytes = bytes.subarray(start)
    }
    const end = start + encoder.encodeInto(name, nameBytes).written
    try {
      const hex = hash('sha1', bytes.subarray(0, end), 'hex')
      // Four bits are the version, two are the variant (RFC 9562, section 4).
      const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16)
      const [third, fourth] = [`5${hex.slice(13, 16)}`, variant + hex.slice(17, 20)]
      // Unlike a concatenation, the result of `join` keeps no other string in memory.
      return [hex.slice(0, 8), hex.slice(8, 12), third, fourth, hex.slice(20, 32)].join('-')
    } catch {
      // The platform may have forbidden SHA-1 since the probes were checked.
      return byPackage(name)
    } finally {
      // The name may contain an API key, which must not stay in memory.
      bytes.fill(0, start, end)
    }
  }
}
