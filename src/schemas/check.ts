import * as z from 'zod/mini'
import { isObject } from '../defined.ts'
import type { Issue } from '../errors/classes.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

export interface JsonObject {
  readonly [field: string]: unknown
}

/**
 * False for an object with a field of its own named `__proto__`: accepted values are returned
 * unchanged, and only a schema removes that field.
 */
export function isJsonObject(value: unknown): value is JsonObject {
  if (!isObject(value) || Object.hasOwn(value, '__proto__')) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Removes the field `__proto__` of an object. Returns undefined for other values. */
export function anyObject(value: unknown): JsonObject | undefined {
  if (isJsonObject(value)) return value
  const parsed = z.safeParse(z.looseObject({}), value)
  return parsed.success ? parsed.data : undefined
}

export type Checked<T> = { readonly value: T } | Wrong

interface Wrong {
  readonly issues: readonly Issue[]
}

export function wrong(message: string, path = ''): Wrong {
  return { issues: [{ path, message }] }
}

/** An empty body, as in a 204, counts as JSON with the value undefined. */
export function parseJson(text: string): { readonly json: unknown } | undefined {
  if (text === '') return { json: undefined }
  try {
    return { json: JSON.parse(text) }
  } catch {
    return undefined
  }
}

export function check<T>(
  schema: StandardSchemaV1<unknown, T>,
  value: unknown,
): Checked<T> | Promise<Checked<T>> {
  try {
    const result = schema['~standard'].validate(polluted() ? owned(value, 2) : value)
    // Does not use `instanceof Promise`: a schema may come from another realm, or use its own
    // promises.
    return 'then' in result ? Promise.resolve(result).then(toChecked).catch(schemaThrew) : toChecked(result)
  } catch {
    return schemaThrew()
  }
}

/** For this package's own schemas, which are sync. */
export function checkNow<T>(schema: StandardSchemaV1<unknown, T>, value: unknown): Checked<T> {
  const checked = check(schema, value)
  return checked instanceof Promise ? schemaThrew() : checked
}

/** Comparing the number of properties is not enough, because some platforms have no `__proto__`. */
const STANDARD_PROPERTIES: ReadonlySet<PropertyKey> = new Set([
  ...['constructor', 'hasOwnProperty', 'isPrototypeOf', 'propertyIsEnumerable', 'toLocaleString', 'toString'],
  ...['valueOf', '__proto__', '__defineGetter__', '__defineSetter__', '__lookupGetter__', '__lookupSetter__'],
])

export function polluted(): boolean {
  return Reflect.ownKeys(Object.prototype).some((name) => !STANDARD_PROPERTIES.has(name))
}

/** Returns a copy without inherited properties, which could be mistaken for fields of the data. */
function owned(value: unknown, depth: number): unknown {
  if (!isObject(value) || Array.isArray(value) || depth === 0) return value
  const own: Record<string, unknown> = Object.create(null)
  for (const [name, field] of Object.entries(value)) own[name] = owned(field, depth - 1)
  return own
}

function toChecked<T>(result: StandardSchemaV1.Result<T>): Checked<T> {
  if (result.issues === undefined) return { value: result.value }
  return { issues: result.issues.map(({ path, message }) => ({ path: pathText(path), message })) }
}

function schemaThrew(): Wrong {
  return wrong('made the schema throw instead of reporting issues')
}

function pathText(path: StandardSchemaV1.Issue['path']): string {
  let text = ''
  for (const segment of path ?? []) {
    const key = typeof segment === 'object' ? segment.key : segment
    text += typeof key === 'number' ? `[${key}]` : `${text === '' ? '' : '.'}${String(key)}`
  }
  return text
}

/** The path to a deeply nested field can have thousands of characters. */
const LONGEST_PATH = 80

function shortened(path: string): string {
  return path.length > LONGEST_PATH ? `${path.slice(0, LONGEST_PATH)}…` : path
}

/**
 * Returns one line, such as "`amount` is missing, `id` must not be blank". A schema may quote the service,
 * whose control characters could forge lines of a log.
 */
export function issuesText(issues: readonly Issue[]): string {
  const shown = issues
    .slice(0, 3)
    .map(
      ({ path, message }) =>
        `${path === '' ? 'it' : `\`${shortened(path)}\``}${/^[A-Z]/.test(message) ? ':' : ''} ${message}`,
    )
  const more = issues.length > shown.length ? ` and ${issues.length - shown.length} more` : ''
  return `${shown.join(', ')}${more}`.replace(/[\p{C}\p{Z}]/gu, ' ')
}
