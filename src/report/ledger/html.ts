/**
 * The completeness report as one HTML page without scripts or external resources. It prints,
 * follows the light and dark mode, and works with a screen reader. It never holds a record.
 */
import type { LongLedgerReport, LongLedgerReportSource } from '../../model/ledger-report.ts';
import { reportDigest } from './csv.ts';
import { ledgerHtmlPolicy, style } from './html-style.ts';
import { lateTable, number, periodTable, sinkTable, suspensionTable, table, text, windowTable } from './html-tables.ts';
import { operationHeads, operationRows } from './operations.ts';
import { isNotable, tallyOf, type LedgerTally } from './tally.ts';
import { capital, delayText, local, quotable, reach, unproven } from './sentences.ts';
import { joined } from '../chunks.ts';
import { grouped } from '../format-time.ts';
import { lines, markup, none, trusted, type Html } from '../markup.ts';

export interface LedgerHtmlOptions {
  readonly by: 'window' | 'day' | 'month';
  /** IANA name of the zone of all times. */
  readonly tz: string;
  readonly version: string;
  /** For each source in the present configuration. */
  readonly services?: Readonly<Record<string, ReportedService>> | undefined;
}

/** The service of a source, for the head of a report. */
export interface ReportedService {
  /** Undefined if a reference of the configuration cannot be resolved. */
  readonly host: string | undefined;
  readonly tenant: string | undefined;
  readonly closeDelaySeconds: number;
  /** Ages of recount, ascending. */
  readonly recountSeconds: readonly number[];
}

/** In chunks; can be read once. */
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
    markup`<p class="summary ${toneOf(report)}">${report.summary}</p>`,
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

function sourcePart(
  report: LongLedgerReport,
  source: LongLedgerReportSource,
  tally: LedgerTally,
  { by, tz, services = {} }: Pick<LedgerHtmlOptions, 'by' | 'tz' | 'services'>,
): Html {
  const { id } = source;
  // If every window is notable, the table of all windows shows the same rows.
  const isAllNotable = by === 'window' && tally.notable === tally.all;
  return lines([
    markup`<section aria-labelledby="source-${id}">`,
    markup`<h2 id="source-${id}">Source ${id}</h2>`,
    markup`<p class="note">${serviceText(services[id])}</p>`,
    markup`<blockquote><p>${quotable(report, source, tally, tz).join(' ')}</p></blockquote>`,
    markup`<p class="note">${capital(reach(source, tz, report.generatedAt))}. State: ${source.state}. ${report.from === null && report.to === null ? lifetimeText(source) : ''}</p>`,
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
    by === 'window' ? windowTable(source, source.windows, `Every window of ${id}`, tz, tally) : periodTable(source, tally, by, tz),
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
  return `Collected since the ledger started: ${grouped(lifetime.collected)} records = ${grouped(lifetime.inWindows)} in windows + ${grouped(lifetime.outside)} outside of them.`;
}

function operationsPart({ operations }: LongLedgerReport, tz: string): Html {
  if (operations.length === 0) return none;
  const rows = operationRows(operations).map(({ at, cells }) => [
    markup`<th scope="row" class="t">${local(at, tz)}</th>`,
    ...cells.map((cell, i) => (operationHeads[i] === 'count' ? number(cell) : i < 4 ? text(cell) : markup`<td class="words">${cell}</td>`)),
  ]);
  const heads = [`At (${tz})`, ...operationHeads.map((head) => `${head === 'count' ? '#' : ''}${capital(head)}`)];
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
  [
    'Counted = received',
    'Counted: the number of records that the service counted for the query of the window, which reaches one second beyond both ends. Received: the number of distinct records that it returned for that query.',
  ],
  [
    'Records in window',
    'The received records with a time inside the window. Only these are added up. The others are in the two seconds around the window, and belong to its neighbours.',
  ],
  ['Late', 'Records first seen after their window was closed, and the longest delay.'],
  ['Passes', 'How often Waybill read all pages of the window.'],
  ['Proven', 'The service returned as many records for the query of the window as it counted.'],
  ['Final', 'Proven, and the last recount is done.'],
  ['Gap', 'The total of the window and the number of received records differ. The window is read again.'],
  ['Accepted', 'A gap that an operator accepted. It remains a gap in this report.'],
  [
    'Recounts',
    'Waybill asks the service again for the number of records of a proven window. 2 of 7: two of seven planned recounts are done. None due: the window was older than the last age of recountAfter when it was closed.',
  ],
  [
    'All (of a sink)',
    'The sink has every record that was received for this window. If the window is a gap, the sink cannot have what was not received.',
  ],
  [
    'Complete until',
    'The time before which every window is proven or accepted. Read until: the time before which every window was read; some may be gaps.',
  ],
  ['Lost', 'The sink reported the loss of delivered records that may belong to this window. The window counts as not delivered.'],
  ['Dead letter', 'A record that a sink rejected permanently. It counts as not delivered.'],
];

function glossaryPart(): Html {
  const items = glossary.map(([word, meaning]) => markup`<dt>${word}</dt><dd>${meaning}</dd>`);
  return markup`<section aria-labelledby="glossary"><h2 id="glossary">Glossary</h2><dl>${items}</dl></section>`;
}

function filtered<Item>(items: Iterable<Item>, isRequested: (item: Item) => boolean): Iterable<Item> {
  return {
    *[Symbol.iterator]() {
      for (const item of items) if (isRequested(item)) yield item;
    },
  };
}
