/**
 * Gives a page Node's `setImmediate`, with which the tests let everything run that can run without time passing. In Node,
 * the body of an answer in memory is read within one turn of the event loop; browsers read it elsewhere and take
 * longer, so that a turn waits for what is being read.
 */

/** Milliseconds after which a body counts as one that does not come. */
const STALLED = 100

let reading = 0
let readingSince = 0

type Method = (this: unknown, ...args: unknown[]) => Promise<unknown>

function counted<Name extends string>(prototype: { [_ in Name]: unknown }, name: Name): void {
  const original = prototype[name] as Method
  const counting: Method = function (...args) {
    reading++
    readingSince = performance.now()
    return original.apply(this, args).finally(() => reading--)
  }
  prototype[name] = counting
}
const channel = new MessageChannel()
const waiting: (() => void)[] = []

function setImmediate(callback: () => void): void {
  waiting.push(callback)
  channel.port2.postMessage(null)
}

/** From here on, the page has it. */
export function provideTurns(): void {
  counted(ReadableStreamDefaultReader.prototype, 'read')
  counted(Response.prototype, 'text')
  counted(Request.prototype, 'text')
  channel.port1.onmessage = () => {
    const callback = waiting.shift()
    if (callback === undefined) return
    if (reading > 0 && performance.now() - readingSince < STALLED) setImmediate(callback)
    else callback()
  }
  Object.assign(globalThis, { setImmediate })
}
