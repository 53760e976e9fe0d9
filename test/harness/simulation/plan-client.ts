import type { ClientOptions, Schemas } from '../../../src/options.ts'
import type { CreateOrderRequest } from '../../../src/schemas/order.ts'
import { resolveSettings, type Settings } from '../../../src/settings/resolve.ts'
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

const resolved = new Map<string, Settings<Schemas>>()

/**
 * A client's checked options with all defaults. Cached, because checking is slow and few options
 * differ.
 */
export function settingsOf(plan: Plan, baseUrl: string): Settings<Schemas> {
  const options = { ...optionsOf(plan), baseUrl }
  const name = JSON.stringify(options)
  const known = resolved.get(name)
  if (known !== undefined) return known
  const settings = resolveSettings<Schemas>({ ...options, apiKey: 'replaced' }, {})
  resolved.set(name, settings)
  return settings
}
