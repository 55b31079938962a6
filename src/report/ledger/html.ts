/**
 * The completeness report as one HTML page without scripts or external resources. It prints, follows the
 * light and dark mode, and works with a screen reader. It never holds a record.
 */
import { createHash } from 'node:crypto';
import type { LedgerReportSinkWindow, LedgerReportWindow, LongLedgerReport, LongLedgerReportSource } from '../../model/ledger-report.ts';
import { reportDigest } from './csv.ts';
import { byPeriod } from './periods.ts';
import { isNotable, tallyOf } from './tally.ts';
import type { LedgerTally } from './tally.ts';
import { delayText, detailText, local, quotable, reach, suspensionText, unproven } from './sentences.ts';
import { joined, mapped } from '../chunks.ts';
import { counted, grouped } from '../format-time.ts';
import { lines, markup, trusted } from '../markup.ts';
import type { Html } from '../markup.ts';

export interface LedgerHtmlOptions {
  readonly by: 'window' | 'day' | 'month';
  /** IANA name of the zone of all times. */
  readonly tz: string;
  readonly version: string;
  /** By source, as configured now. */
  readonly services?: Readonly<Record<string, ReportedService>> | undefined;
}

/** The service of a source, for the head of a report. */
export interface ReportedService {
  /** Undefined where a reference of the configuration cannot be resolved. */
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

/** Content security policy, for the header and the page: only the style of the page. */
export const ledgerHtmlPolicy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; form-action 'none'`;

/** In chunks, to be read once. */
export function* ledgerHtml(report: LongLedgerReport, options: LedgerHtmlOptions): Generator<string, void, void> {
  const { tz, version } = options;
  const tallied = report.sources.map((source) => ({ source, tally: tallyOf(source.windows) }));
  const page = lines([
    trusted('<!doctype html>'),
    markup`<html lang="en">`,
    head(report),
    markup`<body>`,
    markup`<header>`,
    markup`<h1>Completeness of the audit trail</h1>`,
    markup`<p class="meta">Generated ${local(report.generatedAt, tz)} (${tz}) by Waybill ${version} from its ledger.</p>`,
    markup`<p class="verdict ${toneOf(report)}">${report.summary}</p>`,
    ...(report.complete
      ? [markup`<p class="meta">${report.final ? 'Final: every recount is done.' : 'Not final: recounts are pending.'}</p>`]
      : []),
    markup`</header>`,
    markup`<main>`,
    ...tallied.map(({ source, tally }) => sourcePart(report, source, tally, options)),
    operationsPart(report, tz),
    digestPart(report),
    glossaryPart(),
    markup`<section aria-labelledby="limits">`,
    markup`<h2 id="limits">Limits of this report</h2>`,
    ...tallied.map(({ source, tally }) => {
      const points = unproven(report, source, tally, tz).map((point) => markup`<li>${point}</li>`);
      return markup`${report.sources.length === 1 ? none : markup`<h3>${source.id}</h3>`}<ul>${points}</ul>`;
    }),
    markup`</section>`,
    markup`</main>`,
    markup`</body>`,
    markup`</html>`,
    none,
  ]);
  yield* joined([page.chunks], '');
}

function head({ sources }: LongLedgerReport): Html {
  return lines([
    markup`<head>`,
    markup`<meta charset="utf-8">`,
    markup`<meta name="viewport" content="width=device-width, initial-scale=1">`,
    markup`<meta http-equiv="Content-Security-Policy" content="${ledgerHtmlPolicy}">`,
    markup`<meta name="referrer" content="no-referrer">`,
    markup`<title>Completeness report: ${sources.map(({ id }) => id).join(', ')}</title>`,
    markup`<style>${trusted(style)}</style>`,
    markup`</head>`,
  ]);
}

function toneOf({ complete, delivered }: LongLedgerReport): string {
  if (!complete) return 'bad';
  return delivered ? 'good' : 'warn';
}

const none = trusted('');

function sourcePart(
  report: LongLedgerReport,
  source: LongLedgerReportSource,
  tally: LedgerTally,
  { by, tz, services = {} }: Pick<LedgerHtmlOptions, 'by' | 'tz' | 'services'>,
): Html {
  const { id } = source;
  // The table of every window shows the same rows.
  const isAllNotable = by === 'window' && tally.notable === tally.windows;
  return lines([
    markup`<section aria-labelledby="source-${id}">`,
    markup`<h2 id="source-${id}">Source ${id}</h2>`,
    markup`<p class="note">${serviceText(services[id])}</p>`,
    markup`<blockquote><p>${quotable(report, source, tally, tz).join(' ')}</p></blockquote>`,
    markup`<p class="note">${capital(reach(source, tz, report.generatedAt))}. State: ${source.state}. ${lifetimeText(source)}</p>`,
    sinkTable(source),
    lateTable(source),
    tally.notable === 0 || isAllNotable
      ? none
      : windowTable(
          source,
          filtered(source.windows, isNotable),
          `Windows of ${id} to review: gaps, late records, changes after closing`,
          tz,
        ),
    by === 'window' ? windowTable(source, source.windows, `Every window of ${id}`, tz, tally) : periodTable(source, by, tz),
    suspensionTable(source, tz),
    markup`</section>`,
  ]);
}

function serviceText(service: ReportedService | undefined): string {
  if (!service) return 'The source is not in the configuration.';
  const { host, tenant, closeDelaySeconds, recountSeconds } = service;
  const ages = recountSeconds.length === 0 ? 'no recount' : `recounts after ${recountSeconds.map(delayText).join(', ')}`;
  return `Service ${host ?? 'not known'}, tenant ${tenant ?? 'not known'}. Settings: a window is closed ${delayText(closeDelaySeconds)} after its end; ${ages}.`;
}

function lifetimeText({ lifetime }: LongLedgerReportSource): string {
  return `Collected since its ledger started: ${grouped(lifetime.collected)} = ${grouped(lifetime.inWindows)} in windows + ${grouped(lifetime.outside)} outside of them.`;
}

function sinkTable(source: LongLedgerReportSource): Html {
  if (source.sinks.length === 0) return none;
  const rows = source.sinks.map((sink) => [
    rowHead(sink.id),
    text(sink.type),
    text(sink.state),
    text(sink.since === null ? 'the start' : sink.since),
    number(`${grouped(sink.complete)} of ${grouped(sink.windows)}${sink.lost === 0 ? '' : ` (${grouped(sink.lost)} lost)`}`),
    number(sink.records === null ? 'by its filter' : grouped(sink.records)),
    number(grouped(sink.deadLetters)),
  ]);
  return table('Delivery of these windows by sink', ['Sink', 'Type', 'State', 'From', '#Windows', '#Records', '#Dead letters'], rows);
}

function lateTable(source: LongLedgerReportSource): Html {
  if (source.late === 0) return none;
  const entries = Object.entries(source.lateDelays.within).filter(([, count]) => count > 0);
  const rows = entries.map(([within, count]) => [
    rowHead(within === 'later' ? 'later than 30d' : `within ${within}`),
    number(grouped(count)),
  ]);
  const foot = [rowHead('Sum'), number(grouped(entries.reduce((sum, [, count]) => sum + count, 0)))];
  return table('Late records by delay: first seen minus logTimestamp', ['First seen', '#Records'], rows, foot);
}

function windowTable(
  source: LongLedgerReportSource,
  windows: Iterable<LedgerReportWindow>,
  caption: string,
  tz: string,
  /** Of these windows, where they are to be added up. */
  tally?: LedgerTally,
): Html {
  const sinks = source.sinks.map(({ id }) => id);
  const rows = mapped(windows, (window) => [
    markup`<th scope="row" class="t">${local(window.from, tz)}</th>`,
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

function periodTable(source: LongLedgerReportSource, by: 'day' | 'month', tz: string): Html {
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
  const caption = `By ${by}; a window belongs to the ${by} in which it starts`;
  return table(caption, heads, rows, foot);
}

function suspensionTable(source: LongLedgerReportSource, tz: string): Html {
  if (source.suspensions.length === 0) return none;
  const rows = source.suspensions.map((suspension) => {
    const [what, reason, known] = suspensionText(suspension);
    return [
      markup`<th scope="row" class="t">${local(suspension.at, tz)}</th>`,
      ...[text(what), text(reason === '' ? '-' : reason)],
      markup`<td class="words">${known}</td>`,
    ];
  });
  return table('Suspensions of collection', [`At (${tz})`, 'Event', 'Reason', 'Details'], rows);
}

function operationsPart({ operations }: LongLedgerReport, tz: string): Html {
  if (operations.length === 0) return none;
  const rows = operations.map((operation) => [
    markup`<th scope="row" class="t">${local(operation.at, tz)}</th>`,
    text(operation.actor ?? '-'),
    text(operation.operation),
    markup`<td class="words">${detailText(operation)}</td>`,
  ]);
  const heads = [`At (${tz})`, 'Actor (not authenticated)', 'Operation', 'Details'];
  return markup`<section aria-labelledby="operations"><h2 id="operations">Operator actions</h2>${table('', heads, rows)}</section>`;
}

function digestPart(report: LongLedgerReport): Html {
  const period = [...(report.from === null ? [] : ['--from', report.from]), ...(report.to === null ? [] : ['--to', report.to])];
  const [only] = report.sources;
  const source = report.sources.length === 1 && only ? ['--source', only.id] : [];
  const command = ['waybill', 'ledger', '--format', 'csv', ...source, ...period].join(' ');
  return lines([
    markup`<section aria-labelledby="digest">`,
    markup`<h2 id="digest">Digest of the data</h2>`,
    markup`<p><code>${reportDigest(report)}</code></p>`,
    markup`<p class="note">SHA-256 of the windows above as CSV. <code>${command} | tail -n +2 | sha256sum</code> prints the same digest until a recount changes the ledger of this period.</p>`,
    markup`</section>`,
  ]);
}

/** Terms of the tables. */
const glossary: readonly (readonly [word: string, meaning: string])[] = [
  ['Window', 'A range of time that includes its start and excludes its end. The windows of a source are contiguous.'],
  ['Counted', 'The number of records that the service counted for the query of the window. The query extends one second beyond both ends.'],
  ['Received', 'The number of distinct records that the service returned for that query.'],
  ['Records', 'The received records with a time inside the window. Only these are added up.'],
  ['Late', 'Records first seen after their window was closed.'],
  ['Proven', 'The service returned as many records for the query of the window as it counted.'],
  ['Final', 'Proven, and the last recount is done.'],
  ['Gap', 'The counted and received numbers of the window differ. The window is read again.'],
  ['Accepted', 'A gap that an operator accepted. It remains a gap in this report.'],
  ['Recount', 'Waybill asks the service again for the number of records of a proven window.'],
  ['Frontier', 'The time before which every window is proven or accepted.'],
  ['Lost', 'The sink reported the loss of delivered records that may belong to this window. The window counts as not delivered.'],
  ['Dead letter', 'A record that a sink rejected for good. It counts as not delivered.'],
];

function glossaryPart(): Html {
  const items = glossary.map(([word, meaning]) => markup`<dt>${word}</dt><dd>${meaning}</dd>`);
  return markup`<section aria-labelledby="glossary"><h2 id="glossary">Glossary</h2><dl>${items}</dl></section>`;
}

function recountText({ recounts, recountsDue }: { readonly recounts: number; readonly recountsDue: number | null }): string {
  return recountsDue === null ? grouped(recounts) : `${grouped(recounts)} + ${grouped(recountsDue)}`;
}

function capital(message: string): string {
  return message.charAt(0).toUpperCase() + message.slice(1);
}

function sinkText(has: LedgerReportSinkWindow | undefined): string {
  if (!has) return 'not owed';
  const deadLetters = has.deadLetters === 0 ? '' : `, ${counted(has.deadLetters, 'dead letter')}`;
  return `${has.complete ? 'complete' : has.lost ? 'lost' : 'not yet'}${deadLetters}`;
}

function stateCell(state: string, reason: string | null, count?: number, message: string | null = null): Html {
  const tone = state === 'gap' ? 'bad' : state === 'accepted' || reason !== null ? 'warn' : 'good';
  const known = message === null ? none : markup`<small>${message}</small>`;
  const number = count === undefined ? '' : `${grouped(count)} `;
  return markup`<td class="${tone}">${number}${state}${reason === null ? '' : ` (${reason})`}${known}</td>`;
}

/** A heading that starts with # is of a numeric column. A wide table scrolls, also by keyboard. */
function table(caption: string, heads: readonly string[], rows: Iterable<readonly Html[]>, foot?: readonly Html[]): Html {
  const label = caption === '' ? 'Operator actions' : caption;
  return lines([
    markup`<div class="scroll" role="region" tabindex="0" aria-label="${label}"><table>`,
    caption === '' ? none : markup`<caption>${label}</caption>`,
    markup`<thead><tr>${heads.map(columnHead)}</tr></thead>`,
    markup`<tbody>${lines(mapped(rows, (row) => markup`<tr>${row}</tr>`))}</tbody>`,
    foot === undefined ? none : markup`<tfoot><tr>${foot}</tr></tfoot>`,
    markup`</table></div>`,
  ]);
}

function columnHead(name: string): Html {
  return name.startsWith('#') ? markup`<th scope="col" class="n">${name.slice(1)}</th>` : markup`<th scope="col">${name}</th>`;
}

function filtered<Item>(items: Iterable<Item>, isRequested: (item: Item) => boolean): Iterable<Item> {
  return {
    *[Symbol.iterator]() {
      for (const item of items) if (isRequested(item)) yield item;
    },
  };
}

function rowHead(value: string): Html {
  return markup`<th scope="row">${value}</th>`;
}

function text(value: string): Html {
  return markup`<td>${value}</td>`;
}

function number(value: string): Html {
  return markup`<td class="n">${value}</td>`;
}

function time(value: string, tz: string): Html {
  return markup`<td class="t">${local(value, tz)}</td>`;
}

/** The end, without its date where both ends have the same date. */
function to({ from, to: end }: { readonly from: string; readonly to: string }, tz: string): Html {
  const full = local(end, tz);
  return markup`<td class="t">${full.slice(0, 10) === local(from, tz).slice(0, 10) ? full.slice(11) : full}</td>`;
}
