/**
 * Makes Node load its own `fetch`. undici from npm, if it is loaded before that, puts its own connections under the
 * platform's `fetch`, and nobody's raw `fetch` would be measured. So this is imported before everything else.
 */
if (!(Response.prototype instanceof Object)) throw new Error('there is no fetch')
