/** The log of a fleet's process about itself: one line of JSON for each event, in its own order. */
import type { StoredRow } from '../../../src/stores/store.ts'
import type { Recovered, Told } from '../../support/run-log.ts'
import type { StoreAddress } from './open-store.ts'

/** Milliseconds of a monotonic clock that all processes of the machine share. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** The header that identifies the process of a request. */
export const CALL_HEADER = 'x-fleet-call'

export interface Limits {
  readonly timeout: number
  readonly totalTimeout: number
  readonly maxRetries: number
  readonly safeRetryWindow: number
}

/** The JSON that the parent passes as a process's first argument. */
export interface Task extends Limits {
  /** A part of the names of its calls. */
  readonly name: string
  readonly seed: number
  readonly baseUrl: string
  readonly apiKey: string
  readonly store: StoreAddress
  readonly log: string
  readonly references: readonly string[]
  /** The references that the wallet cannot pay for. */
  readonly dear?: readonly string[]
  /**
   * `race`: calls create() for every order until it exists, or a maximum number of times. `finish`:
   * acts as a person would after all disturbances, until every order exists.
   */
  readonly role: 'race' | 'finish'
  readonly concurrency: number
  /** What a replacement does before it joins the race. */
  readonly recover: 'no' | 'yes' | 'takeOver'
}

/** One line. `call` is missing if no call is running. */
export type FleetEvent = {
  readonly at: number
  /** The clock of the claims. */
  readonly wall: number
} & (
  | {
      readonly event: 'began'
      readonly call: string
      readonly kind: 'create' | 'recover' | 'resolve'
      readonly reference?: string
    }
  /**
   * The client has read its clock for this call by now. Writing `began` may have taken a while.
   * `since`: the wall clock just before.
   */
  | { readonly event: 'called'; readonly call: string; readonly since: number }
  /** `waiting`: the store has not yet responded to every call. */
  | { readonly event: 'told'; readonly call: string; readonly told: Told; readonly waiting: boolean }
  | { readonly event: 'recovered'; readonly call: string; readonly recovered: readonly Recovered[] }
  | { readonly event: 'resolved'; readonly call: string }
  | { readonly event: 'asked'; readonly call?: string }
  | { readonly event: 'writing'; readonly call?: string; readonly row: StoredRow }
  | { readonly event: 'wrote'; readonly call?: string; readonly row: StoredRow }
  | { readonly event: 'saw'; readonly call?: string; readonly row: StoredRow }
  | { readonly event: 'store_failed'; readonly call?: string }
  /** The result could not be stored, and is retried in the background. */
  | { readonly event: 'unstored'; readonly call?: string }
  /** Is about to send an order with this key. */
  | { readonly event: 'sending'; readonly call?: string; readonly key: string }
  | { readonly event: 'heard'; readonly call?: string; readonly requestId: string }
)

type WithoutTime<Event> = Event extends FleetEvent ? Omit<Event, 'at' | 'wall'> : never
export type Happening = WithoutTime<FleetEvent>
