/** Checks responses against `openapi/customer-ordering.yaml`. */
import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { FaultAction, Sandbox, SandboxOperation, SandboxRequest } from 'customer-ordering-sdk/sandbox'
import { parse } from 'yaml'

/** The parts of a JSON Schema that this check uses. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly examples?: readonly unknown[]
  readonly 'x-not-documented'?: true
}

interface Header {
  readonly schema: Schema
  readonly 'x-not-documented'?: true
}

export interface Response {
  readonly headers?: Readonly<Record<string, Header>>
  readonly content: Readonly<Record<string, { readonly schema: Schema }>>
  readonly 'x-not-documented'?: true
}

export interface Parameter {
  readonly name: string
  readonly in: 'header' | 'path' | 'query'
  readonly required?: boolean
  readonly schema: Schema & { readonly default?: number }
}

export interface Operation {
  readonly operationId: SandboxOperation
  readonly security: readonly [{ readonly apiKey: readonly string[] }]
  readonly parameters?: readonly Parameter[]
  readonly responses: Readonly<Record<string, Response>>
}

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const text = readFileSync(new URL('../../openapi/customer-ordering.yaml', import.meta.url), 'utf8')
const source: Description = parse(text)

/** The whole description. References are resolved, except those to schemas. */
export const description: Description = { ...source, paths: resolved(source.paths) as Description['paths'] }

function resolved(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(resolved)
  if (typeof node !== 'object' || node === null) return node
  const { $ref } = node as { readonly $ref?: string }
  if ($ref !== undefined && !$ref.startsWith('#/components/schemas/'))
    return resolved(
      $ref
        .split('/')
        .slice(1)
        .reduce<unknown>((place, name) => Reflect.get(Object(place), name), source),
    )
  return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, resolved(value)]))
}

/** Every operation with its method and path. */
export const operations: readonly (Operation & { readonly method: string; readonly path: string })[] =
  Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  )

/**
 * The same schema without additional fields: the description must name and mark every field that
 * the sandbox shows beyond the API document. `metadata` belongs to the caller and stays open.
 */
function closed(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closed)
  if (typeof node !== 'object' || node === null) return node
  const copy = Object.fromEntries(Object.entries(node).map(([name, value]) => [name, closed(value)]))
  return copy['properties'] !== undefined && copy['type'] === 'object'
    ? { ...copy, additionalProperties: false }
    : copy
}

const ajv = new Ajv2020({ allErrors: true })
ajv.addVocabulary(['x-not-documented', 'example'])
ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/)
for (const [id, schemas] of [
  ['open', source.components.schemas],
  ['closed', closed(source.components.schemas)],
] as const) {
  const definitions = JSON.parse(JSON.stringify(schemas).replaceAll('#/components/schemas/', `${id}#/$defs/`))
  ajv.addSchema({ $id: id, $defs: definitions })
}

const compiled = new Map<string, ValidateFunction>()

/**
 * The error of a value for a schema of the description, or null. `closed` allows no unnamed field.
 */
export function problemOf(schema: Schema, value: unknown, kind: 'open' | 'closed'): string | null {
  const text = JSON.stringify(kind === 'closed' ? closed(schema) : schema).replaceAll(
    '#/components/schemas/',
    `${kind}#/$defs/`,
  )
  const validate = compiled.get(text) ?? ajv.compile(JSON.parse(text))
  compiled.set(text, validate)
  return validate(value) ? null : ajv.errorsText(validate.errors, { dataVar: 'body' })
}

/**
 * Faults that create or break a response, which the description does not cover. All others leave a
 * valid response.
 */
const ANSWERS_OF_FAULTS: readonly FaultAction['type'][] = [
  'bytes',
  'cutBody',
  'inProgress',
  'stallBody',
  'status',
  'transformBody',
]

/** True if a fault created the response, in this request or in an earlier one with its key. */
function isMadeByFault(sandbox: Sandbox, { faults, idempotencyKey, status }: SandboxRequest): boolean {
  if (faults.some((fault) => ANSWERS_OF_FAULTS.includes(fault))) return true
  const remembered = sandbox
    .keys()
    .filter(({ key, answer }) => key === idempotencyKey && answer?.kind === 'fault')
  return remembered.some(({ answer }) => answer?.kind === 'fault' && answer.status === status)
}

const errorResponse: Response = {
  content: {
    'application/json': { schema: { $ref: '#/components/schemas/ErrorResponse' } },
    'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
  },
}

/** The error of a sandbox response for the description, or null. */
export function complaintAbout(
  sandbox: Sandbox,
  request: SandboxRequest,
  answer: { readonly status: number; readonly headers: Headers; readonly body: unknown },
): string | null {
  if (isMadeByFault(sandbox, request)) return null
  const { status, headers } = answer
  const operation = operations.find(({ operationId }) => operationId === request.operation)
  // The description has no other paths and methods. Their responses must be an ErrorResponse.
  const response = operation === undefined ? errorResponse : operation.responses[status]
  const place = `${request.operation ?? request.path} ${status}`
  if (response === undefined) return `${place} is not described`
  if (operation === undefined && status < 400) return `${place}: there is no such path`
  const type = headers.get('content-type') ?? 'none'
  const content = response.content[type]
  if (content === undefined) return `${place}: the content type ${type} is not described`
  for (const [name, { schema }] of Object.entries(response.headers ?? {})) {
    const value = headers.get(name)
    const problem = value === null ? null : problemOf(schema, value, 'closed')
    if (problem !== null) return `${place}: header ${name}: ${problem}`
  }
  const problem = problemOf(content.schema, withDescribedNames(sandbox, answer.body), 'closed')
  if (problem !== null) return `${place}: ${problem} in ${JSON.stringify(answer.body)}`
  // The description must allow every request that the sandbox accepts.
  if (request.operation !== 'createOrder' || status >= 400 || sandbox.behaviour.fractionalQuantity)
    return null
  const refused = problemOf(
    { $ref: '#/components/schemas/CreateOrderRequest' },
    JSON.parse(request.body),
    'open',
  )
  return refused === null ? null : `${place}: accepted, although ${refused}`
}

/** The stock state has a configurable name and values. The description has the default ones. */
function withDescribedNames({ behaviour }: Sandbox, body: unknown): unknown {
  const { field } = behaviour.stockState
  return field === 'stockState'
    ? body
    : JSON.parse(JSON.stringify(body).replaceAll(`${JSON.stringify(field)}:`, '"stockState":'))
}
