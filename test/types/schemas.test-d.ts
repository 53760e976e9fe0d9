import type {
  Balance,
  CreateOrderRequest,
  ErrorResponse,
  Order,
  OrderListResponse,
  OrderMetadata,
  Service,
  ServiceListResponse,
  StandardSchemaV1,
} from 'customer-ordering-sdk'
import { expectTypeOf, it } from 'vitest'
import type { balanceSchema } from '../../src/schemas/balance.ts'
import type { anyObject } from '../../src/schemas/check.ts'
import type { createOrderRequestSchema, orderSchema, RequestBody } from '../../src/schemas/order.ts'
import type { serviceSchema } from '../../src/schemas/service.ts'

it('public types equal the outputs of their schemas', () => {
  expectTypeOf<StandardSchemaV1.InferOutput<typeof orderSchema>>().toEqualTypeOf<Order>()
  expectTypeOf<StandardSchemaV1.InferOutput<typeof serviceSchema>>().toEqualTypeOf<Service>()
  expectTypeOf<StandardSchemaV1.InferOutput<typeof balanceSchema>>().toEqualTypeOf<Balance>()
  expectTypeOf<StandardSchemaV1.InferOutput<typeof createOrderRequestSchema>>().toEqualTypeOf<RequestBody>()
  expectTypeOf<NonNullable<ReturnType<typeof anyObject>>>().toEqualTypeOf<ErrorResponse>()
  expectTypeOf<readonly Order[]>().toExtend<OrderListResponse>()
  expectTypeOf<{ readonly data: Order[] }>().toExtend<OrderListResponse>()
  expectTypeOf<readonly Service[]>().toExtend<ServiceListResponse>()
  expectTypeOf<string>().not.toExtend<ServiceListResponse>()
})

it('public types have the documented fields, and no others', () => {
  type Rules = 'minQuantity' | 'maxQuantity' | 'stepQuantity'
  // `test/package/consumer` declares `createdAt`, as a user may.
  expectTypeOf<Exclude<keyof Order, 'createdAt'>>().toEqualTypeOf<'id' | 'status' | 'amount'>()
  expectTypeOf<keyof Balance>().toEqualTypeOf<'amount' | 'currency'>()
  expectTypeOf<keyof Service>().toEqualTypeOf<'productId' | 'amount' | 'currency' | Rules>()
  // @ts-expect-error misspelt
  expectTypeOf<Order['stauts']>().toBeUndefined()
})

it('a request needs no metadata, and accepts any keys only there', () => {
  const least: CreateOrderRequest = { serviceId: 's', target: 't', quantity: 1 }
  const most: CreateOrderRequest = { ...least, metadata: { externalOrderId: 'e' } }
  expectTypeOf(most.metadata?.externalOrderId).toEqualTypeOf<string | undefined>()
  expectTypeOf<{ cart: number; note: string }>().toExtend<OrderMetadata>()
  // @ts-expect-error a reference is a string
  const numeric: CreateOrderRequest = { ...least, metadata: { externalOrderId: 5 } }
  // @ts-expect-error misspelt
  const misspelt: CreateOrderRequest = { ...least, meta: { externalOrderId: 'e' } }
  // @ts-expect-error misplaced: it is an option of the call
  const misplaced: CreateOrderRequest = { ...least, idempotencyKey: 'k' }
  // @ts-expect-error quantity is a number
  const text: CreateOrderRequest = { serviceId: 's', target: 't', quantity: '1' }
  // @ts-expect-error target is missing
  const short: CreateOrderRequest = { serviceId: 's', quantity: 1 }
  // @ts-expect-error an absent reference is left out, not undefined
  const absent: CreateOrderRequest = { ...least, metadata: { externalOrderId: undefined } }
  expectTypeOf([numeric, text, short, absent, misspelt, misplaced]).toExtend<CreateOrderRequest[]>()
})
