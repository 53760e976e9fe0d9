/** Replaces `node:events` in a page, where listeners cannot be counted. */

const { addEventListener, removeEventListener } = EventTarget.prototype
const listening = new WeakMap<EventTarget, Map<string, Set<unknown>>>()

function of(target: EventTarget, type: string): Set<unknown> {
  const types = listening.get(target) ?? new Map<string, Set<unknown>>()
  listening.set(target, types)
  const found = types.get(type) ?? new Set()
  types.set(type, found)
  return found
}

AbortSignal.prototype.addEventListener = function (
  this: AbortSignal,
  type: string,
  listener: EventListenerOrEventListenerObject | null,
  options?: boolean | AddEventListenerOptions,
): void {
  of(this, type).add(listener)
  addEventListener.call(this, type, listener, options)
  if (typeof options === 'object' && options.once === true)
    addEventListener.call(this, type, () => of(this, type).delete(listener), { once: true })
}
AbortSignal.prototype.removeEventListener = function (
  this: AbortSignal,
  type: string,
  listener: EventListenerOrEventListenerObject | null,
  options?: boolean | EventListenerOptions,
): void {
  of(this, type).delete(listener)
  removeEventListener.call(this, type, listener, options)
}

export function getEventListeners(target: EventTarget, type: string): readonly unknown[] {
  return [...of(target, type)]
}
