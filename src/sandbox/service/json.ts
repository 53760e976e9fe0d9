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

/** One step of a JSON patch (RFC 6902). `move`, `copy` and `test` are not supported. */
export interface JsonPatchStep {
  /** The kind of change. `replace` also adds a missing field. */
  readonly op: 'add' | 'replace' | 'remove'
  /** JSON pointer (RFC 6901), for example `/amount` or `/data/0/id`. */
  readonly path: string
  /** The new value, for `add` and `replace`. */
  readonly value?: unknown
}

/**
 * A step changes nothing if the parent of its path does not exist, because a fault rule may match
 * responses of different shapes.
 */
export function patchJson(document: unknown, steps: readonly JsonPatchStep[]): unknown {
  let result: unknown = structuredClone(document)
  for (const step of steps) {
    const names = step.path
      .split('/')
      .slice(1)
      .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    const last = names.pop()
    if (last === undefined) {
      result = step.op === 'remove' ? null : step.value
      continue
    }
    let parent: unknown = result
    for (const name of names) parent = isContainer(parent) ? Reflect.get(parent, name) : undefined
    if (isContainer(parent)) patchField(parent, last, step)
  }
  return result
}

function patchField(parent: object, name: string, step: JsonPatchStep): void {
  if (Array.isArray(parent)) {
    const index = name === '-' ? parent.length : Number(name)
    if (!Number.isInteger(index) || index < 0 || index > parent.length) return
    parent.splice(index, step.op === 'add' ? 0 : 1, ...(step.op === 'remove' ? [] : [step.value]))
  } else if (step.op === 'remove') {
    Reflect.deleteProperty(parent, name)
  } else {
    // Assigning to a field named `__proto__` would change the prototype.
    Object.defineProperty(parent, name, {
      value: step.value,
      writable: true,
      enumerable: true,
      configurable: true,
    })
  }
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function nestsDeeperThan(text: string, limit: number): boolean {
  let depth = 0
  for (const [bracket] of text.replace(/"(?:[^"\\]+|\\.)*"/gs, '').matchAll(/[[\]{}]/g)) {
    depth += bracket === '[' || bracket === '{' ? 1 : -1
    if (depth > limit) return true
  }
  return false
}
