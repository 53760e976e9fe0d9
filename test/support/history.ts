import { expect, test } from 'vitest'
import type { CreateOptions } from '../../src/call-options.ts'
import type { CustomerOrderingClient } from '../../src/client.ts'
import type { ClientOptions } from '../../src/options.ts'
import type { CreateOrderRequest } from '../../src/schemas/order.ts'
import { all } from './calls.ts'
import { failure, Lab, order, told } from './lab.ts'

/**
 * One step of a history, which changes the order r1 or its world and checks the caller's result.
 */
export type Step = (lab: Lab) => unknown

/** The expected state at the end of a history. */
interface Ledger {
  readonly charges?: number
  /** The key of each request as a number: 0 for the first key, 1 for the next. */
  readonly keys?: readonly number[]
  readonly record?: object
}

export type History = readonly [
  title: string,
  steps: readonly Step[],
  ledger: Ledger,
  service?: ConstructorParameters<typeof Lab>[0],
]

export function histories(rows: readonly History[]): void {
  for (const [title, steps, ledger, service] of rows)
    test(title, async () => {
      const lab = new Lab(service)
      for (const step of steps) await step(lab)
      if (ledger.charges !== undefined) lab.sandbox.expectCharges(ledger.charges)
      if (ledger.keys !== undefined) expect(keysOf(lab)).toEqual(ledger.keys)
      if (ledger.record !== undefined) expect(await lab.record('ref:r1')).toMatchObject(ledger.record)
    })
}

/** The keys of all requests as numbers: 0 for the first key, 1 for the next. */
export function keysOf(lab: Lab): readonly number[] {
  const keys = [...new Set(lab.posts.map(({ key }) => key))]
  return lab.posts.map(({ key }) => keys.indexOf(key))
}

export interface Call extends CreateOptions {
  /** The client, or its options. Default: a client of this process. */
  readonly by?: ClientOptions | ((lab: Lab) => CustomerOrderingClient)
  readonly request?: CreateOrderRequest
  /** Expected fields of responseInfo(). */
  readonly info?: object
}

const clientOf = (lab: Lab, by: Call['by'] = {}): CustomerOrderingClient =>
  typeof by === 'function' ? by(lab) : lab.client(by)

/** create() must return the order that the ledger has for the reference or the key. */
export function buys({ by, request = order('r1'), info, ...options }: Call = {}): Step {
  return async (lab) => {
    const result = await told(clientOf(lab, by).orders.create(request, options))
    if (result.error !== undefined) throw result.error
    expect(result.order?.id).toBe(lab.charged(options.idempotencyKey ?? request.metadata?.externalOrderId))
    if (info !== undefined) expect(result.info).toMatchObject(info)
  }
}

/** create() must fail with an error like this. */
export function fails(error: object, { by, request = order('r1'), ...options }: Call = {}): Step {
  return async (lab) =>
    expect(await failure(clientOf(lab, by).orders.create(request, options))).toMatchObject(error)
}

export const REFUSED = { code: 'payment_required', charged: 'no' } as const
export const IN_DOUBT = { charged: 'unknown' } as const

export const drain: Step = (lab) => lab.drain()
export const topUp: Step = (lab) => lab.topUp()
export const wipe: Step = (lab) => lab.wipe()
export const forgetKeys: Step = (lab) => lab.sandbox.forgetKeys()
export const jump =
  (milliseconds: number): Step =>
  (lab) =>
    lab.runtime.jump(milliseconds)
/** Lets time pass for all processes. */
export const passes =
  (milliseconds: number): Step =>
  (lab) =>
    lab.runtime.advance(milliseconds)
export const fault =
  (...rule: Parameters<Lab['fault']>): Step =>
  (lab) =>
    lab.fault(...rule)
/** The next order is charged, and its response is lost. */
export const LOSES_RESPONSE: Step = fault({ type: 'commitThenDrop' })
export const healed: Step = (lab) => lab.sandbox.faults.clear()
/** recover() must report these outcomes. */
export const recovers =
  (...outcomes: readonly string[]): Step =>
  async (lab) =>
    expect((await all(lab.client().orders.recover())).map(({ outcome }) => outcome)).toEqual(outcomes)
export const abandons =
  (
    name: { readonly externalOrderId: string } | { readonly idempotencyKey: string } = {
      externalOrderId: 'r1',
    },
  ): Step =>
  (lab) =>
    lab.client().orders.resolve(name, { as: 'abandoned' })
export const sent =
  (...keys: readonly number[]): Step =>
  (lab) =>
    expect(keysOf(lab)).toEqual(keys)
/** The record of r1 must be like this now. */
export const recorded =
  (record: object): Step =>
  async (lab) =>
    expect(await lab.record('ref:r1')).toMatchObject(record)
/** All requests must have had one key and one body. */
export const sameRequest: Step = (lab) =>
  expect(new Set(lab.posts.map(({ key, body }) => `${key} ${body}`)).size).toBe(1)
export const times = (count: number, ...steps: readonly Step[]): Step[] =>
  Array.from({ length: count }, () => steps).flat()

/** The tests of a table. Each has its own lab, which precedes the values of its row. */
function each<Row extends readonly unknown[] | readonly [unknown]>(
  rows: readonly Row[],
): (title: string, run: (lab: Lab, ...row: [...Row]) => unknown) => void
function each<Value>(
  rows: readonly Value[],
): (title: string, run: (lab: Lab, value: Value) => unknown) => void
function each(rows: readonly unknown[]) {
  return (title: string, run: (lab: Lab, ...row: unknown[]) => unknown): void =>
    test.each(rows)(title, async (...row) => void (await run(new Lab(), ...row)))
}

/** A test with its own lab: `it('is charged once', async (lab) => …)`. */
export const it = Object.assign(
  (title: string, run: (lab: Lab) => unknown): void => test(title, async () => void (await run(new Lab()))),
  { each },
)
