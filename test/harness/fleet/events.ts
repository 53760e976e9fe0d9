/** What a process of the fleet writes down about itself, a line of JSON each, in the order in which it happened to it. */
import type { StoredRow } from '../../../src/stores/store.ts'
import type { Recovered, Told } from '../../support/run-log.ts'
import type { StoreAddress } from './open-store.ts'

/** Milliseconds of a clock that all processes of a machine share and that nobody sets. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** The header by which the service tells whose request it is. */
export const CALL_HEADER = 'x-fleet-call'

/** What a process's client is given. */
export interface Limits {
  readonly timeout: number
  readonly totalTimeout: number
  readonly maxRetries: number
  readonly safeRetryWindow: number
}

/** What the parent passes as JSON in the first argument of a process. */
export interface Task extends Limits {
  /** Made part of the names of its calls. */
  readonly name: string
  readonly seed: number
  readonly baseUrl: string
  readonly apiKey: string
  readonly store: StoreAddress
  /** File to write the events to. */
  readonly log: string
  readonly references: readonly string[]
  /** Those of the references that the wallet cannot pay for. */
  readonly dear?: readonly string[]
  /**
   * `race`: asks for every order until it is told that there is one, or often enough. `finish`: does what a person does
   * when everything is quiet again, until every order exists.
   */
  readonly role: 'race' | 'finish'
  readonly concurrency: number
  /** What a replacement does before it joins the race. */
  readonly recover: 'no' | 'yes' | 'takeOver'
}

/** One line. `call` is missing where nobody's call is at work. */
export type FleetEvent = {
  /** {@link machineTime}. */
  readonly at: number
  /** The clock that claims go by. */
  readonly wall: number
} & (
  | {
      readonly event: 'began'
      readonly call: string
      readonly kind: 'create' | 'recover' | 'resolve'
      readonly reference?: string
    }
  /** By now the client has looked at its clock for this call; writing `began` down may have taken its time. */
  | { readonly event: 'called'; readonly call: string }
  /** `waiting`: the store has not answered all of the call yet. */
  | { readonly event: 'told'; readonly call: string; readonly told: Told; readonly waiting: boolean }
  | { readonly event: 'recovered'; readonly call: string; readonly recovered: readonly Recovered[] }
  | { readonly event: 'resolved'; readonly call: string }
  /** Asks the store for something. */
  | { readonly event: 'asked'; readonly call?: string }
  /** Begins to write a row. */
  | { readonly event: 'writing'; readonly call?: string; readonly row: StoredRow }
  /** The store confirmed that it wrote the row. */
  | { readonly event: 'wrote'; readonly call?: string; readonly row: StoredRow }
  /** The store returned the row. */
  | { readonly event: 'saw'; readonly call?: string; readonly row: StoredRow }
  | { readonly event: 'store_failed'; readonly call?: string }
  /** The ending could not be stored and is tried again in the background. */
  | { readonly event: 'unstored'; readonly call?: string }
  /** Is about to send an order under this key. */
  | { readonly event: 'sending'; readonly call?: string; readonly key: string }
  /** An answer was read. */
  | { readonly event: 'heard'; readonly call?: string; readonly requestId: string }
)

type WithoutTime<Event> = Event extends FleetEvent ? Omit<Event, 'at' | 'wall'> : never
/** A line without its times. */
export type Happening = WithoutTime<FleetEvent>
