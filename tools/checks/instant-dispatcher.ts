import { Dispatcher } from 'undici'

/**
 * A dispatcher of undici that responds immediately with JSON. Only the cost of `/undici` and of
 * undici's `request` remains.
 */
export class InstantDispatcher extends Dispatcher {
  readonly #bodyOf: (path: string) => Uint8Array

  constructor(bodyOf: (path: string) => Uint8Array) {
    super()
    this.#bodyOf = bodyOf
  }

  override dispatch(
    { method, path }: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    let aborted = false
    let reason: Error | null = null
    const controller: Dispatcher.DispatchController = {
      get aborted() {
        return aborted
      },
      get paused() {
        return false
      },
      get reason() {
        return reason
      },
      abort: (why) => {
        aborted = true
        reason = why
        handler.onResponseError?.(controller, why)
      },
      pause: () => {},
      resume: () => {},
    }
    handler.onRequestStart?.(controller, {})
    handler.onResponseStart?.(
      controller,
      method === 'POST' ? 201 : 200,
      { 'content-type': 'application/json' },
      'OK',
    )
    handler.onResponseData?.(controller, Buffer.from(this.#bodyOf(path)))
    handler.onResponseEnd?.(controller, {})
    return true
  }
}
