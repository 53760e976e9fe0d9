import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { caller } from './caller.ts'
import { complaintAbout, description, operations, problemOf, type Schema } from './description.ts'

const { schemas } = description.components

/** Fields that the API document shows, by the schema that has them. */
const documented: Readonly<Record<string, readonly string[]>> = {
  CreateOrderRequest: ['serviceId', 'target', 'quantity', 'metadata', 'metadata.externalOrderId'],
  Order: ['id', 'status', 'amount'],
  Service: ['productId', 'amount', 'currency', 'minQuantity', 'maxQuantity', 'stepQuantity'],
  Balance: ['amount', 'currency'],
}

/** Every field of a schema with its path, including nested fields. */
function fieldsOf(schema: Schema, prefix = ''): readonly (readonly [path: string, field: Schema])[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => [
    [`${prefix}${name}`, field] as const,
    ...fieldsOf(field, `${prefix}${name}.`),
  ])
}

describe('the OpenAPI description', () => {
  test('the description marks exactly the fields that the API document does not show', () => {
    const unmarked = Object.entries(schemas)
      .filter(([, schema]) => schema.anyOf === undefined && schema['x-not-documented'] !== true)
      .map(([name, schema]) => {
        const fields = fieldsOf(schema).filter(([, field]) => field['x-not-documented'] !== true)
        return [name, fields.map(([path]) => path)] as const
      })
      .filter(([, fields]) => fields.length > 0)
    expect(Object.fromEntries(unmarked)).toEqual(documented)
  })

  test('the description marks every envelope and every error shape', () => {
    const choices = Object.entries(schemas).filter(([, schema]) => schema.anyOf !== undefined)
    expect(choices.map(([name]) => name)).toEqual([
      'OrderListResponse',
      'ServiceListResponse',
      'ErrorResponse',
      'IdempotencyErrorResponse',
    ])
    const resolve = (schema: Schema): Schema | undefined =>
      schema.$ref === undefined ? schema : schemas[schema.$ref.split('/').at(-1) ?? '']
    const unmarked = choices.filter(([, schema]) =>
      schema.anyOf?.some((choice) => resolve(choice)?.['x-not-documented'] !== true),
    )
    expect(unmarked).toEqual([])
    expect(schemas['Pagination']).toMatchObject({ 'x-not-documented': true })
  })

  test('the description has the documented operations, and marks what the API document does not show', () => {
    const summary = operations.map(({ method, path, security, responses, parameters = [] }) => {
      const statuses = Object.entries(responses).map(
        ([status, response]) => `${status}${response['x-not-documented'] === true ? '?' : ''}`,
      )
      const names = parameters.map(
        ({ name, in: place, required = false, schema: { type, default: usual = '' } }) =>
          `${name}:${place}:${type}${required ? '!' : ''}${usual}`,
      )
      return [`${method} ${path}`, security[0].apiKey.join(), ...statuses, ...names].join(' ')
    })
    expect(summary).toEqual([
      'POST /v1/orders orders:write 200? 201 400 401 402 403 404 409 413? 422 Idempotency-Key:header:string!',
      'GET /v1/orders orders:read 200 400? 401 403 limit:query:integer50 offset:query:integer sourceSystem:query:string',
      'GET /v1/orders/{orderId} orders:read 200 401 403 404 orderId:path:string!',
      'GET /v1/services services:read 200 400? 401 403 limit:query:integer50 offset:query:integer',
      'GET /v1/services/{serviceId} services:read 200 401 403 404 serviceId:path:string!',
      'GET /v1/balance balance:read 200 401 403 404',
    ])
  })

  test('the description marks every header of a response', () => {
    const headers = operations.flatMap(({ responses }) =>
      Object.values(responses).flatMap((response) => Object.values(response.headers ?? {})),
    )
    expect(headers.length).toBeGreaterThan(0)
    expect(headers.filter((header) => header['x-not-documented'] !== true)).toEqual([])
  })

  test('the description has valid examples, one for each payload of the API document', () => {
    const named = Object.entries(schemas).filter(([, { examples }]) => examples !== undefined)
    expect(named.map(([name]) => name)).toEqual(Object.keys(documented))
    for (const [name, { examples = [] }] of named)
      for (const example of examples)
        expect(problemOf({ $ref: `#/components/schemas/${name}` }, example, 'closed')).toBe(null)
  })

  test('the description has the example order that the sandbox accepts', async () => {
    const [example] = schemas['CreateOrderRequest']?.examples ?? []
    const { status, body } = await caller(createSandbox()).order('k', example)
    expect(status).toBe(201)
    expect(Object.keys(Object(body))).toEqual(expect.arrayContaining([...(documented['Order'] ?? [])]))
  })
})

describe('the check of answers', () => {
  type Changes = { status?: number; body?: unknown; type?: string }
  test.each<[string, Changes, complaint: string | null]>([
    ['nothing in an answer as it is', {}, null],
    ['a field that is not described', { body: { amount: 1, currency: 'EUR', owner: 'me' } }, 'additional'],
    ['a field of another type', { body: { amount: '1', currency: 'EUR' } }, 'must be integer'],
    ['a missing field', { body: { amount: 1 } }, "required property 'currency'"],
    ['a status that is not described', { status: 409 }, 'retrieveBalance 409 is not described'],
    ['another content type', { type: 'text/html' }, 'the content type text/html is not described'],
  ])('the check of responses finds %s', async (_title, changes, complaint) => {
    const sandbox = createSandbox()
    const { status, headers, body } = await caller(sandbox).get('/v1/balance')
    const request = sandbox.requests[0] ?? expect.unreachable()
    if (changes.type !== undefined) headers.set('content-type', changes.type)
    const found = complaintAbout(sandbox, request, { status, headers, body, ...changes })
    if (complaint === null) expect(found).toBe(null)
    else expect(found).toContain(complaint)
  })
})
