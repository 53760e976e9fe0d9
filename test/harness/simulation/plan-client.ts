import type { ClientOptions, CreateOrderRequest } from '../../../src/index.ts'
import type { IntentPlan, Plan } from './plan.ts'

export function requestOf(
  { name, externalOrderId, sourceSystem }: IntentPlan,
  quantity: number,
  note: string | undefined,
): CreateOrderRequest {
  const metadata = {
    ...(externalOrderId === undefined ? {} : { externalOrderId }),
    ...(note === undefined ? {} : { note }),
    ...(sourceSystem === undefined ? {} : { sourceSystem }),
  }
  return { serviceId: 'svc_standard', target: name, quantity, metadata }
}

/** The payload as text in the log, which distinguishes orders. */
export function payloadOf({ serviceId, target, quantity }: CreateOrderRequest): string {
  return `${quantity} of ${serviceId} for ${target}`
}

export function optionsOf({ account, client }: Plan): ClientOptions {
  return { ...client, logLevel: 'off', ...(account === undefined ? {} : { account }) }
}
