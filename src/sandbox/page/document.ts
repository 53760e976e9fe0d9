import { sandboxPresets } from '../service/behaviour.ts'

const presets = Object.keys(sandboxPresets)
  .map((name) => `<option value="${name}">${name}</option>`)
  .join('')

const table = (id: string, title: string, note: string): string => `
      <section class="panel" aria-labelledby="${id}-title">
        <h2 id="${id}-title">${title} <span class="count" id="${id}-count"></span></h2>
        <p class="note">${note}</p>
        <p class="note" id="${id}-none">None.</p>
        <div id="${id}" class="capped" tabindex="0" role="group" aria-labelledby="${id}-title" hidden></div>
      </section>`

const jumps = Object.entries({
  log: 'Requests',
  faults: 'Faults',
  wallets: 'Wallets',
  behaviour: 'Behaviour',
  ledger: 'Charges',
  orders: 'Orders',
  keys: 'Idempotency keys',
  'api-keys': 'API keys',
  services: 'Services',
})
  .map(([id, title]) => `<a href="#${id}-title">${title}</a>`)
  .join('')

export const pageDocument: string = `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>Customer Ordering sandbox</title>
  <link rel="icon" href="/__sandbox/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="/__sandbox/page.css">
  <script src="/__sandbox/page.js" defer></script>
</head>
<body>
  <a class="skip" href="#log-title">Skip to the request log</a>
  <header>
    <img src="/__sandbox/icon.svg" alt="" width="32" height="32">
    <div class="where">
      <h1>Customer Ordering sandbox</h1>
      <p><code id="address"></code>
        <span id="connection" class="badge info" role="status">connecting</span></p>
    </div>
    <div class="actions">
      <button type="button" id="place">Place a test order</button>
      <button type="button" id="copy-address">Copy address</button>
      <button type="button" id="copy-key">Copy API key</button>
      <button type="button" id="copy-env">Copy export lines</button>
      <button type="button" id="forget">Forget keys</button>
      <button type="button" id="reset">Reset everything</button>
    </div>
  </header>
  <nav class="jump" aria-label="Parts of this page">${jumps}</nav>
  <p id="problem" class="problem" role="alert" hidden></p>
  <p id="announcement" class="unseen" aria-live="polite"></p>
  <noscript>
    <p class="problem">This page needs JavaScript. The control API below /__sandbox/ works without it.</p>
  </noscript>
  <main>
    <section class="panel log" aria-labelledby="log-title">
      <h2 id="log-title" tabindex="-1">Requests <span class="count" id="log-count"></span></h2>
      <p class="filter"><label for="filter">Filter</label>
        <input type="search" id="filter" placeholder="anything in a request or response"
          autocomplete="off" spellcheck="false"></p>
      <div id="log" class="capped" tabindex="0" role="group" aria-label="Newest requests" hidden>
        <div class="line heads" aria-hidden="true"><span>No.</span><span>Time</span><span>Request</span>
          <span>Response</span><span>Idempotency-Key</span></div>
        <ul id="log-rows"></ul>
      </div>
      <p class="note" id="log-no-match" role="status"></p>
      <p class="note" id="log-none">No requests yet. Try:<br>
        <code>curl <span id="example-address"></span>/v1/services
          -H "authorization: Bearer <em>API key</em>"</code></p>
    </section>

    <div class="side">
      <section class="panel" aria-labelledby="faults-title">
        <h2 id="faults-title">Faults</h2>
        <fieldset class="choice">
          <legend>Apply to</legend>
          <label><input type="radio" name="times" value="once" checked> next request</label>
          <label><input type="radio" name="times" value="always"> every request</label>
          <label><input type="radio" name="times" value="some"> one in four requests</label>
        </fieldset>
        <div id="toggles" class="toggles capped" tabindex="0" role="group" aria-labelledby="faults-title"></div>
        <details>
          <summary>Write a rule</summary>
          <form id="rule-form">
            <label for="rule">Fault rule, JSON</label>
            <textarea id="rule" rows="6" spellcheck="false" aria-describedby="rule-problem">
{
  "match": { "operation": "createOrder" },
  "times": 2,
  "action": { "type": "status", "status": 500, "commit": true }
}</textarea>
            <p id="rule-problem" class="problem" role="alert" hidden></p>
            <button type="submit">Add rule</button>
          </form>
        </details>
        <h3>Current rules <span class="count" id="rules-count"></span></h3>
        <ul id="rules" class="rules"></ul>
        <button type="button" id="clear-rules">Remove all rules</button>
      </section>

      <section class="panel wallets" aria-labelledby="wallets-title">
        <h2 id="wallets-title">Wallets</h2>
        <div id="wallets"></div>
      </section>

      <section class="panel" aria-labelledby="behaviour-title">
        <h2 id="behaviour-title">Behaviour</h2>
        <label for="preset">Preset</label>
        <select id="preset">${presets}<option value="" disabled hidden>(custom switches)</option></select>
        <details>
          <summary>Current switches</summary>
          <dl id="switches" class="switches"></dl>
        </details>
      </section>
    </div>

    <div class="wide">
${table(
  'ledger',
  'Charges',
  'Every charge of an order. Two charges with one reference mean that an order was placed twice.',
)}
${table('orders', 'Orders', 'As their customers see them, newest first.')}
${table('keys', 'Idempotency keys', 'What a repeated request with the key gets.')}
${table('api-keys', 'API keys', 'With what each may do.')}
${table('services', 'Services', 'The catalogue, unpublished services included.')}
    </div>
  </main>
</body>
</html>
`
