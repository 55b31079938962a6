/** `waybill ledger`: the completeness report, for people or scripts. Reads the state while a daemon may run. */
import { writeFile } from 'node:fs/promises';
import { systemClock } from '../../time/clock.ts';
import { reportSettings, serviceWords } from '../../config/report-settings.ts';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import { printable } from '../../errors/escape.ts';
import { openLedgerReports } from '../../journal/queries/ledger.ts';
import { storedSources } from '../../journal/queries/stored.ts';
import { ledgerDocument, zoneOfWords } from '../../report/ledger/document.ts';
import { gathered, joined } from '../../report/chunks.ts';
import { rfc3339 } from '../../report/format-time.ts';
import { presentOf } from '../../report/completeness.ts';
import { assessed } from '../../report/summary.ts';
import { version } from '../../disk/version.ts';
import type { LedgerReport, LongLedgerReport } from '../../model/ledger-report.ts';
import type { Micros } from '../../model/time.ts';
import { adminOptions, adminServer, type AdminServer, type AdminValues } from '../admin-client.ts';
import { defineCommand } from '../command.ts';
import { usesColor, widthOf, writeResult, type Io } from '../io.ts';
import { ledgerText } from '../../report/ledger/text.ts';
import { localSnapshot } from '../snapshot.ts';
import { assertKnownSource } from '../not-found.ts';
import { choice, text, timeOptions, toggle, withDefault, type ValuesOf } from '../option.ts';
import { settingsFor, statesOf, stateOptions, type StateValues } from '../state-access.ts';
import { assertForward, parsePeriod, parseZone } from '../../settings/period.ts';

const units = ['window', 'day', 'month'] as const;
const formats = ['text', 'csv', 'html', 'json'] as const;

const options = {
  source: text('ID', 'only this source'),
  ...timeOptions,
  by: choice('UNIT', units, 'rows: window, day or month; default window; text of more than 100 windows: day'),
  tz: withDefault(
    text(
      'ZONE',
      'time zone of days and months, of dates in --from and --to, and of the times in text and html; default UTC; csv and json show UTC',
    ),
    'UTC',
  ),
  format: choice('FORMAT', formats, 'text (default), csv, html (one self-contained page) or json'),
  json: toggle('short for --format json'),
  out: text('FILE', 'write to this file instead of standard output'),
  'collected-only': toggle('exit with 0 when everything due is collected, even if not delivered'),
  'require-final': toggle('exit with 3 unless every recount is done and the ledger covers the whole period'),
  ...stateOptions,
  ...adminOptions,
};

export const command = defineCommand({
  name: 'ledger',
  summary: 'reports what was counted, collected and delivered, window by window',
  description: `The completeness report: for each window the count of the service, the records collected, the records delivered to each sink, late records
and their delay, recounts done and due, and gaps with their reasons.

The first line is the summary of the period: COMPLETE AND DELIVERED; COMPLETE, NOT ALL DELIVERED; INCOMPLETE, with the gaps and the time that
the ledger does not cover; or NOTHING DUE YET. COMPLETE SO FAR means that the end of the period is not due yet. Without --to, the period ends
now. No sink may answer for a window: it starts before the sink, or before a change of its filter or sources. Then the line says so in place of
DELIVERED. Exits with 0 when the period is complete and delivered, else with 3.`,
  options,
  examples: [
    'waybill ledger --from -7d --by day',
    'waybill ledger --source production --from 2026-Q3 --to 2026-Q3 --by day --format html --out q3.html --require-final',
  ],
  run,
});

/** Beyond this number of windows, the text has one row for each day. */
const maxWindows = 100;
const chunkLength = 65_536;

async function run(values: ValuesOf<typeof options>, io: Io): Promise<number> {
  const format = values.format ?? (values.json ? 'json' : 'text');
  const tz = parseZone(values.tz);
  const now = systemClock.now() * 1000;
  const { from, to } = parsePeriod(values, now, tz);
  assertForward('report', from, to, values);
  using open = await openReport(values, { source: values.source, from, to, now }, zoneOfWords(format, tz), io);
  const { report, windows, services } = open;
  const isShortened = values.by === undefined && format === 'text' && windows > maxWindows;
  const by = values.by ?? (isShortened ? 'day' : 'window');
  const color = format === 'text' && values.out === undefined && usesColor(io);
  const output =
    format === 'text'
      ? joined(
          [
            ledgerText(report, { by, tz, color, isShortened, width: values.out === undefined ? widthOf(io.stdout, Infinity) : Infinity }),
            '\n',
          ],
          '',
        )
      : ledgerDocument(report, format, { by, tz, version, services }).chunks;
  const chunks = gathered(output, chunkLength);
  if (values.out === undefined) await writeResult(io, chunks);
  else await writeOut(values.out, chunks, io.signal);
  const { complete, delivered, final, summary } = report;
  const isMet = complete && (delivered === true || values['collected-only']);
  const isFinal = final || !values['require-final'];
  // The reason of the exit code is otherwise only in the file.
  if (values.out !== undefined && !(isMet && isFinal)) io.stderr.write(`${printable(summary)}\n`);
  if (complete && !isFinal)
    io.stderr.write(
      'the period is not final: windows will be counted again, or its end is not covered yet; --require-final exits with 3\n',
    );
  return isMet && isFinal ? 0 : 3;
}

interface Period {
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

/** From the state, or from a remote daemon as JSON by window; every format is rendered here. */
async function openReport(values: StateValues & AdminValues, period: Period, tz: string, io: Io): Promise<OpenReport> {
  const server = adminServer(values, io.env);
  if (server) {
    const report = await reportOf(server, period);
    const windows = report.sources.reduce((sum, source) => sum + source.windows.length, 0);
    return { report, windows, [Symbol.dispose]: () => undefined };
  }
  const known = await settingsFor(values, io);
  const { settings } = known;
  const present = presentOf(await localSnapshot(known));
  using opened = new DisposableStack();
  const dbs = opened.use(await statesOf(settings)).states.map(({ db }) => db);
  assertKnownSource(period.source, settings, dbs.flatMap(storedSources));
  const reading = opened.use(openLedgerReports(dbs, { ...period, ...reportSettings(settings) }));
  const { report, found } = assessed(reading, period, present, tz);
  const kept = opened.move();
  return { report, windows: found.windows, services: serviceWords(settings), [Symbol.dispose]: () => kept.dispose() };
}

function reportOf(server: AdminServer, { source, from, to }: Period): Promise<LedgerReport> {
  const time = (at: Micros | undefined): string | undefined => (at === undefined ? undefined : rfc3339(at));
  return server.get<LedgerReport>(
    '/ledger',
    { sources: 'objects' },
    { source, from: time(from), to: time(to), by: 'window', format: 'json' },
  );
}

async function writeOut(path: string, chunks: Iterable<string>, signal: AbortSignal): Promise<void> {
  try {
    await writeFile(path, chunks, { signal });
  } catch (cause) {
    signal.throwIfAborted();
    throw cause instanceof WaybillError ? cause : new WaybillError('usage', `cannot write --out "${path}": ${messageOf(cause)}`, { cause });
  }
}
