import type { Sandbox } from '../sandbox.ts'
import { defaultBehaviour, type SandboxBehaviour, sandboxPresets } from '../service/behaviour.ts'
import { readFaultRules } from '../service/fault-rules.ts'
import { parseJson } from '../service/json.ts'
import { anything, assertShape, number, oneOf, record, type Shape, text } from '../service/shape.ts'
import { readState } from '../service/state.ts'
import { isPreset, overviewOf, presetOf, withShortSecret } from './overview.ts'

export interface ControlRequest {
  readonly method: string
  /** The path after `/__sandbox`, for example `/faults/3`. */
  readonly path: string
  readonly query: URLSearchParams
  /** JSON. */
  readonly body: string
}

export interface ControlAnswer {
  readonly status: number
  /** Sent as JSON. */
  readonly body: unknown
  /** The Allow header of a 405. */
  readonly allow?: string
}

const QUERY_PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  'GET /requests': ['after', 'limit'],
  'GET /ledger': ['reference'],
  'GET /state': ['secrets'],
}

/** Without this check, a misspelt filter would return every row. */
function rejectUnknownParameters({ method, path, query }: ControlRequest): void {
  const known = QUERY_PARAMETERS[`${method} ${path}`] ?? []
  for (const name of query.keys()) {
    if (known.includes(name)) continue
    const which = known.length === 0 ? 'known: none' : `known: ${known.join(', ')}`
    throw new TypeError(`query: unknown parameter ${JSON.stringify(name)} of ${method} ${path}; ${which}`)
  }
}

type Action = (request: ControlRequest, pathParameters: readonly string[]) => ControlAnswer

const topUpShape = record({ customer: text(), amount: number() })
const statusShape = record({ status: text(/./, 'a status') })
const behaviourShape = record({}, { preset: oneOf(...Object.keys(sandboxPresets)), behaviour: anything })

export function createControl(
  sandbox: Sandbox,
  now: () => number = Date.now,
): (request: ControlRequest) => ControlAnswer {
  const show = (): ControlAnswer => ok({ preset: presetOf(sandbox.behaviour), behaviour: sandbox.behaviour })

  const paths: readonly { readonly pattern: RegExp; readonly actions: Readonly<Record<string, Action>> }[] = [
    { pattern: /^\/?$/, actions: { GET: () => ok(overviewOf(sandbox, now())) } },
    {
      pattern: /^\/requests$/,
      actions: {
        GET: ({ query }) => {
          const after = integer(query, 'after', 0)
          const limit = integer(query, 'limit', 1000)
          return ok(sandbox.requests.filter((request) => request.number > after).slice(0, limit))
        },
      },
    },
    {
      pattern: /^\/ledger$/,
      actions: {
        GET: ({ query }) => {
          const reference = query.get('reference')
          const isMeant = (value: string | undefined): boolean => reference === null || value === reference
          return ok(
            sandbox.ledger.filter(
              (charge) => isMeant(charge.externalOrderId) || isMeant(charge.idempotencyKey),
            ),
          )
        },
      },
    },
    {
      pattern: /^\/faults$/,
      actions: {
        GET: () => ok(sandbox.faults.list()),
        POST: ({ body }) => {
          const value = parseJson(body)
          const rules = readFaultRules(Array.isArray(value) ? value : [value])
          const before = new Set(sandbox.faults.list().map(({ id }) => id))
          for (const rule of rules) sandbox.faults.add(rule)
          return { status: 201, body: sandbox.faults.list().filter(({ id }) => !before.has(id)) }
        },
        DELETE: () => {
          sandbox.faults.clear()
          return ok([])
        },
      },
    },
    {
      pattern: /^\/faults\/(\d{1,15})$/,
      actions: {
        DELETE: (_, [id]) => {
          return sandbox.faults.remove(Number(id))
            ? ok(sandbox.faults.list())
            : refusal(404, `there is no fault rule ${id}; GET /__sandbox/faults lists all`)
        },
      },
    },
    {
      pattern: /^\/behaviour$/,
      actions: {
        GET: show,
        PUT: ({ body }) => {
          const value = parseJson(body)
          assertShape<{ preset?: unknown; behaviour?: unknown }>(value, behaviourShape, '$')
          const preset = isPreset(value.preset) ? sandboxPresets[value.preset] : {}
          sandbox.configure({ ...defaultBehaviour, ...preset, ...switchesOf(value.behaviour ?? {}) })
          return show()
        },
        PATCH: ({ body }) => {
          sandbox.configure(switchesOf(parseJson(body)))
          return show()
        },
      },
    },
    {
      pattern: /^\/state$/,
      actions: {
        GET: ({ query }) => {
          const state = sandbox.dump()
          return ok(
            query.get('secrets') === 'show'
              ? state
              : { ...state, apiKeys: state.apiKeys.map((apiKey) => withShortSecret(apiKey)) },
          )
        },
        PUT: ({ body }) => {
          sandbox.load(readState(parseJson(body)))
          return ok(overviewOf(sandbox, now()))
        },
      },
    },
    {
      pattern: /^\/api-keys\/([^/]+)$/,
      actions: {
        GET: (_, [id]) => {
          const found = sandbox.apiKeys().find((apiKey) => apiKey.id === id)
          return found === undefined
            ? refusal(404, `there is no API key ${JSON.stringify(id)}; GET /__sandbox/state lists all`)
            : ok(found)
        },
      },
    },
    {
      pattern: /^\/orders\/([^/]+)\/status$/,
      actions: {
        PUT: ({ body }, [id = '']) => {
          const value = parseJson(body)
          assertShape<{ status: string }>(value, statusShape, '$')
          sandbox.setOrderStatus(id, value.status)
          return ok(sandbox.orders().find((row) => row.id === id))
        },
      },
    },
    {
      pattern: /^\/top-up$/,
      actions: {
        POST: ({ body }) => {
          const value = parseJson(body)
          assertShape<{ customer: string; amount: number }>(value, topUpShape, '$')
          sandbox.topUp(value.customer, value.amount)
          return ok(sandbox.customer(value.customer))
        },
      },
    },
    {
      pattern: /^\/forget-keys$/,
      actions: {
        POST: () => {
          sandbox.forgetKeys()
          return ok(overviewOf(sandbox, now()).keys)
        },
      },
    },
    {
      pattern: /^\/reset$/,
      actions: {
        POST: () => {
          sandbox.reset()
          return ok(overviewOf(sandbox, now()))
        },
      },
    },
  ]

  return (request) => {
    for (const { pattern, actions } of paths) {
      const match = pattern.exec(request.path)
      if (match === null) continue
      const action = Object.hasOwn(actions, request.method) ? actions[request.method] : undefined
      if (action === undefined) {
        const allow = Object.keys(actions).join(', ')
        return { ...refusal(405, `this path does not support ${request.method}; use ${allow}`), allow }
      }
      try {
        rejectUnknownParameters(request)
        return action(request, match.slice(1).map(decoded))
      } catch (error) {
        if (error instanceof TypeError) return refusal(400, error.message)
        throw error
      }
    }
    return refusal(404, `the control API has no path ${JSON.stringify(request.path)}`)
  }
}

function ok(body: unknown): ControlAnswer {
  return { status: 200, body }
}

export function refusal(status: number, reason: string): ControlAnswer {
  return { status, body: { error: reason } }
}

function integer(query: URLSearchParams, name: string, fallback: number): number {
  const given = query.get(name)
  if (given === null) return fallback
  if (/^\d{1,15}$/.test(given)) return Number(given)
  throw new TypeError(`${name}: expected a whole number of at most 15 digits, got ${JSON.stringify(given)}`)
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new TypeError(`the path has invalid percent-encoding: ${JSON.stringify(segment)}`)
  }
}

const switchesShape: Shape = record(
  {},
  Object.fromEntries(Object.keys(defaultBehaviour).map((name) => [name, anything])),
)

/** Checks only the names: `configure` checks all values before it changes a switch. */
function switchesOf(value: unknown): Partial<SandboxBehaviour> {
  assertShape<Partial<SandboxBehaviour>>(value, switchesShape, 'behaviour')
  return value
}
