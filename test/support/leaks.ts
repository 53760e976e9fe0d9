/**
 * Looks for a secret in everything that a program could print or store. All harnesses check I8 with
 * it. It searches for every known encoding of the secret, in the text of every way to print a
 * value, and in the bytes of files.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'

export interface Spelling {
  readonly how: string
  readonly text: string
  /** True for a part of the unencoded secret. */
  readonly part: boolean
}

/** Shorter forms, such as base64 of a short secret, occur in any text. */
const SHORTEST = 8

const known = new Map<string, readonly Spelling[]>()

/** All encodings in which a secret could leak, whatever text surrounds it. */
export function spellingsOf(secret: string): readonly Spelling[] {
  const before = known.get(secret)
  if (before !== undefined) return before
  const bytes = Buffer.from(secret, 'utf8')
  const hex = bytes.toString('hex')
  const octets = hex.match(/../g) ?? []
  const json = JSON.stringify(secret).slice(1, -1)
  const percent = encodeURIComponent(secret)
  const length = secret.length
  const spellings: [how: string, text: string][] = [
    ['raw', secret],
    // The rest of a key that was truncated.
    ['raw, its first part', length >= 24 ? secret.slice(0, 16) : ''],
    ['raw, a part of it', length >= 24 ? secret.slice(8, 24) : ''],
    ['raw, its last part', length >= 24 ? secret.slice(-16) : ''],
    ['reversed', [...secret].reverse().join('')],
    ['percent-encoded', percent],
    ['percent-encoded in small letters', percent.replace(/%../g, (octet) => octet.toLowerCase())],
    ['percent-encoded twice', encodeURIComponent(percent)],
    ['percent-encoded as a form field', new URLSearchParams({ k: secret }).toString().slice(2)],
    ['percent-encoded in every byte', octets.map((octet) => `%${octet}`).join('')],
    ['percent-encoded in every byte', octets.map((octet) => `%${octet.toUpperCase()}`).join('')],
    ['hexadecimal', hex],
    ['hexadecimal', hex.toUpperCase()],
    ['hexadecimal bytes as inspect prints them', octets.join(' ')],
    ['JSON', json],
    ['JSON with escaped slashes', json.replaceAll('/', '\\/')],
    ['JSON in JSON', JSON.stringify(json).slice(1, -1)],
    ['JSON with every character escaped', octets.map((octet) => `\\u00${octet}`).join('')],
    ['bytes as numbers', [...bytes].join(',')],
    ['bytes as inspect prints an array', [...bytes].join(', ')],
    ['HTML', secret.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')],
    ...[0, 1, 2].flatMap((position): [string, string][] => {
      const text = withinBase64(bytes, position)
      const url = text.replaceAll('+', '-').replaceAll('/', '_')
      return [
        [`base64, ${position} bytes in`, text],
        [`base64 for URLs, ${position} bytes in`, url],
        [`percent-encoded base64, ${position} bytes in`, encodeURIComponent(text)],
      ]
    }),
  ]
  const seen = new Set<string>()
  const found: Spelling[] = []
  for (const [how, text] of spellings) {
    if (text.length < SHORTEST || seen.has(text)) continue
    seen.add(text)
    found.push({ how, text, part: length > text.length && secret.includes(text) })
  }
  known.set(secret, found)
  return found
}

/**
 * The base64 characters of a longer text that depend only on the secret, which begins this many
 * bytes into a group.
 */
function withinBase64(bytes: Buffer, position: number): string {
  const text = Buffer.concat([Buffer.alloc(position), bytes])
    .toString('base64')
    .replace(/=+$/, '')
  const first = Math.ceil((position * 8) / 6)
  const last = Math.floor(((position + bytes.length) * 8) / 6)
  return text.slice(first, last)
}

/** The encodings of a secret that a text contains, with or without parts of the secret. */
export function spellingsIn(text: string, secret: string, parts = true): string[] {
  return spellingsOf(secret)
    .filter((spelling) => (parts || !spelling.part) && text.includes(spelling.text))
    .map(({ how }) => how)
}

/** The same without parts of the secret, for texts in which other code has already cut it. */
export const wholeSpellingsIn = (text: string, secret: string) => spellingsIn(text, secret, false)

const ALL = {
  depth: Number.POSITIVE_INFINITY,
  showHidden: true,
  getters: true,
  maxStringLength: null,
  maxArrayLength: null,
  breakLength: Number.POSITIVE_INFINITY,
} as const

/** Everything that a program could print of a value, by printing method. */
export function printed(value: unknown): Record<string, string> {
  const attempt = (print: () => unknown): string => {
    try {
      return String(print())
    } catch (error) {
      // The error of a failed attempt may contain the value, too.
      return error instanceof Error ? `threw ${error.message}` : 'threw'
    }
  }
  return {
    String: attempt(() => value),
    'JSON.stringify': attempt(() => JSON.stringify(value)),
    'util.inspect': attempt(() => inspect(value)),
    'util.inspect of all': attempt(() => inspect(value, ALL)),
    'util.inspect without our own view': attempt(() => inspect(value, { ...ALL, customInspect: false })),
    structuredClone: attempt(() => inspect(structuredClone(value), { ...ALL, customInspect: false })),
    spread: attempt(() => (typeof value === 'object' ? inspect({ ...value }, ALL) : '')),
    'a walk over all properties': attempt(() => walked(value)),
  }
}

/** Built-in prototypes, whose members belong to the platform or are read separately below. */
const BUILT_IN = new Set<object>(
  [Object, Array, Function, Error, Map, Set, Date, RegExp, Promise, Uint8Array, ArrayBuffer].map(
    ({ prototype }) => prototype as object,
  ),
)

/**
 * Collects what crash reporters do: every property of every object, enumerable or not, own or
 * inherited, with a string or symbol as name, and the content of collections, headers, bodies and
 * bytes.
 */
export function walked(root: unknown): string {
  const seen = new Set<unknown>()
  const texts: string[] = []
  const pending: unknown[] = [root]
  while (pending.length > 0) {
    const value = pending.pop()
    if (typeof value === 'symbol') texts.push(value.description ?? '')
    else if (typeof value === 'function') texts.push(value.name)
    else if (typeof value !== 'object' || value === null) texts.push(String(value))
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) continue
    if (seen.has(value)) continue
    seen.add(value)
    if (value instanceof ArrayBuffer) pending.push(Buffer.from(value).toString('latin1'))
    else if (ArrayBuffer.isView(value)) {
      pending.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('latin1'))
      continue
    }
    if (value instanceof Headers || value instanceof Map || value instanceof URLSearchParams)
      for (const [key, field] of value) pending.push(key, field)
    else if (value instanceof Set) pending.push(...value)
    for (
      let link: object | null = value;
      link !== null && !BUILT_IN.has(link);
      link = Object.getPrototypeOf(link) as object | null
    ) {
      // Skip it: it is read with the object that inherits from it.
      seen.add(link)
      for (const key of Reflect.ownKeys(link)) {
        texts.push(typeof key === 'symbol' ? (key.description ?? '') : key)
        try {
          pending.push(Reflect.get(link, key, value))
        } catch {
          // Skip an accessor that throws.
        }
      }
    }
  }
  return texts.join('\n')
}

/**
 * Reports where a secret is, in which encoding, and how it would be printed.
 *
 * @param values all values that a caller can access, by name
 */
export function leaks(
  secret: string,
  values: Readonly<Record<string, unknown>>,
  spellings: typeof spellingsIn = spellingsIn,
): string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    Object.entries(printed(value)).flatMap(([how, text]) =>
      spellings(text, secret).map((spelling) => `${name} by ${how}: ${spelling}`),
    ),
  )
}

/**
 * The same with the two most complete printing methods, for harnesses that check a thousand times a
 * second.
 */
export function leaksAtAGlance(
  secret: string,
  values: Readonly<Record<string, unknown>>,
  spellings: typeof spellingsIn = spellingsIn,
): string[] {
  const text = [walked(values), json(values)].join('\n')
  // Only then check all methods.
  return spellings(text, secret).length === 0
    ? []
    : [...leaks(secret, values, spellings), 'found by a glance']
}

function json(value: unknown): string {
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    return ''
  }
}

/** Skip a file that the database has removed since the folder was read. */
function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

/**
 * Reports the files of a folder (or one file) that contain a secret: databases, their logs and
 * other files.
 */
export function leaksInFiles(secret: string, path: string): string[] {
  const files = statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name))
    : [path]
  return files
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile())
    .flatMap((file) => {
      const bytes = bytesOf(file)
      return spellingsOf(secret)
        .filter(({ text }) => bytes.includes(text, 0, 'utf8') || bytes.includes(text, 0, 'utf16le'))
        .map(({ how }) => `${file}: ${how}`)
    })
}
