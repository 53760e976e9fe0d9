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

const { prototype } = AbortSignal
type Listener = EventListenerOrEventListenerObject | null
type Options = boolean | AddEventListenerOptions

prototype.addEventListener = function (this: AbortSignal, type: string, heard: Listener, options?: Options) {
  of(this, type).add(heard)
  addEventListener.call(this, type, heard, options)
  if (typeof options === 'object' && options.once === true)
    addEventListener.call(this, type, () => of(this, type).delete(heard), { once: true })
}
prototype.removeEventListener = function (this: AbortSignal, type: string, heard: Listener, how?: Options) {
  of(this, type).delete(heard)
  removeEventListener.call(this, type, heard, how)
}

export function getEventListeners(target: EventTarget, type: string): readonly unknown[] {
  return [...of(target, type)]
}
