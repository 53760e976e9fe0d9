/**
 * Looks for a secret in everything that a program could print or keep: what I8 means, used by every harness. The secret
 * is looked for in all the spellings in which one was seen to leave, in the texts of all the ways to print a value, and
 * in the bytes of files.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'

/** One way to write a secret. */
export interface Spelling {
  readonly how: string
  readonly text: string
  /** True for a piece of the secret as it is. */
  readonly part: boolean
}

/** Shorter forms, as base64 leaves of a short secret, are found in any text. */
const SHORTEST = 8

const known = new Map<string, readonly Spelling[]>()

/** All spellings in which a secret could leave, whatever stands around it. */
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
    // What is left of a key that was cut somewhere.
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

/** The characters of a longer text's base64 that depend on the secret alone, which begins so many bytes into a group. */
function withinBase64(bytes: Buffer, position: number): string {
  const text = Buffer.concat([Buffer.alloc(position), bytes])
    .toString('base64')
    .replace(/=+$/, '')
  const first = Math.ceil((position * 8) / 6)
  const last = Math.floor(((position + bytes.length) * 8) / 6)
  return text.slice(first, last)
}

/** The spellings of a secret that stand in a text. */
export function spellingsIn(text: string, secret: string): string[] {
  return spellingsOf(secret)
    .filter((spelling) => text.includes(spelling.text))
    .map(({ how }) => how)
}

/** The same but for pieces of the secret, for texts in which somebody else has broken it to pieces before. */
export function wholeSpellingsIn(text: string, secret: string): string[] {
  return spellingsOf(secret)
    .filter((spelling) => !spelling.part && text.includes(spelling.text))
    .map(({ how }) => how)
}

const ALL = {
  depth: Number.POSITIVE_INFINITY,
  showHidden: true,
  getters: true,
  maxStringLength: null,
  maxArrayLength: null,
  breakLength: Number.POSITIVE_INFINITY,
} as const

/** Everything that a program could print of a value, by how it does it. */
export function printed(value: unknown): Record<string, string> {
  const attempt = (print: () => unknown): string => {
    try {
      return String(print())
    } catch (error) {
      // What a failed attempt says may hold the value, too.
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

/** Built-in prototypes: what is inherited from them is the platform's own, or is read by its own means below. */
const BUILT_IN = new Set<object>(
  [Object, Array, Function, Error, Map, Set, Date, RegExp, Promise, Uint8Array, ArrayBuffer].map(
    ({ prototype }) => prototype as object,
  ),
)

/**
 * What crash reporters do: every property of every object, enumerable or not, own or inherited, named by a text or a
 * symbol, and what collections, headers, bodies and bytes hold.
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
      // Read with the object that inherits from it, so not once more as the prototype of its constructor.
      seen.add(link)
      for (const key of Reflect.ownKeys(link)) {
        texts.push(typeof key === 'symbol' ? (key.description ?? '') : key)
        try {
          pending.push(Reflect.get(link, key, value))
        } catch {
          // An accessor that throws shows nothing.
        }
      }
    }
  }
  return texts.join('\n')
}

/**
 * Says where a secret is, in which spelling, and how it would come out.
 * @param values everything that a caller can get hold of, by a name for the report
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

/** The same by the two ways that show nearly everything, for harnesses that look a thousand times a second. */
export function leaksAtAGlance(
  secret: string,
  values: Readonly<Record<string, unknown>>,
  spellings: typeof spellingsIn = spellingsIn,
): string[] {
  const text = [walked(values), json(values)].join('\n')
  // Only then is it worth a closer look.
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

/** Nothing where a database has removed the file since the folder was read. */
function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

/** Says which files of a folder, or which one file, hold a secret: databases, their logs and whatever lies beside. */
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
