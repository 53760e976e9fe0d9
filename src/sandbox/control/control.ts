import type { Sandbox } from '../sandbox.ts'
import {
  defaultBehaviour,
  type SandboxBehaviour,
  type SandboxPreset,
  withBehaviour,
} from '../service/behaviour.ts'
import { readFaultRules } from '../service/fault-rules.ts'
import { parseJson } from '../service/json.ts'
import { anything, assertShape, fieldsOf, number, record, text } from '../service/shape.ts'
import { readState } from '../service/state.ts'
import { pageContent, presetOf } from './overview.ts'

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

type Action = (request: ControlRequest, id: string) => ControlAnswer

const topUpShape = record({ customer: text(), amount: number() })
const statusShape = record({ status: text(/./, 'a status') })
/** Checks only the names: `withBehaviour` checks the values. */
const behaviourShape = fieldsOf<NewBehaviour>('preset', 'behaviour')

interface NewBehaviour {
  readonly preset?: SandboxPreset
  readonly behaviour?: Partial<SandboxBehaviour>
}

/** By method, path and query parameters. `ID` stands for one segment of the path. */
function actionsOf(sandbox: Sandbox): Readonly<Record<string, Action>> {
  const show = (): ControlAnswer => ok({ preset: presetOf(sandbox.behaviour), behaviour: sandbox.behaviour })
  const actions: Readonly<Record<string, Action>> = {
    'GET /': () => ok(Object.keys(actions)),
    'GET /page': () => ok(pageContent(sandbox, Date.now())),
    'GET /requests?after&limit': ({ query }) => {
      const after = integer(query, 'after', 0)
      const limit = integer(query, 'limit', 1000)
      return ok(sandbox.requests.filter((request) => request.number > after).slice(0, limit))
    },
    'GET /ledger?reference': ({ query }) => {
      const reference = query.get('reference')
      return ok(
        sandbox.ledger.filter(
          ({ externalOrderId, idempotencyKey }) =>
            reference === null || reference === externalOrderId || reference === idempotencyKey,
        ),
      )
    },
    'GET /faults': () => ok(sandbox.faults.list()),
    'POST /faults': ({ body }) => {
      const value = parseJson(body)
      const rules = readFaultRules(Array.isArray(value) ? value : [value])
      for (const rule of rules) sandbox.faults.add(rule)
      const all = sandbox.faults.list()
      return { status: 201, body: all.slice(all.length - rules.length) }
    },
    'DELETE /faults': () => {
      sandbox.faults.clear()
      return ok([])
    },
    'DELETE /faults/ID': (_, id) =>
      sandbox.faults.remove(Number(id))
        ? ok(sandbox.faults.list())
        : refusal(404, `there is no fault rule ${id}; GET /__sandbox/faults lists all`),
    'GET /behaviour': show,
    'PUT /behaviour': ({ body }) => {
      const value = parseJson(body)
      assertShape<NewBehaviour>(value, behaviourShape, '$')
      const { preset = 'default', behaviour = {} } = value
      sandbox.configure(withBehaviour(withBehaviour(defaultBehaviour, preset), behaviour))
      return show()
    },
    'PATCH /behaviour': ({ body }) => {
      const value = parseJson(body)
      assertShape<Partial<SandboxBehaviour>>(value, anything, '$')
      sandbox.configure(value)
      return show()
    },
    'GET /state': () => ok(sandbox.dump()),
    'PUT /state': ({ body }) => {
      sandbox.load(readState(parseJson(body)))
      return ok({})
    },
    'PUT /orders/ID/status': ({ body }, id) => {
      const value = parseJson(body)
      assertShape<{ status: string }>(value, statusShape, '$')
      sandbox.setOrderStatus(id, value.status)
      return ok(sandbox.orders().find((row) => row.id === id))
    },
    'POST /top-up': ({ body }) => {
      const value = parseJson(body)
      assertShape<{ customer: string; amount: number }>(value, topUpShape, '$')
      sandbox.topUp(value.customer, value.amount)
      return ok(sandbox.customer(value.customer))
    },
    'POST /forget-keys': () => {
      sandbox.forgetKeys()
      return ok({})
    },
    'POST /reset': () => {
      sandbox.reset()
      return ok({})
    },
  }
  return actions
}

export function createControl(sandbox: Sandbox): (request: ControlRequest) => ControlAnswer {
  const routes = Object.entries(actionsOf(sandbox)).map(([name, action]) => {
    const [method = '', path = '', parameters = ''] = name.split(/[ ?]/)
    return { method, segments: path.split('/'), parameters: parameters.split('&').filter(Boolean), action }
  })
  return (request) => {
    const { method, path, query } = request
    const given = path.split('/')
    const there = routes.filter(
      ({ segments }) =>
        segments.length === given.length &&
        segments.every((segment, index) => segment === 'ID' || segment === given[index]),
    )
    if (there.length === 0) return refusal(404, `the control API has no path ${JSON.stringify(path)}`)
    const route = there.find((each) => each.method === method)
    if (route === undefined) {
      const allow = there.map((each) => each.method).join(', ')
      return { ...refusal(405, `this path does not support ${method}; use ${allow}`), allow }
    }
    try {
      const { segments, parameters, action } = route
      // Without this check, a misspelt filter would return every row.
      for (const name of query.keys())
        if (!parameters.includes(name))
          throw new TypeError(
            `query: unknown parameter ${JSON.stringify(name)} of ${method} ${path}; ` +
              `known: ${parameters.join(', ') || 'none'}`,
          )
      return action(request, decoded(given[segments.indexOf('ID')] ?? ''))
    } catch (error) {
      if (error instanceof TypeError) return refusal(400, error.message)
      throw error
    }
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
