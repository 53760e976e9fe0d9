import type {
  Balance,
  CreateOrderRequest,
  ErrorResponse,
  Order,
  OrderListResponse,
  Service,
  ServiceListResponse,
  StandardSchemaV1,
} from 'customer-ordering-sdk'
import { describe, expectTypeOf, it } from 'vitest'
import type * as z from 'zod/mini'
import type { balanceSchema } from '../../src/schemas/balance.ts'
import type { createOrderRequestSchema, orderSchema } from '../../src/schemas/order.ts'
import type { errorResponseSchema } from '../../src/schemas/problem.ts'
import type { serviceSchema } from '../../src/schemas/service.ts'

describe('public types', () => {
  it('are what their schemas say', () => {
    expectTypeOf<z.output<typeof orderSchema>>().toEqualTypeOf<Order>()
    expectTypeOf<z.output<typeof serviceSchema>>().toEqualTypeOf<Service>()
    expectTypeOf<z.output<typeof balanceSchema>>().toEqualTypeOf<Balance>()
    expectTypeOf<z.output<typeof createOrderRequestSchema>>().toEqualTypeOf<CreateOrderRequest>()
    expectTypeOf<z.output<typeof errorResponseSchema>>().toEqualTypeOf<ErrorResponse>()
    expectTypeOf<readonly Order[]>().toExtend<OrderListResponse>()
    expectTypeOf<{ readonly data: Order[] }>().toExtend<OrderListResponse>()
    expectTypeOf<readonly Service[]>().toExtend<ServiceListResponse>()
    expectTypeOf<string>().not.toExtend<ServiceListResponse>()
  })

  it('hold the documented fields, and unknown for the others', () => {
    expectTypeOf<Order['id']>().toEqualTypeOf<string>()
    expectTypeOf<Order['status']>().toEqualTypeOf<string>()
    expectTypeOf<Order['amount']>().toEqualTypeOf<number>()
    expectTypeOf<Order['currency']>().toEqualTypeOf<unknown>()
    expectTypeOf<Service['stockState']>().toEqualTypeOf<unknown>()
    expectTypeOf<Balance['reserved']>().toEqualTypeOf<unknown>()
  })

  it('need no metadata in a request, and take other fields', () => {
    const least: CreateOrderRequest = { serviceId: 's', target: 't', quantity: 1 }
    const most: CreateOrderRequest = {
      ...least,
      metadata: { externalOrderId: 'e', note: 5 },
      comments: ['a'],
    }
    expectTypeOf(most.metadata?.externalOrderId).toEqualTypeOf<string | undefined>()
    // @ts-expect-error quantity is a number
    const text: CreateOrderRequest = { serviceId: 's', target: 't', quantity: '1' }
    // @ts-expect-error target is missing
    const short: CreateOrderRequest = { serviceId: 's', quantity: 1 }
    // @ts-expect-error an absent reference is left out, not undefined
    const absent: CreateOrderRequest = { ...least, metadata: { externalOrderId: undefined } }
    expectTypeOf([text, short, absent]).toExtend<CreateOrderRequest[]>()
  })

  it('take schemas of any library that follows Standard Schema', () => {
    expectTypeOf<z.ZodMiniType<{ a: number }>>().toExtend<StandardSchemaV1>()
    expectTypeOf<StandardSchemaV1.InferOutput<z.ZodMiniType<{ a: number }>>>().toEqualTypeOf<{ a: number }>()
  })
})
