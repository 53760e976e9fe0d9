import { platformRuntime } from '../runtime.ts'

/**
 * The time of one request. It begins when the proxy receives the request, and is over early if the
 * client leaves: the client may then repeat the order, or a person may order again, so that a late
 * order could be a second one.
 */
export class Limit {
  /** Aborts when the time is over. */
  readonly signal: AbortSignal
  /** Stops the timer. */
  readonly release: () => void
  readonly #elapsed: () => number
  readonly #timeout: number

  /** @param left aborts when the client leaves */
  constructor(timeout: number, left: AbortSignal) {
    const { monotonic, now, setTimer } = platformRuntime
    const controller = new AbortController()
    const [started, received] = [monotonic(), now()]
    // Each clock alone may show too little: Linux stops the monotonic clock while the machine
    // sleeps, and the wall clock may be set back.
    this.#elapsed = () => Math.max(monotonic() - started, now() - received)
    this.#timeout = timeout
    this.signal = controller.signal
    this.release = setTimer(
      () => controller.abort(new Error(`The time limit of ${timeout} ms is over.`)),
      timeout,
    )
    const leave = (): void => controller.abort(new Error('The client has left.'))
    if (left.aborted) leave()
    else left.addEventListener('abort', leave, { once: true })
  }

  /** Checks the clocks, too: after the machine slept, the timer may not have fired yet. */
  isOver(): boolean {
    return this.signal.aborted || this.#elapsed() >= this.#timeout
  }

  /** Resolves with undefined if the time is over first. */
  race<T>(pending: Promise<T>): Promise<T | undefined> {
    const over = new Promise<undefined>((resolve) => {
      if (this.signal.aborted) resolve(undefined)
      else this.signal.addEventListener('abort', () => resolve(undefined), { once: true })
    })
    return Promise.race([pending, over])
  }
}
