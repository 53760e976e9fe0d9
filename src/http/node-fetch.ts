/** Whether Node itself sends the requests: its own fetch, over its own dispatcher. */
import { isObject } from '../defined.ts'

/**
 * True for Node's own, unwrapped fetch with the dispatcher that Node itself made: only its errors can
 * prove that nothing was sent. Anything else (a mock, an instrumented fetch, an application's own
 * dispatcher) may report the same error after it has sent the request.
 */
export function isNodeFetch(candidate: typeof fetch): boolean {
  const scope: Readonly<Record<PropertyKey, unknown>> = globalThis
  const { Bun, Deno } = scope
  if (Bun !== undefined || Deno !== undefined) return false
  // Only the source of Node's own fetch contains this require call. A bound function or a proxy
  // hides its source and fails this test.
  if (!/require\('internal\/deps\/undici\/undici'\)/.test(sourceOf(candidate))) return false
  const [first, second] = [1, 2].map(
    (generation) => scope[Symbol.for(`undici.globalDispatcher.${generation}`)],
  )
  // Since undici 8 (Node 26), the first symbol holds a wrapper around the second symbol's
  // dispatcher.
  const wrapped = second !== undefined && isMadeByNode(first, ['Dispatcher1Wrapper'], undefined)
  return [second, wrapped ? undefined : first].every(
    (dispatcher) => dispatcher === undefined || isPlainAgent(dispatcher),
  )
}

/** With its first request, an agent of undici 6 keeps what its interceptors have composed. */
const COMPOSED = 'Intercepted Dispatch'

/** True for an Agent of Node without interceptors on the agent or on its connections. */
function isPlainAgent(agent: unknown): boolean {
  if (!isMadeByNode(agent, ['Agent', 'DispatcherBase'], { factory: 0 })) return false
  const named = (name: string): unknown => {
    const symbol = Object.getOwnPropertySymbols(agent).find(({ description }) => description === name)
    return symbol && agent[symbol]
  }
  const options = named('options')
  // undici 6 (Node 22) composes interceptors inside the agent. Its own one follows redirects, which
  // the client switches off.
  const interceptors = named('dispatch interceptors') ?? []
  return (
    isObject(options) &&
    Object.values(options).every((value) => value === undefined || value === Number.POSITIVE_INFINITY) &&
    /new Pool\(origin, opts\)/.test(sourceOf(named('factory'))) &&
    Array.isArray(interceptors) &&
    interceptors.every(
      (interceptor) =>
        /maxRedirections/.test(sourceOf(interceptor)) &&
        sourceOf(interceptor).includes(sourceOf(named(COMPOSED))),
    )
  )
}

/**
 * True for an object of one of Node's own classes, if neither the object nor its classes are
 * patched.
 * @param classes names of its class and of that class's ancestors
 * @param wrong an argument that the constructor rejects
 */
function isMadeByNode(
  object: unknown,
  classes: readonly string[],
  wrong: unknown,
): object is Readonly<Record<PropertyKey, unknown>> {
  if (!isObject(object)) return false
  const { constructor: made } = object
  let prototype: unknown = object
  for (const name of classes) {
    prototype = Object.getPrototypeOf(prototype)
    if (!isObject(prototype) || prototype.constructor?.name !== name) return false
    // The source of a class contains its methods, so a method from elsewhere is a patch.
    const source = sourceOf(prototype.constructor)
    for (const key of Reflect.ownKeys(prototype)) {
      if (!/dispatch/i.test(String(key))) continue
      const method = Object.getOwnPropertyDescriptor(prototype, key)?.value
      // A proxy may return another function than the class has.
      const isOwn = Object.hasOwn(object, key) || Reflect.get(object, key) !== method
      if (isOwn && !(typeof key === 'symbol' && key.description === COMPOSED)) return false
      if (!source.includes(sourceOf(method))) return false
    }
  }
  return isCodeOfNode(made, wrong)
}

/** A copy of undici has the same sources and names. Only a stack trace shows where code comes from. */
function isCodeOfNode(made: unknown, wrong: unknown): boolean {
  try {
    if (typeof made === 'function') Reflect.construct(made, [wrong])
  } catch (error) {
    const [, frame] = isObject(error) ? String(error['stack']).split('\n') : []
    return frame !== undefined && /^ +at new \w+ \(node.internal\/deps\/undici\//.test(frame)
  }
  return false
}

function sourceOf(value: unknown): string {
  return typeof value === 'function' ? Function.prototype.toString.call(value) : ''
}
