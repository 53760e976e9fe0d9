/** Text has a contrast ratio of at least 4.5 in both colour schemes (WCAG 2.2, level AA). */
export const pageStyle: string = `
:root {
  color-scheme: light dark;
  --back: #f3f5f8; --panel: #fff; --text: #171c23; --muted: #55606d; --line: #d5dbe3; --accent: #0b6e5f;
  --on-accent: #fff; --field: #fff; --edge: #7b8794;
  --good: #0b5b33; --good-back: #d9f2e4; --warn: #6a4600; --warn-back: #fdeecb;
  --bad: #931d14; --bad-back: #fde1df; --info: #1c4690; --info-back: #e0e9fb;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #0f1318; --panel: #181e26; --text: #e5eaf0; --muted: #9fabb9; --line: #2d3742; --accent: #4fc6b0;
    --on-accent: #06231e; --field: #10151b; --edge: #6d7a88;
    --good: #8fe2b5; --good-back: #12351f; --warn: #f2cf80; --warn-back: #3a2c0a;
    --bad: #ffb4ad; --bad-back: #471a1a; --info: #aac7ff; --info-back: #1b2d4f;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body {
  margin: 0; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
header {
  display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem; padding: .9rem 1.25rem;
  background: var(--panel); border-bottom: 1px solid var(--line);
}
header .where { flex: 1 1 14rem; min-width: 0; }
header p, h1, h2, h3 { margin: 0; }
h1 { font-size: 1.2rem; line-height: 1.3; }
h2 { font-size: 1.05rem; }
h3 { margin: 1rem 0 .35rem; font-size: .95rem; }
h2:focus { outline: none; }
header .actions { flex: 0 1 auto; display: flex; flex-wrap: wrap; gap: .4rem; }
.actions button { min-height: 2rem; padding: 0 .6rem; font-size: .88rem; }
#place { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
.jump { display: none; }
main {
  display: grid; gap: 1rem; padding: 1rem 1.25rem 2rem;
  grid-template: auto 1fr / minmax(0, 22rem) minmax(0, 1fr); align-items: start; max-width: 110rem;
  margin: 0 auto;
}
.side, .wide { display: grid; gap: 1rem; min-width: 0; grid-column: 2; }
.log { grid-column: 2; }
.wallets { order: -1; }
.side { grid-column: 1; grid-row: 1 / 3; }
.panel {
  background: var(--panel); border: 1px solid var(--line); border-radius: .6rem;
  padding: .9rem 1rem 1rem; min-width: 0;
}
.note { margin: .15rem 0 .5rem; color: var(--muted); font-size: .9rem; }
.count { color: var(--muted); font-weight: 400; font-size: .9rem; }
code, textarea, .mono {
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .86em; overflow-wrap: anywhere;
}
em { font-style: normal; color: var(--muted); }

button, select, input, textarea { font: inherit; color: inherit; }
button, select, input[type="number"], input[type="search"], textarea {
  background: var(--field); border: 1px solid var(--edge); border-radius: .4rem;
  padding: .3rem .65rem; min-height: 2.25rem;
}
textarea {
  width: 100%; resize: vertical;
  font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .86rem;
}
select { width: 100%; margin-top: .2rem; }
button { cursor: pointer; }
button:hover { border-color: var(--accent); color: var(--accent); }
button:disabled { opacity: .55; cursor: default; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: .3rem; }
.unseen {
  position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden;
  clip-path: inset(50%); white-space: nowrap;
}
.skip {
  position: absolute; left: -100rem; top: 0; padding: .5rem 1rem; background: var(--accent);
  color: var(--on-accent); z-index: 1;
}
.skip:focus { left: 0; }
.problem {
  margin: .5rem 0; padding: .5rem .75rem; border-radius: .4rem; background: var(--bad-back);
  color: var(--bad); overflow-wrap: anywhere;
}
body > .problem { margin: 1rem 1.25rem 0; }

.badge {
  display: inline-block; padding: 0 .5rem; border-radius: 1rem; font-size: .82rem;
  line-height: 1.55; white-space: nowrap;
}
.badge + .badge { margin-left: .25rem; }
.good { color: var(--good); background: var(--good-back); }
.warn { color: var(--warn); background: var(--warn-back); }
.bad { color: var(--bad); background: var(--bad-back); }
.info { color: var(--info); background: var(--info-back); }
.plain { color: var(--muted); border: 1px solid var(--line); line-height: 1.45; }

.wallet {
  display: grid; grid-template-columns: 1fr auto; gap: .1rem .75rem; padding: .55rem 0;
  border-top: 1px solid var(--line);
}
.wallet:first-child { border-top: 0; padding-top: .3rem; }
.wallet strong { font-size: 1.15rem; font-variant-numeric: tabular-nums; }
.wallet small { color: var(--muted); }
.wallet form { display: flex; align-items: center; gap: .5rem; grid-column: 1 / -1; margin-top: .35rem; }
.wallet label { margin: 0; }
.wallet input { flex: 1 1 5rem; min-width: 0; text-align: right; }

.choice { display: flex; flex-wrap: wrap; gap: .1rem .9rem; margin: .5rem 0 .25rem; padding: 0; border: 0; }
.choice legend { padding: 0; color: var(--muted); font-size: .9rem; }
.choice label { display: inline-flex; gap: .35rem; align-items: center; }
input[type="checkbox"], input[type="radio"] { accent-color: var(--accent); }
.toggles label {
  display: grid; grid-template-columns: auto 1fr; gap: 0 .65rem; padding: .4rem 0;
  border-top: 1px solid var(--line); cursor: pointer;
}
.toggles label:first-child { border-top: 0; }
.toggles small { grid-column: 2; color: var(--muted); line-height: 1.35; }
.toggles input {
  appearance: none; width: 2.3rem; height: 1.3rem; margin: .1rem 0 0;
  border: 1px solid var(--edge); border-radius: 1rem; background: var(--field); position: relative;
  cursor: pointer;
}
.toggles input::before {
  content: ""; position: absolute; top: .15rem; left: .18rem; width: .9rem; height: .9rem;
  border-radius: 50%; background: var(--edge);
}
.toggles input:checked { background: var(--accent); border-color: var(--accent); }
.toggles input:checked::before { left: auto; right: .18rem; background: var(--on-accent); }
.toggles input:focus-visible { border-radius: 1rem; }
@media (forced-colors: active) {
  .toggles input { appearance: auto; }
  .toggles input::before { content: none; }
}
summary { cursor: pointer; padding: .35rem 0; color: var(--accent); }
form label { display: block; font-size: .9rem; color: var(--muted); margin-bottom: .2rem; }
form button { margin-top: 0; }
#rule-form button { margin-top: .4rem; }
.rules { list-style: none; margin: 0 0 .6rem; padding: 0; }
.rules li {
  display: flex; gap: .6rem; align-items: center; justify-content: space-between;
  padding: .35rem 0; border-top: 1px solid var(--line);
}
.rules li > span { min-width: 0; overflow-wrap: anywhere; }
.rules small { display: block; color: var(--muted); }
.switches { margin: .25rem 0 0; font-size: .86rem; }
.switches dt { color: var(--muted); }
.switches dd { margin: 0 0 .35rem; overflow-wrap: anywhere; }

table { width: 100%; border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--muted); font-weight: 500; font-size: .84rem; }
th, td {
  padding: .38rem .7rem .38rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: break-word;
}
.cell { max-width: 24rem; }
tr:last-child > td, tr:last-child > th[scope="row"] { border-bottom: 0; }
th[scope="row"] { color: inherit; font-size: inherit; font-weight: 400; }
td.number, th.number { text-align: right; padding-right: 1.4rem; white-space: nowrap; }
.filter { display: flex; gap: .6rem; align-items: center; margin: .4rem 0 .6rem; }
.filter label { color: var(--muted); font-size: .9rem; }
.filter input { flex: 1; min-width: 0; max-width: 24rem; }
table code { overflow-wrap: break-word; }
table code.long { overflow-wrap: anywhere; }
.capped { overflow: auto; }
#log { max-height: max(24rem, 75vh); }
.wide .capped { max-height: 32rem; }
#log-rows { list-style: none; margin: 0; padding: 0; }
#log-rows > li { border-bottom: 1px solid var(--line); }
#log-rows > li:last-child { border-bottom: 0; }
.line {
  display: grid; grid-template-columns: 2.6rem 4.4rem minmax(0, 5fr) minmax(0, 8fr) minmax(0, 6fr);
  gap: 0 .8rem; align-items: center; padding: .38rem 0; font-size: .92rem; color: inherit;
}
.line > * { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.line code { overflow-wrap: normal; }
.line > .number::before { content: "▸ " / ""; color: var(--accent); }
details[open] > .line > .number::before { content: "▾ " / ""; }
.line time, .heads { font-variant-numeric: tabular-nums; color: var(--muted); }
.heads { position: sticky; top: 0; background: var(--panel); font-size: .84rem; border-bottom: 1px solid var(--line); }
summary.line::-webkit-details-marker { display: none; }
.exchange { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: .2rem 1rem; padding: 0 0 .7rem; }
.exchange > * { min-width: 0; }
pre {
  margin: .2rem 0 0; padding: .5rem .6rem; background: var(--back); border-radius: .4rem;
  font-size: .82rem; overflow-x: auto;
}
@media (prefers-reduced-motion: no-preference) {
  #log-rows > li { animation: appear 1.2s ease-out; }
  @keyframes appear { from { background: var(--info-back); } }
}

@media (max-width: 62rem) {
  main { grid-template: none / minmax(0, 1fr); }
  .log, .side, .wide { grid-area: auto; }
  .wallets { order: 0; }
  .jump {
    display: flex; gap: .25rem; position: sticky; top: 0; z-index: 1; overflow-x: auto;
    padding: 0 1.25rem; background: var(--panel); border-bottom: 1px solid var(--line);
  }
  .jump a {
    display: flex; align-items: center; min-height: 44px; padding: 0 .5rem; white-space: nowrap;
    color: var(--accent); text-decoration: none;
  }
  h2 { scroll-margin-top: 60px; }
  header .actions { flex: 1 0 100%; flex-wrap: nowrap; overflow-x: auto; padding: 3px; }
  .actions button { flex: none; }
  #log, .toggles.capped { max-height: 55vh; }
  .line { grid-template-columns: 2.6rem 4.4rem minmax(0, 6fr) minmax(0, 8fr) minmax(0, 5fr); }
  .wide .capped { max-height: 40vh; }
}
/* Touch targets need 44 pixels. */
@media (max-width: 62rem), (pointer: coarse) {
  button, .actions button, select, input[type="number"], input[type="search"] {
    min-height: 44px; min-width: 44px;
  }
  summary { min-height: 44px; }
  summary:not(.line) { display: flex; align-items: center; }
  summary:not(.line)::before { content: "▸ " / ""; white-space: pre; }
  details[open] > summary:not(.line)::before { content: "▾ " / ""; }
  .choice label { min-height: 44px; }
  .choice label, .toggles label { align-items: center; }
  .toggles label { min-height: 44px; }
}
@media (max-width: 40rem) {
  header, main { padding-left: .75rem; padding-right: .75rem; }
  body > .problem { margin-left: .75rem; margin-right: .75rem; }
  table, tbody, tr, td, th[scope="row"] { display: block; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  tr:last-child { border-bottom: 0; }
  td, th[scope="row"], td.number {
    display: grid; grid-template-columns: 8.5rem minmax(0, 1fr); padding: .1rem 0; border: 0;
    text-align: left;
  }
  td::before, th[scope="row"]::before { content: attr(data-label); color: var(--muted); font-size: .86rem; }
  td.empty { display: none; }
  .cell { min-width: 0; max-width: none; overflow-wrap: anywhere; }
  table code { overflow-wrap: anywhere; }
  header { gap: .4rem .6rem; padding-top: .5rem; padding-bottom: .5rem; }
  h1 { font-size: 1.05rem; }
  .jump { padding: 0 .25rem; }
  .heads { display: none; }
  .line { grid-template-columns: auto auto minmax(0, 1fr) auto; padding: .5rem 0; gap: .1rem .8rem; }
  .line > .request { grid-area: 1 / 1 / 2 / 4; }
  .line > .response { grid-area: 1 / 4; text-align: right; }
  .line > .key { grid-column: 3 / 5; text-align: right; color: var(--muted); }
  .line > .number, .line > time, .line > .key { grid-row: 2; font-size: .84rem; }
}
`
