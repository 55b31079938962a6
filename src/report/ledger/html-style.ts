/** The style sheet of the report page, and the Content-Security-Policy that permits only this style sheet. */
import { createHash } from 'node:crypto';

export const style = `
:root { color-scheme: light dark; --ink: #1c1f23; --soft: #57606a; --paper: #fff; --line: #d0d7de; --band: #f4f6f8; --good: #0a6640; --bad: #a40e26; --warn: #7a4d00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #a3acb5; --paper: #14171a; --line: #3a4149; --band: #1e2328; --good: #5fd39b; --bad: #ff8f8f; --warn: #f0bd5a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 3rem; max-width: 88rem; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.25rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .25rem; }
p, li { max-width: 60rem; }
.meta, .note, caption { color: var(--soft); font-size: .9rem; }
.summary { display: inline-block; margin: .75rem 0 0; padding: .15rem .7rem; border: 2px solid currentColor; border-radius: .3rem; font-weight: 700; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
blockquote { margin: .75rem 0; padding: .25rem 1rem; border-left: .25rem solid var(--line); font-size: 1.05rem; }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; }
.scroll:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
table { border-collapse: collapse; min-width: min(100%, 28rem); font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .35rem; }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--line); }
tbody th { font-weight: 600; white-space: nowrap; position: sticky; left: 0; background: var(--paper); }
tfoot th, tfoot td { border-top: 2px solid var(--line); font-weight: 700; }
tbody tr:nth-child(even), tbody tr:nth-child(even) th { background: var(--band); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; } dt { font-weight: 600; } dd { margin: 0; max-width: 50rem; }
.n { text-align: right; } td.n { white-space: nowrap; }
.t { white-space: nowrap; }
td.words { min-width: 14rem; overflow-wrap: anywhere; }
td small { display: block; color: var(--ink); min-width: 8rem; overflow-wrap: anywhere; }
code { font: .85em/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
@page { size: A4 landscape; margin: 12mm; }
@media print {
  :root { --ink: #000; --soft: #333; --paper: #fff; --line: #888; --band: #fff; --good: #000; --bad: #000; --warn: #000; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  table { font-size: 8pt; } th, td { padding: .15rem .35rem; } .scroll { overflow: visible; } thead { display: table-header-group; } tfoot { display: table-row-group; } tr { break-inside: avoid; } h2, h3, caption { break-after: avoid; }
}
`;

/** Content security policy, for the header and the page: only this style. */
export const policyOf = (sheet: string): string =>
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(sheet).digest('base64')}'; base-uri 'none'; form-action 'none'`;
export const ledgerHtmlPolicy = policyOf(style);
