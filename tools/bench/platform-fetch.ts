/**
 * Makes Node load its own `fetch`. Import this first: if undici from npm is loaded earlier, it
 * replaces the connections of the platform's `fetch`, and the baseline would not be raw `fetch`.
 */
const DISPATCHER = Symbol.for('undici.globalDispatcher.1')

if (DISPATCHER in globalThis) throw new Error('undici was loaded before tools/bench/platform-fetch.ts')
// The first access to one of its classes loads Node's `fetch`.
if (!(Response.prototype instanceof Object && DISPATCHER in globalThis))
  throw new Error('Node has not loaded its fetch')
