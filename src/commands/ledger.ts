/** `waybill ledger`: the completeness report, for a person or for a script. Reads the state beside a running daemon. */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { systemClock } from '../clock.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/load.ts';
import { reportSettings, serviceWords } from '../daemon/views.ts';
import { WaybillError, wordsOf } from '../errors.ts';
import { openLedgerReport } from '../journal/ledger-report.ts';
import { openReadOnly } from '../journal/state.ts';
import { ledgerDocument, zoneOfWords } from '../observe/ledger-document.ts';
import { gathered, joined } from '../observe/pieces.ts';
import { judged, presentOf } from '../observe/verdict.ts';
import { version } from '../version.ts';
import { writeResult } from './io.ts';
import type { Io } from './io.ts';
import { ledgerText } from './ledger-text.ts';
import { currentSnapshot } from './status.ts';
import { assertForward, periodOptions } from './period-options.ts';
import { joinSpans, parseTime, parseZone } from '../config/period.ts';

export const summary = 'reports what was counted, collected and delivered, window by window';

export const usage = `waybill ledger [--source ID] [--from T] [--to T] [--by window|day|month] [--tz ZONE] [--format text|csv|html|json] [--out FILE] [--collected-only] [--expect-final]

The completeness report: for each window what the service counted for its query, what was collected, what each sink has, late records and
how late, recounts done and due, and gaps with their reasons. The first line is the verdict on the period, which ends now without --to:
COMPLETE (SO FAR, where its end is not due yet), AND DELIVERED or NOT ALL DELIVERED, or INCOMPLETE with the gaps and the time that is not
covered. Exits 0 when it is complete and delivered, else 3.

  --source ID         only this source
  --from T, --to T    a time, a date, a month, 2026-Q3, or -7d
  --by UNIT           one row a window, a day or a month; default window, in text day beyond 100 windows
  --tz ZONE           zone of days, months and of the times in text and html; default UTC. csv and json keep their times in UTC
  --format FORMAT     text (the default), csv, html (one page that stands alone), json; --json is short for --format json
  --out FILE          writes there instead of standard output
  --collected-only    exits 0 when everything due is collected, whatever the sinks have
  --expect-final      exits 3 as well when a window's last recount is still to come, or a part of the period is not in the ledger

Examples:
  waybill ledger --from -7d --by day
  waybill ledger --source production --from 2026-Q3 --to 2026-Q3 --by day --format html --out q3.html --expect-final
`;

/** More rows than these are no text for a terminal: days take their place. */
const windowsMost = 100;
/** Characters of a report that are written at once. */
const pieceLength = 65_536;

export async function run(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args: joinSpans(args),
    options: {
      ...periodOptions,
      by: { type: 'string' },
      tz: { type: 'string', default: 'UTC' },
      format: { type: 'string' },
      out: { type: 'string' },
      'collected-only': { type: 'boolean', default: false },
      'expect-final': { type: 'boolean', default: false },
    },
  });
  const asked = values.by === undefined ? undefined : oneOf('--by', values.by, ['window', 'day', 'month']);
  const format = oneOf('--format', values.format ?? (values.json ? 'json' : 'text'), ['text', 'csv', 'html', 'json']);
  const tz = parseZone(values.tz);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const now = systemClock.now() * 1000;
  const from = values.from === undefined ? undefined : parseTime(values.from, '--from', now, false);
  const to = values.to === undefined ? undefined : parseTime(values.to, '--to', now, true);
  if (from !== undefined && to !== undefined) assertForward('report', from, to, values);
  const present = presentOf(await currentSnapshot(config));
  const db = openReadOnly(config.state);
  try {
    if (values.source !== undefined) assertKnown(values.source, config, db);
    using reading = openLedgerReport(db, { source: values.source, from, to, now, ...reportSettings(config) });
    const { report, found } = judged(reading, { now, from, to }, present, zoneOfWords(format, tz));
    const isShortened = asked === undefined && format === 'text' && found.windows > windowsMost;
    const by = asked ?? (isShortened ? 'day' : 'window');
    const color = format === 'text' && values.out === undefined && isTerminal(io.stdout) && !io.env['NO_COLOR'];
    const text =
      format === 'text'
        ? joined([ledgerText(report, { by, tz, color, isShortened }), '\n'], '')
        : ledgerDocument(report, format, { by, tz, version, services: serviceWords(config) }).pieces;
    const pieces = gathered(text, pieceLength);
    if (values.out === undefined) await writeResult(io, pieces);
    else await writeOut(values.out, pieces, io.signal);
    const { complete, delivered, final } = report;
    return complete && (delivered || values['collected-only']) && (final || !values['expect-final']) ? 0 : 3;
  } finally {
    db.close();
  }
}

/** A source may be gone from the configuration: its ledger stays. */
function assertKnown(source: string, { sources }: Config, db: ReturnType<typeof openReadOnly>): void {
  const known = new Set([
    ...sources.map(({ id }) => id),
    ...db
      .prepare<[], { id: string }>('SELECT id FROM sources')
      .all()
      .map(({ id }) => id),
  ]);
  if (!known.has(source)) throw new WaybillError('usage', `cannot find the source "${source}": there are ${[...known].join(', ')}`);
}

async function writeOut(path: string, pieces: Iterable<string>, signal: AbortSignal): Promise<void> {
  try {
    await writeFile(path, pieces, { signal });
  } catch (cause) {
    signal.throwIfAborted();
    throw cause instanceof WaybillError ? cause : new WaybillError('usage', `cannot write --out "${path}": ${wordsOf(cause)}`, { cause });
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
