import type { SandboxBehaviour, SandboxPreset } from './behaviour.ts'
import type { FaultRule } from './faults.ts'
import {
  anything,
  code,
  either,
  fieldsOf,
  isFunction,
  listOf,
  number,
  oneOf,
  record,
  type Shape,
} from './shape.ts'
import type { SandboxCustomer, SandboxOrder, SandboxPermission, SandboxService } from './state.ts'
import type { SandboxSleep } from './world.ts'

/** Options of `createSandbox`. */
export interface SandboxOptions {
  /** Base URL of the service. Default `https://sandbox.customer-ordering.test`. */
  readonly baseUrl?: string
  /**
   * Seed for ids, shuffled lists and random faults.
   *
   * Default 1. With the same seed, the same calls get the same ids, lists and faults.
   */
  readonly seed?: number
  /** Preset to start from. Default `'default'`. */
  readonly preset?: SandboxPreset
  /** Individual switches, which override the preset. */
  readonly behaviour?: Partial<SandboxBehaviour>
  /** Initial fault rules, which `sandbox.reset()` restores. Default: none. */
  readonly faults?: readonly FaultRule[]
  /** Balance of each of the two wallets, in minor currency units. Default 1,000,000. */
  readonly balance?: number
  /** Currency of wallets and catalogue. Default `'EUR'`. */
  readonly currency?: string
  /** The personal API key. Default: derived from the seed. */
  readonly apiKey?: string
  /** The organization's API key. Default: derived from the seed. */
  readonly organizationApiKey?: string
  /** The catalogue. Default: seven services, including `svc_standard`. */
  readonly services?: readonly NewService[]
  /**
   * Maximum number of requests in `sandbox.requests`.
   *
   * At least 1. Older requests are removed from that list. Default: no maximum.
   */
  readonly keepRequests?: number
  /** Returns the time in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  /** Waits for delays and processing times. Default: a timer. */
  readonly sleep?: SandboxSleep
}

const shapes: { readonly [Name in keyof SandboxOptions]-?: Shape } = {
  baseUrl: code(
    'an absolute http or https URL',
    (value) => /^https?:/i.test(String(value)) && URL.canParse(String(value)),
  ),
  seed: number({ min: 0 }),
  preset: anything,
  behaviour: anything,
  faults: listOf(anything),
  balance: anything,
  currency: anything,
  apiKey: anything,
  organizationApiKey: anything,
  services: listOf(anything),
  keepRequests: either('an integer from 1, or Infinity', number({ min: 1 }), oneOf(Infinity)),
  now: isFunction,
  sleep: isFunction,
}

/**
 * Rejects unknown options: with `faults` misspelt, a test could pass without any fault. For
 * `anything`, `createSandbox` checks the value later.
 */
export const optionsShape: Shape = record({}, shapes)

/** A customer for `sandbox.addCustomer`. */
export interface NewCustomer {
  /** Default: derived from the seed. */
  readonly id?: string
  /** Default `'personal'`. */
  readonly type?: SandboxCustomer['type']
  /** Default: an empty wallet in the sandbox's currency. Null: no wallet. */
  readonly wallet?: SandboxCustomer['wallet']
}

export const newCustomerShape: Shape = fieldsOf<NewCustomer>('id', 'type', 'wallet')

/**
 * A service for `sandbox.addService`.
 *
 * Defaults: the sandbox's currency, quantities from 1 to 1000 in steps of 1, unlimited stock,
 * published.
 */
export type NewService = Pick<SandboxService, 'productId' | 'amount'> & Partial<SandboxService>

/** An API key for `sandbox.addApiKey`. */
export interface NewApiKey {
  /** The customer or its id. */
  readonly customer: string | { readonly id: string }
  /** Default: all permissions. */
  readonly permissions?: readonly SandboxPermission[]
  /** The integration that uses the key. Default: none. */
  readonly sourceSystem?: string
  /** The key's secret. Default: derived from the seed. */
  readonly secret?: string
}

export const newApiKeyShape: Shape = fieldsOf<NewApiKey>('customer', 'permissions', 'sourceSystem', 'secret')

/**
 * An order for `sandbox.addOrder`. Absent fields get the values of a plain order of
 * `svc_standard`.
 */
export type NewOrder = Partial<Omit<SandboxOrder, 'customerId'>> & {
  /** The customer or its id. Default: the personal customer. */
  readonly customer?: string | { readonly id: string }
}
