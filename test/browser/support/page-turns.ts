/**
 * Provides Node's `setImmediate` in a page. Tests use it to let all pending work run without time
 * passing. Node reads a body in memory within one turn of the event loop, but browsers take longer,
 * so a turn here waits for pending reads. Streams that a test creates do not count, because they
 * may stall on purpose.
 */

type Method = (this: unknown, ...args: unknown[]) => unknown

function replace<Name extends string>(
  prototype: { [_ in Name]: unknown },
  name: Name,
  replacement: (original: Method) => Method,
): void {
  prototype[name] = replacement(prototype[name] as Method)
}

let reading = 0

const counting = (original: Method): Method =>
  function (...args) {
    reading++
    return Promise.resolve(original.apply(this, args)).finally(() => reading--)
  }

function countReads(): void {
  const made = new WeakSet<object>()
  const ofMade = new WeakSet<object>()
  globalThis.ReadableStream = new Proxy(ReadableStream, {
    construct(target, args, newTarget) {
      const stream: object = Reflect.construct(target, args, newTarget)
      made.add(stream)
      return stream
    },
  })
  replace(ReadableStream.prototype, 'getReader', (original) => {
    return function (...args) {
      const reader = original.apply(this, args) as object
      if (made.has(this as object)) ofMade.add(reader)
      return reader
    }
  })
  replace(ReadableStreamDefaultReader.prototype, 'read', (original) => {
    const counted = counting(original)
    return function (...args) {
      return (ofMade.has(this as object) ? original : counted).apply(this, args)
    }
  })
  replace(Request.prototype, 'text', counting)
  // Wait for responses without a body, too: Firefox reads them slowly, and virtual time would
  // advance meanwhile.
  replace(Response.prototype, 'text', counting)
}

const channel = new MessageChannel()
const waiting: (() => void)[] = []

function setImmediate(callback: () => void): void {
  waiting.push(callback)
  channel.port2.postMessage(null)
}

/** Install it in the page. */
export function provideTurns(): void {
  countReads()
  channel.port1.onmessage = () => {
    const callback = waiting.shift()
    if (callback === undefined) return
    if (reading > 0) setImmediate(callback)
    else callback()
  }
  Object.assign(globalThis, { setImmediate })
}
