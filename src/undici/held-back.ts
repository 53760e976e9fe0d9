import type { Dispatcher } from 'undici'
import type { TransportRequest } from '../http/transport.ts'

export class HeldBack extends Error {
  readonly why: 'transport_closed' | 'late'
  readonly code: string

  constructor(why: 'transport_closed' | 'late', code: string) {
    super('The request was not sent.')
    this.why = why
    this.code = code
  }
}

/** Options of a request with the check of {@link TransportRequest.isLate}. */
interface TimedOptions extends Dispatcher.DispatchOptions {
  readonly isLate?: TransportRequest['isLate']
}

/**
 * Checks the clock again just before a request is written. Without this check, a machine that slept
 * after the last check would send the request on waking, when the service may have forgotten the
 * request's key.
 */
export function holdIfLate(dispatch: Dispatcher['dispatch']): Dispatcher['dispatch'] {
  return (options: TimedOptions, handler) => {
    const { isLate } = options
    if (isLate === undefined) return dispatch(options, handler)
    return dispatch(
      options,
      isUndici6(handler) ? holdUndici6IfLate(handler, isLate) : new HoldIfLate(handler, isLate),
    )
  }
}

interface Undici6Handler extends Dispatcher.DispatchHandler {
  onConnect(abort: (error: Error) => void, context: unknown): void
  onError(error: Error): void
  onHeaders(...response: unknown[]): boolean
  onData(chunk: Uint8Array): boolean
  onComplete(trailers: unknown): void
}

function isUndici6(handler: object): handler is Undici6Handler {
  return 'onConnect' in handler && !('onRequestStart' in handler)
}

function holdUndici6IfLate(handler: Undici6Handler, isLate: () => boolean): Undici6Handler {
  return {
    onConnect: (abort, context) => {
      if (isLate()) abort(new HeldBack('late', 'LATE'))
      else handler.onConnect(abort, context)
    },
    onError: (error) => handler.onError(error),
    onHeaders: (...response) => handler.onHeaders(...response),
    onData: (chunk) => handler.onData(chunk),
    onComplete: (trailers) => handler.onComplete(trailers),
  }
}

class HoldIfLate implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler
  readonly #isLate: () => boolean

  constructor(handler: Dispatcher.DispatchHandler, isLate: () => boolean) {
    this.#handler = handler
    this.#isLate = isLate
  }

  /**
   * undici calls this method after connecting and before it writes the first byte. After an abort,
   * undici writes nothing.
   */
  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    if (this.#isLate()) controller.abort(new HeldBack('late', 'LATE'))
    else this.#handler.onRequestStart?.(controller, context)
  }

  onResponseStart(...response: Parameters<Required<Dispatcher.DispatchHandler>['onResponseStart']>): void {
    this.#handler.onResponseStart?.(...response)
  }

  onResponseData(...data: Parameters<Required<Dispatcher.DispatchHandler>['onResponseData']>): void {
    this.#handler.onResponseData?.(...data)
  }

  onResponseEnd(...end: Parameters<Required<Dispatcher.DispatchHandler>['onResponseEnd']>): void {
    this.#handler.onResponseEnd?.(...end)
  }

  onResponseError(...error: Parameters<Required<Dispatcher.DispatchHandler>['onResponseError']>): void {
    this.#handler.onResponseError?.(...error)
  }
}
