/**
 * Makes Node load its own `fetch`. undici from npm, if it is loaded before that, puts its own connections under the
 * platform's `fetch`, and nobody's raw `fetch` would be measured. So this is imported before everything else.
 */
const DISPATCHER = Symbol.for('undici.globalDispatcher.1')

if (DISPATCHER in globalThis) throw new Error('undici was loaded before bench/platform-fetch.ts')
// The first look at any of its classes loads it.
if (!(Response.prototype instanceof Object && DISPATCHER in globalThis))
  throw new Error('Node has not loaded its fetch')
