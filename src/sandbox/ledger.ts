import type { SandboxCharge } from './state.ts'

/** Thrown by the ledger's assertions. Test runners show it like an error of `node:assert`. */
export class SandboxAssertionError extends Error {
  override readonly name = 'AssertionError' as const
  readonly code = 'ERR_ASSERTION' as const
  /** Number of charges found. */
  readonly actual: number
  /** Number of charges wanted. */
  readonly expected: number

  constructor(message: string, actual: number, expected: number) {
    super(message)
    this.actual = actual
    this.expected = expected
  }
}

/** Throws unless exactly one charge has the reference; returns that charge. */
export function expectChargedOnce(ledger: readonly SandboxCharge[], reference: string): SandboxCharge {
  const found = chargesFor(ledger, reference)
  const [charge] = found
  if (charge !== undefined && found.length === 1) return charge
  throw failure(`exactly one charge for ${JSON.stringify(reference)}`, found, ledger, 1)
}

/** Throws if any charge has the reference. */
export function expectNotCharged(ledger: readonly SandboxCharge[], reference: string): void {
  const found = chargesFor(ledger, reference)
  if (found.length > 0) throw failure(`no charge for ${JSON.stringify(reference)}`, found, ledger, 0)
}

/** Throws unless there are exactly `count` charges in all. */
export function expectCharges(ledger: readonly SandboxCharge[], count: number): void {
  if (ledger.length !== count)
    throw failure(`${count} ${count === 1 ? 'charge' : 'charges'} in all`, ledger, ledger, count)
}

/** A reference is an externalOrderId or an Idempotency-Key. */
function chargesFor(ledger: readonly SandboxCharge[], reference: string): readonly SandboxCharge[] {
  return ledger.filter(
    (charge) => charge.externalOrderId === reference || charge.idempotencyKey === reference,
  )
}

function failure(
  wanted: string,
  found: readonly SandboxCharge[],
  ledger: readonly SandboxCharge[],
  expected: number,
): SandboxAssertionError {
  const shown = found.length > 0 ? found : ledger
  const lines = shown.slice(0, 10).map((charge) => {
    const reference =
      charge.externalOrderId === undefined
        ? ''
        : `, externalOrderId ${JSON.stringify(charge.externalOrderId)}`
    return `\n  ${charge.orderId}: ${charge.amount} ${charge.currency}, key ${charge.idempotencyKey}${reference}`
  })
  if (shown.length > lines.length) lines.push(`\n  and ${shown.length - lines.length} more`)
  const rest = found.length > 0 || ledger.length === 0 ? ':' : '. The ledger has:'
  const message = `expected ${wanted}, found ${found.length}${lines.length === 0 ? '.' : rest}${lines.join('')}`
  return new SandboxAssertionError(message, found.length, expected)
}
