/**
 * The completeness report as one page that stands alone: no script, nothing loaded from anywhere, readable printed, in light and dark, and
 * without seeing. Whatever stands in it is escaped; a record is never in it.
 */
import { createHash } from 'node:crypto';
import type { LedgerReportSinkWindow, LedgerReportWindow, LongLedgerReport, LongLedgerReportSource } from '../../model/ledger-report.ts';
import { reportDigest } from './csv.ts';
import { byPeriod } from './periods.ts';
import { isNotable, tallyOf } from './tally.ts';
import type { LedgerTally } from './tally.ts';
import { delayText, detailText, local, quotable, reach, suspensionText, unproven } from './sentences.ts';
import { joined, mapped } from '../chunks.ts';
import type { Chunks } from '../chunks.ts';
import { printable } from '../../escape.ts';
import { counted, grouped } from '../format-time.ts';

export interface LedgerHtmlOptions {
  readonly by: 'window' | 'day' | 'month';
  /** IANA name of the zone of all times. */
  readonly tz: string;
  readonly version: string;
  /** By source, as configured now. */
  readonly services?: Readonly<Record<string, ReportedService>> | undefined;
}

/** What the head of a report says of a source. */
export interface ReportedService {
  /** Undefined where the configuration refers to what is not there. */
  readonly host: string | undefined;
  readonly tenant: string | undefined;
  readonly closeDelaySeconds: number;
  /** Ages of recount, ascending. */
  readonly recountSeconds: readonly number[];
}

const style = `
:root { color-scheme: light dark; --ink: #1c1f23; --soft: #57606a; --paper: #fff; --line: #d0d7de; --band: #f4f6f8; --good: #0a6640; --bad: #a40e26; --warn: #7a4d00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #a3acb5; --paper: #14171a; --line: #3a4149; --band: #1e2328; --good: #5fd39b; --bad: #ff8f8f; --warn: #f0bd5a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 3rem; max-width: 88rem; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.25rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .25rem; }
p, li { max-width: 60rem; }
.meta, .note, caption { color: var(--soft); font-size: .9rem; }
.verdict { display: inline-block; margin: .75rem 0 0; padding: .15rem .7rem; border: 2px solid currentColor; border-radius: .3rem; font-weight: 700; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
blockquote { margin: .75rem 0; padding: .25rem 1rem; border-left: .25rem solid var(--line); font-size: 1.05rem; }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; }
.scroll:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
table { border-collapse: collapse; min-width: min(100%, 28rem); font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .35rem; }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--line); white-space: nowrap; }
tbody th { font-weight: 600; white-space: nowrap; position: sticky; left: 0; background: var(--paper); }
tfoot th, tfoot td { border-top: 2px solid var(--line); font-weight: 700; }
tbody tr:nth-child(even), tbody tr:nth-child(even) th { background: var(--band); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; } dt { font-weight: 600; } dd { margin: 0; max-width: 50rem; }
.n { text-align: right; white-space: nowrap; }
.t { white-space: nowrap; }
td.words { min-width: 14rem; overflow-wrap: anywhere; }
td small { display: block; color: var(--ink); min-width: 12rem; overflow-wrap: anywhere; }
code { font: .85em/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
@page { size: A4 landscape; margin: 12mm; }
@media print {
  :root { --ink: #000; --soft: #333; --paper: #fff; --line: #888; --band: #fff; --good: #000; --bad: #000; --warn: #000; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  table { font-size: 8pt; } th, td { padding: .15rem .35rem; } .scroll { overflow: visible; } thead { display: table-header-group; } tfoot { display: table-row-group; } tr { break-inside: avoid; } h2, h3, caption { break-after: avoid; }
}
`;

/** What a page of this report may load: its own style, and nothing else. For the header and the page itself. */
export const ledgerHtmlPolicy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; form-action 'none'`;

/** In pieces. */
export function* ledgerHtml(
  report: LongLedgerReport,
  { by, tz, version, services = {} }: LedgerHtmlOptions,
): Generator<string, void, void> {
  const tallied = report.sources.map((source) => ({ source, tally: tallyOf(source.windows) }));
  const tone = !report.complete ? 'bad' : report.delivered ? 'good' : 'warn';
  const lines: Chunks[] = [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<meta http-equiv="Content-Security-Policy" content="${escaped(ledgerHtmlPolicy)}">`,
    '<meta name="referrer" content="no-referrer">',
    `<title>Completeness report: ${escaped(report.sources.map(({ id }) => id).join(', '))}</title>`,
    `<style>${style}</style>`,
    '</head>',
    '<body>',
    '<header>',
    '<h1>Completeness of the audit trail</h1>',
    `<p class="meta">Generated ${escaped(local(report.generatedAt, tz))} (${escaped(tz)}) by Waybill ${escaped(version)} from its ledger.</p>`,
    `<p class="verdict ${tone}">${escaped(report.summary)}</p>`,
    ...(report.complete
      ? [`<p class="meta">${report.final ? 'Final: no recount is to come.' : 'Not final: recounts are to come.'}</p>`]
      : []),
    '</header>',
    '<main>',
    ...tallied.map(({ source, tally }) => sourcePart(report, source, tally, { by, tz, services })),
    operationsPart(report, tz),
    digestPart(report),
    glossaryPart(),
    '<section aria-labelledby="limits">',
    '<h2 id="limits">What this report cannot prove</h2>',
    ...tallied.map(({ source, tally }) => {
      const points = unproven(report, source, tally, tz).map((point) => `<li>${escaped(point)}</li>`);
      return `${report.sources.length === 1 ? '' : `<h3>${escaped(source.id)}</h3>`}<ul>${points.join('')}</ul>`;
    }),
    '</section>',
    '</main>',
    '</body>',
    '</html>',
    '',
  ];
  yield* joined(lines, '\n');
}

function sourcePart(
  report: LongLedgerReport,
  source: LongLedgerReportSource,
  tally: LedgerTally,
  { by, tz, services = {} }: Pick<LedgerHtmlOptions, 'by' | 'tz' | 'services'>,
): Iterable<string> {
  const id = escaped(source.id);
  // Where every row is listed there already, a second table of the same rows helps nobody.
  const isAllNotable = by === 'window' && tally.notable === tally.windows;
  const lines: Chunks[] = [
    `<section aria-labelledby="source-${id}">`,
    `<h2 id="source-${id}">Source ${id}</h2>`,
    `<p class="note">${escaped(serviceText(services[source.id]))}</p>`,
    `<blockquote><p>${escaped(quotable(report, source, tally, tz).join(' '))}</p></blockquote>`,
    `<p class="note">${escaped(`${capital(reach(source, tz, report.generatedAt))}. State: ${source.state}.`)} ${escaped(lifetimeText(source))}</p>`,
    sinkTable(source),
    lateTable(source),
    tally.notable === 0 || isAllNotable
      ? ''
      : windowTable(
          source,
          filtered(source.windows, isNotable),
          `Windows of ${source.id} to look at: gaps, what changed after it was closed, late records`,
          tz,
        ),
    by === 'window' ? windowTable(source, source.windows, `Every window of ${source.id}`, tz, tally) : periodTable(source, by, tz),
    suspensionTable(source, tz),
    '</section>',
  ];
  return joined(lines, '\n');
}

function serviceText(service: ReportedService | undefined): string {
  if (!service) return 'The source is not in the configuration.';
  const { host, tenant, closeDelaySeconds, recountSeconds } = service;
  const ages = recountSeconds.length === 0 ? 'no recount' : `recounts after ${recountSeconds.map(delayText).join(', ')}`;
  return `Service ${host ?? 'not known'}, tenant ${tenant ?? 'not known'}. In force: a window is closed ${delayText(closeDelaySeconds)} after its end; ${ages}.`;
}

function lifetimeText({ lifetime }: LongLedgerReportSource): string {
  return `Collected since its ledger began: ${grouped(lifetime.collected)} = ${grouped(lifetime.inWindows)} in windows + ${grouped(lifetime.outside)} outside of them.`;
}

function sinkTable(source: LongLedgerReportSource): Chunks {
  if (source.sinks.length === 0) return '';
  const rows = source.sinks.map((sink) => [
    rowHead(sink.id),
    text(sink.type),
    text(sink.state),
    text(sink.since === null ? 'the beginning' : sink.since),
    number(`${grouped(sink.complete)} of ${grouped(sink.windows)}${sink.lost === 0 ? '' : ` (${grouped(sink.lost)} lost)`}`),
    number(sink.records === null ? 'by its filter' : grouped(sink.records)),
    number(grouped(sink.deadLetters)),
  ]);
  return table('What each sink has of these windows', ['Sink', 'Type', 'State', 'From', '#Windows', '#Records', '#Dead letters'], rows);
}

function lateTable(source: LongLedgerReportSource): Chunks {
  if (source.late === 0) return '';
  const entries = Object.entries(source.lateDelays.within).filter(([, count]) => count > 0);
  const rows = entries.map(([within, count]) => [
    rowHead(within === 'later' ? 'later than 30d' : `within ${within}`),
    number(grouped(count)),
  ]);
  const foot = [rowHead('Sum'), number(grouped(entries.reduce((sum, [, count]) => sum + count, 0)))];
  return table('Late records: from their time to the moment they were first seen', ['First seen', '#Records'], rows, foot);
}

function windowTable(
  source: LongLedgerReportSource,
  windows: Iterable<LedgerReportWindow>,
  caption: string,
  tz: string,
  /** Of these windows, where they are to be added up. */
  tally?: LedgerTally,
): Iterable<string> {
  const sinks = source.sinks.map(({ id }) => id);
  const rows = mapped(windows, (window) => [
    `<th scope="row" class="t">${escaped(local(window.from, tz))}</th>`,
    to(window, tz),
    stateCell(window.state, window.reason, undefined, window.message),
    number(window.total === null ? '-' : grouped(window.total)),
    number(grouped(window.received)),
    number(grouped(window.records)),
    number(window.late === 0 ? '0' : `${grouped(window.late)} (${delayText(window.lateLongestSeconds ?? 0)})`),
    ...sinks.map((id) => text(sinkText(window.sinks[id]))),
    number(recountText(window)),
    window.nextRecount === null ? text('-') : time(window.nextRecount, tz),
  ]);
  const heads = [
    ...[`From (${tz})`, 'To', 'State', '#Counted', '#Received', '#Records', '#Late (longest)'],
    ...sinks,
    ...['#Recounts (done + due)', 'Next'],
  ];
  const foot = tally && [
    ...[rowHead('Sum'), text(''), text(counted(tally.windows, 'window')), number(''), number(''), number(grouped(source.collected))],
    number(grouped(source.late)),
    ...sinks.map(() => text('')),
    ...[number(grouped(tally.recounts)), text('')],
  ];
  return table(caption, heads, rows, foot);
}

function periodTable(source: LongLedgerReportSource, by: 'day' | 'month', tz: string): Iterable<string> {
  const sinks = source.sinks.map(({ id }) => id);
  const periods = byPeriod(source.windows, by, tz);
  const rows = periods.map((period) => [
    rowHead(period.name),
    time(period.from, tz),
    to(period, tz),
    number(grouped(period.windows)),
    stateCell(
      period.state,
      period.reasons.join(', ') || null,
      period.counts[period.state] === period.windows ? undefined : period.counts[period.state],
    ),
    number(grouped(period.records)),
    number(period.late === 0 ? '0' : `${grouped(period.late)} (${delayText(period.lateLongestSeconds ?? 0)})`),
    ...sinks.map((id) => text(sinkText(period.sinks[id]))),
    number(recountText(period)),
    period.nextRecount === null ? text('-') : time(period.nextRecount, tz),
  ]);
  const heads = [
    ...[by === 'day' ? 'Day' : 'Month', `From (${tz})`, 'To', '#Windows', 'State', '#Records', '#Late (longest)'],
    ...sinks,
    ...['#Recounts (done + due)', 'Next'],
  ];
  const sum = (of: (period: (typeof periods)[number]) => number): string =>
    grouped(periods.reduce((total, period) => total + of(period), 0));
  const foot = [
    ...[rowHead('Sum'), text(''), text(''), number(sum(({ windows }) => windows)), text(''), number(sum(({ records }) => records))],
    number(sum(({ late }) => late)),
    ...sinks.map(() => text('')),
    ...[number(sum(({ recounts }) => recounts)), text('')],
  ];
  const caption = `By ${by}; a window counts for the ${by} in which it begins`;
  return table(caption, heads, rows, foot);
}

function suspensionTable(source: LongLedgerReportSource, tz: string): Chunks {
  if (source.suspensions.length === 0) return '';
  const rows = source.suspensions.map((suspension) => {
    const [what, reason, known] = suspensionText(suspension);
    return [
      `<th scope="row" class="t">${escaped(local(suspension.at, tz))}</th>`,
      ...[text(what), text(reason === '' ? '-' : reason)],
      `<td class="words">${escaped(known)}</td>`,
    ];
  });
  return table('Suspensions of collection', [`At (${tz})`, 'What', 'Reason', 'What is known'], rows);
}

function operationsPart({ operations }: LongLedgerReport, tz: string): string {
  if (operations.length === 0) return '';
  const rows = operations.map((operation) => [
    `<th scope="row" class="t">${escaped(local(operation.at, tz))}</th>`,
    text(operation.actor ?? '-'),
    text(operation.operation),
    `<td class="words">${escaped(detailText(operation))}</td>`,
  ]);
  return `<section aria-labelledby="operations"><h2 id="operations">Operator actions</h2>${[...table('', [`At (${tz})`, 'Actor (claimed)', 'Operation', 'Details'], rows)].join('')}</section>`;
}

function digestPart(report: LongLedgerReport): string {
  const period = [...(report.from === null ? [] : ['--from', report.from]), ...(report.to === null ? [] : ['--to', report.to])];
  const [only] = report.sources;
  const source = report.sources.length === 1 && only ? ['--source', only.id] : [];
  const command = ['waybill', 'ledger', '--format', 'csv', ...source, ...period].join(' ');
  return [
    '<section aria-labelledby="digest">',
    '<h2 id="digest">Digest of the data</h2>',
    `<p><code>${reportDigest(report)}</code></p>`,
    `<p class="note">SHA-256 over the windows above as CSV. <code>${escaped(command)} | tail -n +2 | sha256sum</code> gives the same for as long as the ledger of this period has not changed: each recount changes it.</p>`,
    '</section>',
  ].join('\n');
}

/** The words of the tables, one sentence each. */
const glossary: readonly (readonly [word: string, meaning: string])[] = [
  ['Window', 'A stretch of time from its begin up to, not including, its end; the windows of a source lie end to end.'],
  ['Counted', 'How many records the service counted for the query of the window, which asks one second more on both sides.'],
  ['Received', 'How many different records the service returned for that query.'],
  ['Records', 'How many of the received records have a time inside of the window; only these are added up.'],
  ['Late', 'Records that were first seen after their window was closed.'],
  ['Proven', 'The service answered the query of the window with as many records as it counted for it.'],
  ['Final', 'Proven, and the last recount is done.'],
  ['Gap', 'The numbers of the window did not agree; it is tried again.'],
  ['Accepted', 'A gap that a person accepted; it stays a gap in this report.'],
  ['Recount', 'Waybill asks the service again for the number of records of a proven window.'],
  ['Frontier', 'The instant before which every window is proven or accepted.'],
  ['Lost', 'The sink reported that delivered records, which may be of this window, are gone from it; the window counts as not delivered.'],
  ['Dead letter', 'A record that a sink rejected for good; it counts as not delivered.'],
];

function glossaryPart(): string {
  const items = glossary.map(([word, meaning]) => `<dt>${word}</dt><dd>${meaning}</dd>`);
  return `<section aria-labelledby="words"><h2 id="words">Words</h2><dl>${items.join('')}</dl></section>`;
}

function recountText({ recounts, recountsDue }: { readonly recounts: number; readonly recountsDue: number | null }): string {
  return recountsDue === null ? grouped(recounts) : `${grouped(recounts)} + ${grouped(recountsDue)}`;
}

function capital(message: string): string {
  return message.charAt(0).toUpperCase() + message.slice(1);
}

function sinkText(has: LedgerReportSinkWindow | undefined): string {
  if (!has) return 'not for it';
  const deadLetters = has.deadLetters === 0 ? '' : `, ${counted(has.deadLetters, 'dead letter')}`;
  return `${has.complete ? 'complete' : has.lost ? 'lost' : 'not yet'}${deadLetters}`;
}

function stateCell(state: string, reason: string | null, count?: number, message: string | null = null): string {
  const tone = state === 'gap' ? 'bad' : state === 'accepted' || reason !== null ? 'warn' : 'good';
  const known = message === null ? '' : `<small>${escaped(message)}</small>`;
  return `<td class="${tone}">${escaped(`${count === undefined ? '' : `${grouped(count)} `}${state}${reason === null ? '' : ` (${reason})`}`)}${known}</td>`;
}

/** Heads that begin with # are of numbers. A table may be wider than the page: it scrolls by itself, by keyboard too. */
function* table(
  caption: string,
  heads: readonly string[],
  rows: Iterable<readonly string[]>,
  foot?: readonly string[],
): Generator<string, void, void> {
  const head = heads.map((name) =>
    name.startsWith('#') ? `<th scope="col" class="n">${escaped(name.slice(1))}</th>` : `<th scope="col">${escaped(name)}</th>`,
  );
  const label = escaped(caption === '' ? 'Operator actions' : caption);
  yield `<div class="scroll" role="region" tabindex="0" aria-label="${label}"><table>\n`;
  yield `${caption === '' ? '' : `<caption>${label}</caption>`}\n<thead><tr>${head.join('')}</tr></thead>\n<tbody>`;
  yield* joined(
    mapped(rows, (row) => `<tr>${row.join('')}</tr>`),
    '\n',
  );
  yield `</tbody>\n${foot === undefined ? '' : `<tfoot><tr>${foot.join('')}</tr></tfoot>`}\n</table></div>`;
}

function filtered<Item>(items: Iterable<Item>, isRequested: (item: Item) => boolean): Iterable<Item> {
  return {
    *[Symbol.iterator]() {
      for (const item of items) if (isRequested(item)) yield item;
    },
  };
}

function rowHead(value: string): string {
  return `<th scope="row">${escaped(value)}</th>`;
}

function text(value: string): string {
  return `<td>${escaped(value)}</td>`;
}

function number(value: string): string {
  return `<td class="n">${escaped(value)}</td>`;
}

function time(value: string, tz: string): string {
  return `<td class="t">${escaped(local(value, tz))}</td>`;
}

/** The end without its date where that is the date of the beginning. */
function to({ from, to: end }: { readonly from: string; readonly to: string }, tz: string): string {
  const message = local(end, tz);
  return `<td class="t">${escaped(message.slice(0, 10) === local(from, tz).slice(0, 10) ? message.slice(11) : message)}</td>`;
}

/** Harmless in text and in a quoted attribute; what would steer a terminal or turn the direction of text shows as what it is. */
function escaped(value: string): string {
  return printable(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
