import type { SandboxCharge, SandboxCustomer, SandboxWallet } from './state.ts'

/** Name of an assertion of the sandbox. */
export type SandboxAssertion = 'expectChargedOnce' | 'expectNotCharged' | 'expectCharges' | 'expectBalance'

/** Thrown by the sandbox's assertions. Test runners show it like an error of `node:assert`. */
export class SandboxAssertionError extends Error {
  /** The name that test runners look for. */
  override readonly name = 'AssertionError' as const
  /** The code that test runners look for. */
  readonly code = 'ERR_ASSERTION' as const
  /**
   * False, because the message is specific to this failure.
   *
   * Jest hides the message if this field is true.
   */
  readonly generatedMessage = false as const
  /**
   * The actual number of charges.
   *
   * For `expectBalance`, the amount in minor currency units, or null if there is no wallet.
   */
  readonly actual: number | null
  /** The expected number of charges, or the expected amount. */
  readonly expected: number
  /** The assertion that failed. */
  readonly operator: SandboxAssertion

  constructor(operator: SandboxAssertion, message: string, actual: number | null, expected: number) {
    super(message)
    this.operator = operator
    this.actual = actual
    this.expected = expected
  }
}

/** The assertions of a sandbox. Each reads the sandbox's state at the time of the call. */
export interface SandboxAssertions {
  /**
   * Throws unless exactly one charge has this externalOrderId or Idempotency-Key. Returns that
   * charge.
   *
   * @throws {SandboxAssertionError} with the charges found, or else with all charges, at most 10
   */
  expectChargedOnce(reference: string): SandboxCharge
  /**
   * Throws if any charge has this externalOrderId or Idempotency-Key.
   *
   * @throws {SandboxAssertionError} with the charges found, at most 10
   */
  expectNotCharged(reference: string): void
  /**
   * Throws unless there are exactly `count` charges in all.
   *
   * @throws {SandboxAssertionError} with the charges, at most 10
   */
  expectCharges(count: number): void
  /**
   * Throws unless the customer's wallet holds exactly `amount` minor currency units.
   *
   * Default: the personal customer.
   *
   * @throws {SandboxAssertionError} with the charges to that wallet, at most 10
   * @throws {TypeError} if there is no such customer
   */
  expectBalance(amount: number, customer?: string | { readonly id: string }): void
}

export interface AssertionSources {
  readonly ledger: () => readonly SandboxCharge[]
  readonly customerOf: (customer: string | { readonly id: string }) => SandboxCustomer
}

export function createAssertions({ ledger, customerOf }: AssertionSources): SandboxAssertions {
  const assertions: SandboxAssertions = {
    expectChargedOnce(reference) {
      const found = chargesFor(ledger(), reference)
      const [charge] = found
      if (charge !== undefined && found.length === 1) return charge
      return fail('expectChargedOnce', `exactly one charge for ${JSON.stringify(reference)}`, found, 1)
    },
    expectNotCharged(reference) {
      const found = chargesFor(ledger(), reference)
      if (found.length > 0) fail('expectNotCharged', `no charge for ${JSON.stringify(reference)}`, found, 0)
    },
    expectCharges(count) {
      const found = ledger()
      if (found.length !== count)
        fail('expectCharges', `${count} ${count === 1 ? 'charge' : 'charges'} in all`, found, count)
    },
    expectBalance(amount, customer = 'cus_personal') {
      const { id, wallet } = customerOf(customer)
      // Without a wallet, this comparison fails even for an expected amount of 0.
      if (wallet?.amount === amount) return
      const found = wallet === null ? 'no wallet' : inMinorUnits(wallet)
      const charges = listed(ledger().filter(({ customerId }) => customerId === id))
      throw failure(
        'expectBalance',
        `expected the wallet of ${id} to hold ${amount}, found ${found}. ` +
          (charges === '' ? 'This customer has no charges.' : `Charges:${charges}`),
        wallet?.amount ?? null,
        amount,
      )
    },
  }

  const fail = (
    operator: SandboxAssertion,
    wanted: string,
    found: readonly SandboxCharge[],
    expected: number,
  ): never => {
    const others = listed(found.length > 0 ? found : ledger())
    const rest = others === '' ? '.' : found.length > 0 ? `:${others}` : `. The ledger has:${others}`
    throw failure(operator, `expected ${wanted}, found ${found.length}${rest}`, found.length, expected)
  }

  const failure = (
    operator: SandboxAssertion,
    message: string,
    actual: number | null,
    expected: number,
  ): SandboxAssertionError => {
    const error = new SandboxAssertionError(operator, message, actual, expected)
    // Remove the sandbox's frames from the stack: test runners show the source of the first frame,
    // which must be the test's.
    if ('captureStackTrace' in Error) Error.captureStackTrace(error, assertions[operator])
    return error
  }

  return assertions
}

function chargesFor(ledger: readonly SandboxCharge[], reference: string): readonly SandboxCharge[] {
  return ledger.filter(
    (charge) => charge.externalOrderId === reference || charge.idempotencyKey === reference,
  )
}

function inMinorUnits({ amount, currency }: SandboxWallet): string {
  return `${amount} minor units of ${currency}`
}

function listed(charges: readonly SandboxCharge[]): string {
  const lines = charges.slice(0, 10).map((charge) => {
    const reference =
      charge.externalOrderId === undefined
        ? ''
        : `, externalOrderId ${JSON.stringify(charge.externalOrderId)}`
    const { orderId, amount, currency, idempotencyKey } = charge
    return `\n  ${orderId}: ${inMinorUnits({ amount, currency })}, key ${idempotencyKey}${reference}`
  })
  if (charges.length > lines.length) lines.push(`\n  and ${charges.length - lines.length} more`)
  return lines.join('')
}
