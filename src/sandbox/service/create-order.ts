import type { SandboxBehaviour, SandboxCheck } from './behaviour.ts'
import { forgetExpired, isSamePayload, refuseKeyText, scopeOf } from './idempotency.ts'
import { isJsonObject, type JsonObject } from './json.ts'
import type { Call } from './routing.ts'
import {
  keyRow,
  type SandboxApiKey,
  type SandboxCharge,
  type SandboxKeyAnswer,
  type SandboxKeyEntry,
  type SandboxOrder,
  type SandboxService,
  type Tables,
} from './state.ts'
import { type Answer, errorAnswer, IN_PROGRESS, jsonAnswer, orderBody, type Refusal } from './wire.ts'
import { findApiKey, refuseApiKey, type World } from './world.ts'

export interface Creation {
  /** Null if the creation died before it had a response. */
  readonly answer: Answer | null
  readonly charge: SandboxCharge | null
}

interface ValidBody {
  readonly serviceId: string
  readonly target: string
  readonly quantity: number
  readonly metadata: JsonObject | null
  readonly sourceSystem: string | null
}

interface Run {
  readonly world: World
  readonly tables: Tables
  readonly behaviour: SandboxBehaviour
  readonly call: Call
  readonly apiKey: SandboxApiKey | undefined
  draft: ValidBody | null
  registered: { readonly row: string; readonly entry: SandboxKeyEntry } | null
}

export interface CreationFaults {
  readonly extraMs: number
  /** Whether the creation dies after its key is marked as running, before the charge. */
  readonly dies: boolean
}

export async function createOrder(world: World, call: Call, faults: CreationFaults): Promise<Creation> {
  const { tables, behaviour } = world
  const apiKey = findApiKey(tables, call.authorization)
  const run: Run = {
    world,
    tables,
    behaviour,
    call,
    apiKey,
    draft: null,
    registered: null,
  }
  for (const check of behaviour.checks) {
    if (check === 'key') {
      const known = register(run)
      if (known !== null) return { answer: known, charge: null }
      // Until this request ends, a repeat of it gets IDEMPOTENCY_IN_PROGRESS.
      const time = behaviour.processingTime + faults.extraMs
      if (time > 0) await world.sleep(time)
      else await Promise.resolve()
      if (faults.dies) {
        orphan(run)
        return { answer: null, charge: null }
      }
      continue
    }
    const refusal = checks[check](run)
    if (refusal !== null) return { answer: refuse(run, refusal), charge: null }
  }
  // Check again: during the wait above, another order may have taken the stock or the money.
  const late = checkService(run) ?? checkBalance(run)
  if (late !== null) return { answer: refuse(run, late), charge: null }
  return commit(run)
}

const checks: { readonly [Name in Exclude<SandboxCheck, 'key'>]: (run: Run) => Refusal | null } = {
  auth: (run) => refuseApiKey(run.apiKey, 'orders:write'),
  validation: checkBody,
  service: checkService,
  balance: checkBalance,
}

/** Marks the key as running and returns null, or returns the response that ends the request. */
function register(run: Run): Answer | null {
  const { tables, behaviour, call, apiKey, world } = run
  const problem = refuseKeyText(call.idempotencyKey, behaviour)
  if (problem !== null) return errorAnswer(problem, behaviour)
  // Without an API key, the Idempotency-Key has no scope. The check `auth`, which may run later,
  // rejects the request.
  if (apiKey === undefined || call.idempotencyKey === null) return null
  const scope = scopeOf(apiKey, behaviour)
  const row = keyRow(scope, call.idempotencyKey)
  forgetExpired(tables, row, behaviour, world.now())
  const known = tables.keys.get(row)
  const isFree = known?.answer?.kind === 'free'
  const isSame = known === undefined || isSamePayload(known.payload, call.body, behaviour)
  if (known === undefined || (isFree && (isSame || behaviour.refusedKeysChangePayload))) {
    const entry: SandboxKeyEntry = {
      scope,
      key: call.idempotencyKey,
      payload: call.body,
      startedAt: behaviour.keyLifetimeFrom === 'firstUse' ? (known?.startedAt ?? world.now()) : world.now(),
      orphanedAt: null,
      answer: null,
    }
    run.registered = { row, entry }
    tables.keys.set(row, entry)
    return null
  }
  if (!isSame)
    return errorAnswer(
      {
        status: 409,
        code: 'IDEMPOTENCY_CONFLICT',
        message: 'This Idempotency-Key was used with another payload.',
      },
      behaviour,
    )
  if (known.answer === null || known.answer.kind === 'free') return errorAnswer(IN_PROGRESS, behaviour)
  if (behaviour.keyLifetimeFrom === 'lastUse') tables.keys.set(row, { ...known, startedAt: world.now() })
  return replay(run, known.answer)
}

function replay(run: Run, answer: Exclude<SandboxKeyAnswer, { kind: 'free' }>): Answer {
  const { behaviour, tables, world } = run
  const headers: Record<string, string> = behaviour.replayHeader ? { 'idempotent-replayed': 'true' } : {}
  if (answer.kind === 'refusal') {
    const refusal = errorAnswer(answer, behaviour)
    return { ...refusal, headers: { ...refusal.headers, ...headers } }
  }
  if (answer.kind === 'fault') return { ...answer, headers }
  const order = tables.orders.get(answer.orderId)
  const current = behaviour.replayBody === 'current' && order !== undefined
  const body = current ? orderBody(order, behaviour, world.now()) : answer.body
  return jsonAnswer(behaviour.replayStatus, body, headers)
}

function checkBody(run: Run): Refusal | null {
  const { call, behaviour } = run
  const { reading } = call
  if (!/^application\/json\s*(;|$)/i.test(call.contentType ?? ''))
    return invalid('The Content-Type header must be application/json.')
  if (!reading.ok) return invalid(`The body is not valid: ${reading.problem}.`)
  const body = reading.value
  if (!isJsonObject(body)) return invalid('The body must be a JSON object.')
  const { serviceId, target, quantity, metadata } = body
  const required: readonly string[] = behaviour.requiredFields
  if (typeof serviceId !== 'string' || serviceId === '')
    return invalid('serviceId must be a non-empty string.')
  if (target === undefined ? required.includes('target') : typeof target !== 'string' || target.trim() === '')
    return invalid('target must be a non-blank string.')
  if (typeof quantity !== 'number' || quantity <= 0 || quantity > Number.MAX_SAFE_INTEGER)
    return invalid(`quantity must be a positive number, at most ${Number.MAX_SAFE_INTEGER}.`)
  if (!behaviour.fractionalQuantity && !Number.isInteger(quantity))
    return invalid('quantity must be an integer.')
  if (metadata === undefined ? required.includes('metadata') : !isJsonObject(metadata))
    return invalid('metadata must be an object.')
  const reference = isJsonObject(metadata) ? metadata['externalOrderId'] : undefined
  if (
    reference === undefined
      ? required.includes('externalOrderId')
      : typeof reference !== 'string' || reference === ''
  )
    return invalid('metadata.externalOrderId must be a non-empty string.')
  const source = sourceOf(run, body)
  if (source !== null && typeof source !== 'string') return invalid('sourceSystem must be a string.')
  if (behaviour.unknownFields === 'refuse') {
    const known = ['serviceId', 'target', 'quantity', 'metadata']
    if (behaviour.sourceSystemFrom === 'body') known.push('sourceSystem')
    const unknown = Object.keys(body).find((name) => !known.includes(name))
    if (unknown !== undefined) return invalid(`Unknown field ${JSON.stringify(unknown)}.`)
  }
  run.draft = {
    serviceId,
    target: typeof target === 'string' ? target : '',
    quantity,
    metadata: isJsonObject(metadata) ? metadata : null,
    sourceSystem: source,
  }
  return null
}

function sourceOf(run: Run, body: JsonObject): unknown {
  const { metadata } = body
  switch (run.behaviour.sourceSystemFrom) {
    case 'apiKey':
      return run.apiKey?.sourceSystem ?? null
    case 'body':
      return body['sourceSystem'] ?? null
    case 'metadata':
      return (isJsonObject(metadata) ? metadata['sourceSystem'] : null) ?? null
  }
}

function checkService(run: Run): Refusal | null {
  const { draft, apiKey, tables, behaviour } = run
  // The check `validation` or `auth`, which may run later, rejects the request.
  if (draft === null || apiKey === undefined) return null
  const wallet = tables.customers.get(apiKey.customerId)?.wallet
  if (!wallet)
    return { status: 404, code: 'CUSTOMER_MAPPING_NOT_FOUND', message: 'Customer mapping not found.' }
  const service = tables.services.get(draft.serviceId)
  if (service?.published !== true)
    return { status: 404, code: 'SERVICE_NOT_FOUND', message: 'Service not found.' }
  if (service.currency !== wallet.currency)
    return refused('CURRENCY_MISMATCH', `This service is sold in ${service.currency} only.`)
  if (draft.quantity < service.minQuantity || draft.quantity > service.maxQuantity)
    return refused(
      'QUANTITY_OUT_OF_RANGE',
      `quantity must be from ${service.minQuantity} to ${service.maxQuantity}.`,
    )
  const start = behaviour.stepFrom === 'minimum' ? service.minQuantity : 0
  const steps = (draft.quantity - start) / service.stepQuantity
  // Steps such as 0.1 have no exact binary form, so ignore a tiny remainder.
  if (Math.abs(steps - Math.round(steps)) > 1e-9)
    return refused(
      'QUANTITY_STEP',
      `quantity must be ${start === 0 ? '' : `${start} plus `}a multiple of ${service.stepQuantity}.`,
    )
  if (service.stock !== null && draft.quantity > service.stock)
    return refused('OUT_OF_STOCK', 'The stock of this service is too low.')
  if (!Number.isSafeInteger(costOf(service, draft, behaviour)))
    return refused('AMOUNT_TOO_LARGE', 'The price of the order is above the largest safe integer.')
  return null
}

function checkBalance(run: Run): Refusal | null {
  const { draft, apiKey, tables, behaviour } = run
  if (draft === null || apiKey === undefined) return null
  const wallet = tables.customers.get(apiKey.customerId)?.wallet
  const service = tables.services.get(draft.serviceId)
  if (!wallet || service === undefined || costOf(service, draft, behaviour) <= wallet.amount) return null
  return { status: 402, code: 'PAYMENT_REQUIRED', message: 'The balance of the wallet is too low.' }
}

function costOf(service: SandboxService, draft: ValidBody, behaviour: SandboxBehaviour): number {
  return behaviour.priceIs === 'perUnit' ? Math.round(service.amount * draft.quantity) : service.amount
}

/** Must stay synchronous: during an `await`, another order could spend the same money. */
function commit(run: Run): Creation {
  const { draft, apiKey, tables, behaviour, call, world } = run
  const service = draft === null ? undefined : tables.services.get(draft.serviceId)
  const customer = apiKey === undefined ? undefined : tables.customers.get(apiKey.customerId)
  if (draft === null || !service || !customer?.wallet)
    throw new Error('an order skipped the checks. Please report this bug.')
  const amount = costOf(service, draft, behaviour)
  const { currency } = customer.wallet
  const order: SandboxOrder = {
    id: world.ids.id('ord'),
    customerId: customer.id,
    ...draft,
    amount,
    currency,
    status: null,
    createdAt: world.now(),
  }
  const reference = draft.metadata?.['externalOrderId']
  const charge: SandboxCharge = {
    orderId: order.id,
    amount,
    currency,
    customerId: customer.id,
    idempotencyKey: call.idempotencyKey ?? '',
    ...(typeof reference === 'string' && { externalOrderId: reference }),
    body: call.body,
    at: order.createdAt,
  }
  tables.customers.set(customer.id, {
    ...customer,
    wallet: { amount: customer.wallet.amount - amount, currency },
  })
  if (service.stock !== null)
    tables.services.set(service.productId, { ...service, stock: service.stock - draft.quantity })
  tables.orders.set(order.id, order)
  tables.ledger.push(charge)
  const body = orderBody(order, behaviour, order.createdAt)
  settle(run, { kind: 'order', orderId: order.id, body })
  return { answer: jsonAnswer(201, body), charge }
}

function refuse(run: Run, refusal: Refusal): Answer {
  const { rememberedRefusals, keyLifetimeFrom, refusedKeysChangePayload } = run.behaviour
  const remembered: readonly number[] = rememberedRefusals
  const keepsUse = keyLifetimeFrom === 'firstUse' || !refusedKeysChangePayload
  const answer = remembered.includes(refusal.status)
    ? ({ kind: 'refusal', ...refusal } as const)
    : keepsUse
      ? ({ kind: 'free' } as const)
      : null
  settle(run, answer)
  return errorAnswer(refusal, run.behaviour)
}

function settle(run: Run, answer: SandboxKeyAnswer | null): void {
  const { registered, tables } = run
  if (registered === null) return
  const { row, entry } = registered
  if (answer === null) tables.keys.delete(row)
  else tables.keys.set(row, { ...entry, answer })
}

function orphan(run: Run): void {
  const { registered, tables, world } = run
  if (registered === null) return
  const { row, entry } = registered
  tables.keys.set(row, { ...entry, orphanedAt: world.now() })
}

function invalid(message: string): Refusal {
  return { status: 400, code: 'INVALID_REQUEST', message }
}

function refused(code: string, message: string): Refusal {
  return { status: 422, code, message }
}
