import {
  type AnyCustomerOrderingError,
  ApiError,
  type Charged,
  ConflictError,
  type CreateManyFailure,
  type CreateManyResult,
  CustomerOrderingError,
  type IdempotencyConflictError,
  type Issue,
  isCustomerOrderingError,
  type MissingResource,
  type Order,
  type OrderRecord,
  type Permission,
  type RateLimitError,
  type Reconciled,
  type RecoveryOutcome,
  type TimeoutError,
} from 'customer-ordering-sdk'
import { expectTypeOf, it } from 'vitest'

it('errors narrow by code in a switch, which can be exhaustive', () => {
  const told = (error: AnyCustomerOrderingError): unknown => {
    switch (error.code) {
      case 'permission_denied':
        expectTypeOf(error.requiredPermission).toEqualTypeOf<Permission | undefined>()
        return error
      case 'not_found':
        expectTypeOf(error.resource).toEqualTypeOf<MissingResource | undefined>()
        return error
      case 'rate_limit':
        expectTypeOf(error).toEqualTypeOf<RateLimitError>()
        expectTypeOf(error.retryAfter).toEqualTypeOf<number | undefined>()
        return error
      case 'timeout':
        expectTypeOf(error).toEqualTypeOf<TimeoutError>()
        expectTypeOf(error.deadline).toEqualTypeOf<'attempt' | 'total'>()
        return error
      case 'idempotency_conflict':
        expectTypeOf(error).toEqualTypeOf<IdempotencyConflictError>()
        expectTypeOf(error.fields).toEqualTypeOf<readonly string[]>()
        return error
      case 'invalid_response':
        expectTypeOf(error.issues).toEqualTypeOf<readonly Issue[]>()
        return error
      case 'idempotency_in_progress':
      case 'invalid_request':
      case 'configuration':
      case 'store':
      case 'duplicate_order':
      case 'unresolved_order':
      case 'connection':
      case 'aborted':
      case 'api':
      case 'bad_request':
      case 'authentication':
      case 'payment_required':
      case 'conflict':
      case 'order_not_accepted':
      case 'server':
        return error
      default:
        expectTypeOf(error).toBeNever()
        return error
    }
  }
  expectTypeOf(told).toBeFunction()
})

it('all errors have the field charged', () => {
  expectTypeOf<AnyCustomerOrderingError['charged']>().toEqualTypeOf<Charged>()
  expectTypeOf<Charged>().toEqualTypeOf<'no' | 'yes' | 'unknown'>()
  expectTypeOf<CustomerOrderingError['orderId']>().toEqualTypeOf<string | undefined>()
})

it('isCustomerOrderingError distinguishes errors of this package', () => {
  const caught: unknown = new Error('x')
  if (isCustomerOrderingError(caught)) expectTypeOf(caught).toEqualTypeOf<AnyCustomerOrderingError>()
  // @ts-expect-error not known before it was checked
  expectTypeOf(caught.charged).toBeUnknown()
})

it('errors form the documented classes', () => {
  expectTypeOf<IdempotencyConflictError>().toExtend<ConflictError>()
  expectTypeOf<ConflictError>().toExtend<ApiError>()
  expectTypeOf<ApiError>().toExtend<CustomerOrderingError>()
  expectTypeOf<TimeoutError['code']>().toEqualTypeOf<'timeout'>()
  // @ts-expect-error no such code
  const isNo = (error: AnyCustomerOrderingError): boolean => error.code === 'not_a_code'
  expectTypeOf(isNo).toBeFunction()
  expectTypeOf([CustomerOrderingError, ApiError, ConflictError]).toBeArray()
})

it('errors inside results narrow by code as thrown ones do', () => {
  const told = (row: CreateManyResult, outcome: RecoveryOutcome): unknown => {
    if (!row.ok) {
      expectTypeOf(row.error).toEqualTypeOf<AnyCustomerOrderingError>()
      if (row.error.code === 'rate_limit') expectTypeOf(row.error).toEqualTypeOf<RateLimitError>()
    } else expectTypeOf(row.order).toEqualTypeOf<Order>()
    // This also narrows without the discriminant.
    if ('error' in row) expectTypeOf(row).toEqualTypeOf<CreateManyFailure>()
    expectTypeOf(outcome.error).toEqualTypeOf<AnyCustomerOrderingError | undefined>()
    if (outcome.error?.code === 'timeout') expectTypeOf(outcome.error).toEqualTypeOf<TimeoutError>()
    return row
  }
  expectTypeOf(told).toBeFunction()
})

it('lines of a reconciliation are distinguished by kind', () => {
  const told = (line: Reconciled): unknown => {
    switch (line.kind) {
      case 'matched':
      case 'amount_differs':
        expectTypeOf(line.record).toEqualTypeOf<OrderRecord>()
        return line.order
      case 'doubtful':
        expectTypeOf(line.differs).toExtend<readonly string[]>()
        return line.order
      case 'only_local':
        expectTypeOf(line.record).toEqualTypeOf<OrderRecord>()
        expectTypeOf(line.order).toEqualTypeOf<undefined>()
        return line
      case 'only_remote':
        expectTypeOf(line.record).toEqualTypeOf<undefined>()
        expectTypeOf(line.order).toEqualTypeOf<Order | undefined>()
        return line
      default:
        expectTypeOf(line).toBeNever()
        return line
    }
  }
  expectTypeOf(told).toBeFunction()
})
