/** A JSON object whose fields are not known in advance. */
export type JsonObject = { readonly [field: string]: unknown }

export type JsonReading =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: string }

/** Without a limit, a deeply nested body could overflow the stack in `sortedJson`. */
const MAX_DEPTH = 64

export function readJson(text: string): JsonReading {
  if (text === '') return { ok: false, problem: 'it is empty' }
  if (nestsDeeperThan(text, MAX_DEPTH))
    return { ok: false, problem: `it is nested deeper than ${MAX_DEPTH} levels` }
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : 'not JSON' }
  }
}

/** @throws {TypeError} with the place and the reason */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new TypeError(`not valid JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`
  if (isJsonObject(value)) {
    const fields = Object.keys(value)
      .sort()
      .map((name) => `${JSON.stringify(name)}:${sortedJson(value[name])}`)
    return `{${fields.join(',')}}`
  }
  return JSON.stringify(value) ?? 'null'
}

/** JSON merge patch (RFC 7396): null removes a field. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch
  const merged = new Map(isJsonObject(target) ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch))
    if (value === null) merged.delete(name)
    else merged.set(name, mergePatch(merged.get(name), value))
  return Object.fromEntries(merged)
}

function nestsDeeperThan(text: string, limit: number): boolean {
  let depth = 0
  for (const [bracket] of text.replace(/"(?:[^"\\]+|\\.)*"/gs, '').matchAll(/[[\]{}]/g)) {
    depth += bracket === '[' || bracket === '{' ? 1 : -1
    if (depth > limit) return true
  }
  return false
}
