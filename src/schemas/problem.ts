import { bare, defined, isObject } from '../defined.ts'
import type { IdempotencyCode } from '../errors/statuses.ts'
import { anyObject, parseJson } from './check.ts'

/**
 * Body of an error response.
 *
 * The API document does not show its shape, so the client reads several common shapes: `code` and
 * `message` at the top, inside `error`, in the first of `errors`, or as RFC 9457 problem details.
 */
export interface ErrorResponse {
  readonly [field: string]: unknown
}

export interface Problem {
  /** True if the body seems to be an error of the service: an object with a code or a message. */
  readonly recognised: boolean
  readonly code?: string
  readonly message?: string
  /** The documented code, if exactly one of the two codes is near the top of the body. */
  readonly idempotency?: IdempotencyCode
}

const CODE = ['code', 'errorCode', 'error_code', 'reason']
const MESSAGE = ['message', 'detail', 'title', 'error_description', 'description']

/** Accepts any content and never throws. */
export function readProblem(text: string): Problem {
  const fields: ErrorResponse | undefined = anyObject(parseJson(text)?.json)
  if (fields === undefined) return { recognised: false }
  const { error, errors, type } = bare(fields)
  const places: unknown[] = [fields, error, Array.isArray(errors) ? errors[0] : errors]
  const code =
    find(places, CODE, asCode) ?? asCode(error) ?? (type === 'about:blank' ? undefined : asCode(type))
  const found =
    find(places, MESSAGE, asText) ?? asText(error) ?? asText(Array.isArray(errors) ? errors[0] : undefined)
  const idempotency = documentedCode(fields)
  return {
    recognised: code !== undefined || found !== undefined,
    ...defined({ code: idempotency ?? code, message: found, idempotency }),
  }
}

function find(
  places: readonly unknown[],
  names: readonly string[],
  read: (value: unknown) => string | undefined,
): string | undefined {
  for (const place of places) {
    if (!isObject(place)) continue
    for (const name of names) {
      // Reads own fields only: inherited fields could make a gateway's response look like a refusal
      // by the service.
      if (!Object.hasOwn(place, name)) continue
      const text = read(place[name])
      if (text !== undefined) return text
    }
  }
  return undefined
}

function asText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** A code is short and has no spaces; anything else is a message. */
function asCode(value: unknown): string | undefined {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  return typeof value === 'string' && /^[\w.:/#-]{1,120}$/.test(value) ? value : undefined
}

const DOCUMENTED = /(?:^|[/#:])(IDEMPOTENCY_CONFLICT|IDEMPOTENCY_IN_PROGRESS)$/
const DEEPEST = 4
const MOST_NODES = 200

/** Returns undefined if the body contains both codes, because neither can be trusted then. */
function documentedCode(body: unknown): IdempotencyCode | undefined {
  const found = new Set<string>()
  let level: unknown[] = [body]
  let nodes = 0
  for (let depth = 0; depth <= DEEPEST && level.length > 0; depth++) {
    const next: unknown[] = []
    for (const node of level) {
      if (++nodes > MOST_NODES) break
      if (typeof node === 'string') {
        const code = DOCUMENTED.exec(node)?.[1]
        if (code !== undefined) found.add(code)
      } else if (isObject(node)) next.push(...Object.values(node).slice(0, MOST_NODES))
    }
    level = next
  }
  if (found.size !== 1) return undefined
  return found.has('IDEMPOTENCY_CONFLICT') ? 'IDEMPOTENCY_CONFLICT' : 'IDEMPOTENCY_IN_PROGRESS'
}
