import { bare, defined, isObject } from '../defined.ts'

/**
 * Whether the wallet was charged for the order that the caller wants: `'no'`, `'yes'`, or
 * `'unknown'` if neither is proven.
 *
 * It speaks of the order, however many calls and HTTP requests it takes.
 */
export type Charged = 'no' | 'yes' | 'unknown'

/** Permissions that an API key can have (API document, "Authentication"). */
export type Permission = 'orders:write' | 'orders:read' | 'services:read' | 'balance:read'

/** The resource that a 404 reports as missing (API document, "Errors"). */
export type MissingResource = 'order' | 'service' | 'service_or_customer' | 'wallet'

/** The ids that the service asks for in support requests (API document, "POST /v1/orders"). */
export interface SupportReference {
  /** Identifier of the order. */
  readonly orderId?: string
  /** Idempotency-Key of the order. */
  readonly idempotencyKey?: string
  /** The caller's own reference for the order. */
  readonly externalOrderId?: string
}

/** A problem with a value or one of its fields. */
export interface Issue {
  /** Path of the field, for example `metadata.externalOrderId`; empty for the value as a whole. */
  readonly path: string
  /** The problem. Never quotes the value itself. */
  readonly message: string
}

/** Input of the error constructors. An error copies only these fields. */
export interface ErrorFacts {
  /** See {@link CustomerOrderingError.charged}. Default `'no'`. */
  readonly charged?: Charged | undefined
  /** Number of HTTP requests that the call tried to send; 0 if it tried none. */
  readonly attempts?: number | undefined
  /** HTTP status of the last response. */
  readonly status?: number | undefined
  /** Machine-readable code from the service's error body. */
  readonly serverCode?: string | undefined
  /** Message from the service's error body, truncated. Not enumerable and never printed. */
  readonly serverMessage?: string | undefined
  /** Request id from the response's headers. */
  readonly requestId?: string | undefined
  /** Idempotency-Key of the order. */
  readonly idempotencyKey?: string | undefined
  /** The caller's own reference for the order. */
  readonly externalOrderId?: string | undefined
  /** Identifier of the order. */
  readonly orderId?: string | undefined
  /** See {@link InvalidRequestError.issues}. */
  readonly issues?: readonly Issue[] | undefined
  /** See {@link PermissionDeniedError.requiredPermission}. */
  readonly requiredPermission?: Permission | undefined
  /** See {@link NotFoundError.resource}. */
  readonly resource?: MissingResource | undefined
  /** Milliseconds that the service asked the client to wait. */
  readonly retryAfter?: number | undefined
  /** See {@link IdempotencyConflictError.local}. */
  readonly local?: boolean | undefined
  /** See {@link IdempotencyConflictError.fields}. */
  readonly fields?: readonly string[] | undefined
  /** See {@link TimeoutError.deadline}. */
  readonly deadline?: 'attempt' | 'total' | undefined
  /** The error or abort reason that caused this error. */
  readonly cause?: unknown
}

/** Input of the constructor of {@link StoreError}. */
export interface StoreErrorFacts extends ErrorFacts {
  /**
   * `false` only if the write certainly had no effect and will have none later.
   *
   * See {@link StoreError.applied}.
   */
  readonly applied?: false | undefined
}

const BRAND = Symbol.for('customer-ordering-sdk.error')
const INSPECT = Symbol.for('nodejs.util.inspect.custom')

const OPTIONAL = [
  'status',
  'serverCode',
  'requestId',
  'idempotencyKey',
  'externalOrderId',
  'orderId',
  'requiredPermission',
  'resource',
  'retryAfter',
] as const

const PRINTED = ['code', 'charged', 'attempts', ...OPTIONAL, 'local', 'fields', 'deadline', 'issues'] as const

/**
 * Sets the error's name on the prototype, because minification changes class names.
 *
 * Also brands the class, so that `instanceof` recognises errors from both copies of the package
 * (ESM and CommonJS).
 */
export function brand(errorClass: { readonly prototype: Error }, name: string): void {
  Object.defineProperties(errorClass.prototype, {
    name: { value: name, configurable: true, writable: true },
    [BRAND]: { value: name },
  })
}

function inspectView(
  this: CustomerOrderingError,
  _depth: unknown,
  options: object,
  inspect?: (value: unknown, options: object) => string,
): string {
  const { name: _name, message: _message, ...facts } = this.toJSON()
  const shown = inspect === undefined ? JSON.stringify(facts) : inspect(facts, options)
  return `${this.stack ?? this.message} ${shown}`
}

/**
 * Base of all errors of this package.
 *
 * `instanceof` works across the ESM and the CommonJS copy of the package. You can also distinguish
 * errors by `code`.
 */
export class CustomerOrderingError extends Error {
  static {
    brand(this, 'CustomerOrderingError')
    Object.defineProperty(this.prototype, INSPECT, { value: inspectView, configurable: true })
  }

  /** Stable machine-readable kind of the error, one literal per class. */
  readonly code: string = 'error'
  /** Whether the wallet was charged for this order; `'no'` for reads of the service. */
  readonly charged: Charged
  /** Number of HTTP requests that the call tried to send; 0 if it tried none. */
  readonly attempts: number
  /** HTTP status of the last response. */
  declare readonly status?: number
  /** Machine-readable code from the service's error body. */
  declare readonly serverCode?: string
  /**
   * Message from the service's error body, truncated.
   *
   * Not enumerable and never printed, because the service wrote it.
   */
  declare readonly serverMessage?: string
  /** Request id from the response's headers. */
  declare readonly requestId?: string
  /** Idempotency-Key of the order. */
  declare readonly idempotencyKey?: string
  /** The caller's own reference for the order. */
  declare readonly externalOrderId?: string
  /** Identifier of the order, if the service returned it. */
  declare readonly orderId?: string

  constructor(message: string, given: ErrorFacts = {}) {
    const facts = bare(given)
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.charged = facts.charged ?? 'no'
    this.attempts = facts.attempts ?? 0
    for (const name of OPTIONAL) {
      if (facts[name] !== undefined)
        Object.defineProperty(this, name, { value: facts[name], enumerable: true })
    }
    if (facts.serverMessage !== undefined)
      Object.defineProperty(this, 'serverMessage', { value: facts.serverMessage })
  }

  /**
   * The ids to quote to the service's support, if known: order id, Idempotency-Key and reference.
   */
  get supportReference(): SupportReference {
    return supportReference(this)
  }

  /** Returns the error as plain data, without the request, the headers and `serverMessage`. */
  toJSON(): Record<string, unknown> {
    const view: Record<string, unknown> = { name: this.name, message: this.message }
    for (const name of PRINTED) {
      const fact: unknown = Object.hasOwn(this, name) ? Reflect.get(this, name) : undefined
      if (fact !== undefined) view[name] = fact
    }
    return view
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    // A caller's own subclass has no brand, so it needs the standard `instanceof`.
    if (!Object.hasOwn(this.prototype, BRAND)) return Function.prototype[Symbol.hasInstance].call(this, value)
    const wanted: unknown = Reflect.get(this.prototype, BRAND)
    for (let link = value; isObject(link); link = Object.getPrototypeOf(link))
      if (Object.hasOwn(link, BRAND) && link[BRAND] === wanted) return true
    return false
  }
}

export function supportReference(given: SupportReference): SupportReference {
  const { orderId, idempotencyKey, externalOrderId }: SupportReference = bare(given)
  return defined({ orderId, idempotencyKey, externalOrderId })
}
