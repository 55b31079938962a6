/** `waybill ledger`: the completeness report, for a person or for a script. Reads the state beside a running daemon. */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { systemClock } from '../../clock.ts';
import type { StateSettings } from '../../config/state-settings.ts';
import { reportSettings, serviceWords } from '../../daemon/live-status.ts';
import { WaybillError, messageOf } from '../../errors.ts';
import { openLedgerReport } from '../../journal/queries/ledger.ts';
import { openReadOnly } from '../../journal/state.ts';
import { ledgerDocument, zoneOfWords } from '../../report/ledger/document.ts';
import { gathered, joined } from '../../report/chunks.ts';
import { rfc3339 } from '../../report/format-time.ts';
import { deduplicated, presentOf } from '../../report/verdict.ts';
import { version } from '../../version.ts';
import type { LedgerReport, LongLedgerReport } from '../../model/ledger-report.ts';
import type { Micros } from '../../model/time.ts';
import { adminOptions, adminServer, adminUsage } from '../daemon-client.ts';
import type { AdminServer, AdminValues } from '../daemon-client.ts';
import { writeResult } from '../io.ts';
import type { Io } from '../io.ts';
import { ledgerText } from '../../report/ledger/text.ts';
import { localSnapshot } from './status.ts';
import { assertForward, periodOptions } from '../period-options.ts';
import { readUsage, settingsFor, stateOptions } from '../state-access.ts';
import type { StateValues } from '../state-access.ts';
import { joinSpans, parseTime, parseZone } from '../../settings/period.ts';

export const summary = 'reports what was counted, collected and delivered, window by window';

export const usage = `waybill ledger [--source ID] [--from T] [--to T] [--by window|day|month] [--tz ZONE] [--format text|csv|html|json] [--out FILE] [--collected-only] [--require-final]

The completeness report: for each window what the service counted for its query, what was collected, what each sink has, late records and
how late, recounts done and due, and gaps with their reasons. The first line is the verdict on the period, which ends now without --to:
COMPLETE (SO FAR, where its end is not due yet), AND DELIVERED or NOT ALL DELIVERED, or INCOMPLETE with the gaps and the time that is not
covered. NOTHING DUE YET: no window can be proven so soon. Exits 0 when it is complete and delivered, else 3.

  --source ID         only this source
  --from T, --to T    a time, a date, a month, 2026-Q3, -7d or -6h
  --by UNIT           one row a window, a day or a month; default window, in text day beyond 100 windows
  --tz ZONE           zone of days, months and of the times in text and html; default UTC. csv and json keep their times in UTC
  --format FORMAT     text (the default), csv, html (one page that stands alone), json; --json is short for --format json
  --out FILE          writes there instead of standard output
  --collected-only    exits 0 when everything due is collected, whatever the sinks have
  --require-final     exits 3 as well when a window's last recount is still to come, or a part of the period is not in the ledger
${readUsage}
${adminUsage}

Examples:
  waybill ledger --from -7d --by day
  waybill ledger --source production --from 2026-Q3 --to 2026-Q3 --by day --format html --out q3.html --require-final
`;

/** More rows than these are no text for a terminal: days take their place. */
const maxWindows = 100;
/** Characters of a report that are written at once. */
const chunkLength = 65_536;

export async function run(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args: joinSpans(args),
    options: {
      ...{ ...periodOptions, ...stateOptions, ...adminOptions },
      by: { type: 'string' },
      tz: { type: 'string', default: 'UTC' },
      format: { type: 'string' },
      out: { type: 'string' },
      'collected-only': { type: 'boolean', default: false },
      'require-final': { type: 'boolean', default: false },
    },
  });
  const asked = values.by === undefined ? undefined : oneOf('--by', values.by, ['window', 'day', 'month']);
  const format = oneOf('--format', values.format ?? (values.json ? 'json' : 'text'), ['text', 'csv', 'html', 'json']);
  const tz = parseZone(values.tz);
  const now = systemClock.now() * 1000;
  const from = values.from === undefined ? undefined : parseTime(values.from, '--from', now, false);
  const to = values.to === undefined ? undefined : parseTime(values.to, '--to', now, true);
  if (from !== undefined && to !== undefined) assertForward('report', from, to, values);
  using open = await openReport(values, { source: values.source, from, to, now }, zoneOfWords(format, tz), io);
  const { report, windows, services } = open;
  const isShortened = asked === undefined && format === 'text' && windows > maxWindows;
  const by = asked ?? (isShortened ? 'day' : 'window');
  const color = format === 'text' && values.out === undefined && isTerminal(io.stdout) && !io.env['NO_COLOR'];
  const text =
    format === 'text'
      ? joined([ledgerText(report, { by, tz, color, isShortened }), '\n'], '')
      : ledgerDocument(report, format, { by, tz, version, services }).chunks;
  const chunks = gathered(text, chunkLength);
  if (values.out === undefined) await writeResult(io, chunks);
  else await writeOut(values.out, chunks, io.signal);
  const { complete, delivered, final } = report;
  return complete && (delivered || values['collected-only']) && (final || !values['require-final']) ? 0 : 3;
}

interface Asked {
  readonly source: string | undefined;
  readonly from: Micros | undefined;
  readonly to: Micros | undefined;
  readonly now: Micros;
}
interface OpenReport extends Disposable {
  readonly report: LongLedgerReport;
  readonly windows: number;
  readonly services?: ReturnType<typeof serviceWords> | undefined;
}

/** The report of the state, or of a daemon elsewhere: every format is made here of its JSON by window. */
async function openReport(values: StateValues & AdminValues, asked: Asked, tz: string, io: Io): Promise<OpenReport> {
  const server = adminServer(values, io.env);
  if (server) {
    const report = await reportOf(server, asked);
    const windows = report.sources.reduce((sum, source) => sum + source.windows.length, 0);
    return { report, windows, [Symbol.dispose]: () => undefined };
  }
  const known = await settingsFor(values, io);
  const { settings } = known;
  const present = presentOf(await localSnapshot(known));
  using opened = new DisposableStack();
  const db = opened.adopt(openReadOnly(settings.dataDir), (each) => each.close());
  if (asked.source !== undefined) assertKnown(asked.source, settings, db);
  const reading = opened.use(openLedgerReport(db, { ...asked, ...reportSettings(settings) }));
  const { report, found } = deduplicated(reading, asked, present, tz);
  const kept = opened.move();
  return { report, windows: found.windows, services: serviceWords(settings), [Symbol.dispose]: () => kept.dispose() };
}

function reportOf(server: AdminServer, { source, from, to }: Asked): Promise<LedgerReport> {
  const time = (at: Micros | undefined): string | undefined => (at === undefined ? undefined : rfc3339(at));
  return server.get<LedgerReport>(
    '/ledger',
    { sources: 'objects' },
    { source, from: time(from), to: time(to), by: 'window', format: 'json' },
  );
}

/** A source may be gone from the configuration: its ledger stays. */
function assertKnown(source: string, { sources }: StateSettings, db: ReturnType<typeof openReadOnly>): void {
  const known = new Set([
    ...sources.map(({ id }) => id),
    ...db
      .prepare<[], { id: string }>('SELECT id FROM sources')
      .all()
      .map(({ id }) => id),
  ]);
  if (!known.has(source)) throw new WaybillError('usage', `cannot find the source "${source}": there are ${[...known].join(', ')}`);
}

async function writeOut(path: string, chunks: Iterable<string>, signal: AbortSignal): Promise<void> {
  try {
    await writeFile(path, chunks, { signal });
  } catch (cause) {
    signal.throwIfAborted();
    throw cause instanceof WaybillError ? cause : new WaybillError('usage', `cannot write --out "${path}": ${messageOf(cause)}`, { cause });
  }
}

function oneOf<Name extends string>(option: string, given: string, names: readonly Name[]): Name {
  const found = names.find((name) => name === given);
  if (found === undefined) throw new WaybillError('usage', `cannot use ${option} "${given}": there are ${names.join(', ')}`);
  return found;
}

function isTerminal(stream: NodeJS.WritableStream): boolean {
  return 'isTTY' in stream && stream.isTTY === true;
}
