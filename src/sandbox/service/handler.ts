import { createOrder } from './create-order.ts'
import type { FaultEnding, FaultPlan, FaultScript } from './fault-script.ts'
import { forgetKeys, rememberFault } from './idempotency.ts'
import { listOrders, listServices, retrieveBalance, retrieveOrder, retrieveService } from './reading.ts'
import type { SandboxDelivery, SandboxMessage, SandboxReply, SandboxRequest } from './reply.ts'
import { type Call, callOf, logEntry, viewOf } from './routing.ts'
import { type Answer, errorAnswer, IN_PROGRESS, jsonAnswer, orderBody, type Refusal } from './wire.ts'
import { findApiKey, type World } from './world.ts'

export const MAX_BODY_BYTES: number = 1024 * 1024

export interface RequestLog {
  readonly requests: SandboxRequest[]
  /** Maximum number of requests in the log. */
  readonly keep: number
}

interface Processed {
  readonly answer: Answer
  readonly charged: boolean
  readonly delivery: SandboxDelivery
  readonly delayMs?: number
}

export function createHandler(
  world: World,
  faults: FaultScript,
  { requests, keep }: RequestLog,
  baseUrl: URL,
): (message: SandboxMessage) => Promise<SandboxReply> {
  return async (message) => {
    const { tables, behaviour } = world
    const call = callOf(message, baseUrl)
    const view = viewOf(call, world)
    const entry = logEntry((requests.at(-1)?.number ?? 0) + 1, message, view, world.now())
    requests.push(entry)
    if (requests.length > keep) requests.shift()

    const planned = (): FaultPlan => {
      const plan = faults.plan(view)
      entry.faults = plan.actions
      return plan
    }
    const processed = await answerTo(world, planned, call).catch(
      (error: unknown): Processed => ({
        answer: sandboxFailed(error, world),
        charged: false,
        delivery: { type: 'complete' },
      }),
    )
    const { answer, charged, delayMs = 0 } = processed
    entry.charged = charged
    if (delayMs > 0)
      await world.sleep(delayMs, message.signal).catch((reason: unknown) => {
        entry.status = 'dropped'
        throw reason
      })
    // If another state was loaded since this request began, act like a restarted service: drop the
    // connection.
    const delivery: SandboxDelivery = world.tables === tables ? processed.delivery : { type: 'drop' }
    const unseen = delivery.type === 'drop' || delivery.type === 'refuse' || delivery.type === 'stall'
    entry.status = unseen ? 'dropped' : answer.status
    entry.delivery = delivery.type
    const { requestIdHeader } = behaviour
    const headers: Record<string, string> = { 'content-type': answer.contentType }
    if (requestIdHeader !== null) headers[requestIdHeader.toLowerCase()] = world.requestIds.id('req')
    const response = {
      headers: Object.assign(headers, answer.headers),
      body: textOf(answer.body),
    }
    entry.response = response
    return { status: answer.status, ...response, delivery, request: entry }
  }
}

async function answerTo(world: World, planned: () => FaultPlan, call: Call): Promise<Processed> {
  const complete: SandboxDelivery = { type: 'complete' }
  const refuse = (refusal: Refusal, headers: Record<string, string> = {}): Processed => {
    const answer = errorAnswer(refusal, world.behaviour)
    return {
      answer: { ...answer, headers: { ...answer.headers, ...headers } },
      charged: false,
      delivery: complete,
    }
  }
  // A UTF-16 code unit takes at most three bytes in UTF-8, so a short body need not be encoded.
  if (call.body.length > MAX_BODY_BYTES / 3 && byteLength(call.body) > MAX_BODY_BYTES)
    return refuse({ status: 413, code: 'PAYLOAD_TOO_LARGE', message: 'The body is larger than 1 MiB.' })

  const plan = planned()
  if (plan.forgetKeys) forgetKeys(world.tables)
  // Do not pass the caller's signal: a real service processes the request even if the caller
  // disconnects.
  if (plan.delay.before > 0) await world.sleep(plan.delay.before)
  const isHarmless =
    plan.ending?.type === 'otherOrder' &&
    (call.operation !== 'createOrder' || otherOrder(world, call) === undefined)
  const ending = isHarmless ? null : plan.ending
  const late = (processed: Processed): Processed =>
    plan.delay.after > 0 ? { ...processed, delayMs: plan.delay.after } : processed
  if (ending !== null && !commits(ending)) {
    if (plan.delay.during > 0) await world.sleep(plan.delay.during)
    return late(withFault(world, ending, call, null))
  }

  let processed: Processed
  if (call.refusal !== null) {
    processed = refuse(call.refusal, call.allow === null ? {} : { allow: call.allow })
  } else if (call.operation === 'createOrder') {
    const { answer, charge } = await createOrder(world, call, {
      extraMs: plan.delay.during,
      dies: ending?.type === 'crash',
    })
    // The 500 is a placeholder that is never sent.
    if (answer === null) return { answer: jsonAnswer(500, null), charged: false, delivery: { type: 'drop' } }
    processed = { answer, charged: charge !== null, delivery: complete }
  } else {
    if (plan.delay.during > 0) await world.sleep(plan.delay.during)
    const answer = read(world, call, plan)
    processed = { answer, charged: false, delivery: complete }
  }
  if (plan.transforms.length > 0)
    processed = { ...processed, answer: transformed(processed.answer, plan, world) }
  if (ending !== null) processed = withFault(world, ending, call, processed)
  return late(processed)
}

function otherOrder(world: World, call: Call): Answer | undefined {
  const { tables, behaviour } = world
  const customerId = findApiKey(tables, call.authorization)?.customerId
  const charge = tables.ledger.findLast(
    (other) => other.customerId === customerId && other.idempotencyKey !== call.idempotencyKey,
  )
  const order = charge && tables.orders.get(charge.orderId)
  return order && jsonAnswer(201, orderBody(order, behaviour, world.now()))
}

function transformed(answer: Answer, plan: FaultPlan, world: World): Answer {
  try {
    const body = plan.transforms.reduce((value, transform) => transform(value), answer.body)
    return { ...answer, body: textOf(body) }
  } catch (error) {
    // Do not throw: the log would then show a charged request as not charged.
    return sandboxFailed(error, world)
  }
}

/** A value without a JSON form, such as a function, becomes null. */
function textOf(body: unknown): string {
  return typeof body === 'string' ? body : (JSON.stringify(body) ?? 'null')
}

function sandboxFailed(error: unknown, world: World): Answer {
  const reason = error instanceof Error ? error.message : String(error)
  const message = `The sandbox failed: ${reason} (the ledger shows whether the request was charged)`
  return errorAnswer({ status: 500, code: 'INTERNAL_ERROR', message }, world.behaviour)
}

function read(world: World, call: Call, plan: FaultPlan): Answer {
  switch (call.operation) {
    case 'listOrders':
      return listOrders(world, call, plan.list)
    case 'retrieveOrder':
      return retrieveOrder(world, call)
    case 'listServices':
      return listServices(world, call, plan.list)
    case 'retrieveService':
      return retrieveService(world, call)
    default:
      return retrieveBalance(world, call)
  }
}

function commits(ending: FaultEnding): boolean {
  const { type } = ending
  if (type === 'drop' || type === 'refuseConnection') return false
  const byDefault = type !== 'stall' && type !== 'status' && type !== 'inProgress'
  return ('commit' in ending ? ending.commit : undefined) ?? byDefault
}

/** What the caller gets. `processed` is null if the service does not process the request. */
function withFault(world: World, ending: FaultEnding, call: Call, processed: Processed | null): Processed {
  // The 500 is a placeholder that is never sent.
  const { answer, charged } = processed ?? { answer: jsonAnswer(500, null), charged: false }
  const delivered = (delivery: SandboxDelivery): Processed => ({ answer, charged, delivery })
  const responded = (other: Answer): Processed => ({ answer: other, charged, delivery: { type: 'complete' } })
  const half = (): number => byteLength(textOf(answer.body)) >> 1
  switch (ending.type) {
    case 'refuseConnection':
      return delivered({ type: 'refuse' })
    case 'drop':
    case 'commitThenDrop':
    case 'crash':
      return delivered({ type: 'drop' })
    case 'stall':
      return delivered({ type: 'stall' })
    case 'cutBody':
      return delivered({ type: 'cut', after: ending.after ?? half(), cleanly: ending.cleanly ?? false })
    case 'stallBody':
      return delivered({ type: 'stallBody', after: ending.after ?? half() })
    case 'inProgress':
      return responded(errorAnswer(IN_PROGRESS, world.behaviour))
    case 'otherOrder':
      return responded(otherOrder(world, call) ?? answer)
    case 'bytes': {
      const { body, contentType = 'application/json' } = ending
      const status = ending.status ?? (processed === null ? 200 : answer.status)
      return responded({ ...answer, status, contentType, body })
    }
    case 'status': {
      const other = faultAnswer(world, ending)
      const { status, contentType, body } = other
      if (status >= 500 && world.behaviour.rememberServerErrors)
        rememberFault(world, call, { kind: 'fault', status, contentType, body: textOf(body) }, charged)
      return responded(other)
    }
  }
}

function faultAnswer(world: World, fault: Extract<FaultEnding, { type: 'status' }>): Answer {
  const { status, json, text, html } = fault
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(fault.headers ?? {})) headers[name.toLowerCase()] = value
  if (json !== undefined) return { ...jsonAnswer(status, JSON.stringify(json)), headers }
  if (text !== undefined) return { ...jsonAnswer(status, text), contentType: 'text/plain', headers }
  if (html === true) {
    const page = `<head><title>${status}</title></head><body><h1>${status}</h1><hr>proxy</body>`
    const body = `<!doctype html>\n<html>${page}</html>\n`
    return { ...jsonAnswer(status, body), contentType: 'text/html', headers }
  }
  const refusal = { status, code: fault.code ?? codeOf(status), message: 'Sent by a fault rule.' }
  const answer = errorAnswer(refusal, world.behaviour)
  return { ...answer, headers: { ...answer.headers, ...headers } }
}

function codeOf(status: number): string {
  const codes = new Map([
    [400, 'INVALID_REQUEST'],
    [401, 'UNAUTHORIZED'],
    [402, 'PAYMENT_REQUIRED'],
    [403, 'FORBIDDEN'],
    [404, 'NOT_FOUND'],
    [429, 'RATE_LIMITED'],
    [500, 'INTERNAL_ERROR'],
    [503, 'SERVICE_UNAVAILABLE'],
  ])
  return codes.get(status) ?? `HTTP_${status}`
}

const encoder: TextEncoder = new TextEncoder()

function byteLength(text: string): number {
  return encoder.encode(text).length
}
