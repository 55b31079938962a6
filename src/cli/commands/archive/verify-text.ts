/** The text report of `waybill archive verify`. Pure. */
import { parseLine, parseRecordLine } from '../../../archive/parse-line.ts';
import type { VerifyReport } from '../../../archive/verify/verify.ts';
import type { Micros } from '../../../model/time.ts';
import { printable } from '../../../errors/escape.ts';
import { ago, counted, grouped, rfc3339 } from '../../../report/format-time.ts';
import { right, table } from '../../../report/text-table.ts';

const maxFindings = 100;
const verdicts = {
  altered: 'ALTERED OR MISSING: something contradicts a signature, a hash or a proof, or is missing',
  unproven: 'NOT PROVEN: nothing contradicts the signatures, but not everything is proven',
};

/** @param isCompared  a checkpoint from another place was given */
export function verifyText(report: VerifyReport, isCompared: boolean, now: Micros): string[] {
  const { origin, checkpoints, lines, records, sources, findings } = report;
  const columns = ['SOURCE', right('WINDOWS'), right('PROVEN'), right('NOT CHECKED'), 'FROM', 'TO'];
  const rows = sources.map(({ source, windows, proven, notChecked, from, to }) => [
    ...[source, grouped(windows), grouped(proven), grouped(notChecked)],
    ...[rfc3339(from), to === undefined ? '' : rfc3339(to)],
  ]);
  const shown = findings.slice(0, maxFindings).map(({ severity, object, message }) => printable(`${severity} ${object}: ${message}`));
  const omitted = findings.length - shown.length;
  return [
    `archive "${printable(origin ?? 'unknown')}": ${counted(checkpoints, 'checkpoint')}, ${counted(lines, 'line')}, ${counted(records, 'record')}`,
    ...(rows.length > 0 ? ['', ...table(columns, rows)] : []),
    ...(shown.length > 0 ? ['', ...shown] : []),
    ...(omitted > 0 ? [`and ${counted(omitted, 'more finding')}; --json lists all`] : []),
    '',
    ...conclusions(report, isCompared, now),
  ];
}

/** The verdict, then what it relies on. */
export function conclusions(report: VerifyReport, isCompared: boolean, now: Micros): string[] {
  const { lines, missing, sources, result } = report;
  const [windows, proven, notChecked] = (['windows', 'proven', 'notChecked'] as const).map((name) =>
    sources.reduce((sum, each) => sum + each[name], 0),
  ) as [number, number, number];
  const intact = missing > 0 ? 'INTACT for what remains: it is as signed, and' : 'INTACT: everything is as signed, and';
  const checked = windows === 0 ? 'no window was checked' : `every window${missing > 0 ? ' that was checked' : ''} is proven`;
  return [
    result === 'intact' ? `${intact} ${checked}` : verdicts[result],
    `windows: ${grouped(proven)} proven, ${grouped(notChecked)} not checked because lines are missing, ${grouped(windows - proven)} in doubt`,
    ...(missing > 0 ? [`${counted(missing, 'line was', 'lines were')} not read, because their segments are missing`] : []),
    ...(report.archivedAt === undefined
      ? []
      : [`the newest line was archived on ${rfc3339(report.archivedAt)}, ${ago(report.archivedAt, now)}`]),
    ...report.keys.map(({ key, first, last }) => printable(`the key ${key} signed checkpoints of ${first} to ${last} lines`)),
    ...(report.timeStamps ? [stampedText(report.timeStamps, lines)] : []),
    ...(report.cosignatures ? [cosignedText(report.cosignatures, lines)] : []),
    ...(report.within === undefined
      ? []
      : [`each line that they cover was stamped or cosigned within ${Math.ceil(report.within / 3_600_000_000)} h of its archiving`]),
    newest(report, isCompared),
  ];
}

const statedFields = {
  record: ['logTimestamp', 'actionAttempted', 'result'],
  ledger: ['source', 'from', 'to', 'state', 'records'],
  operation: ['at', 'actor', 'operation'],
  position: ['at', 'seq'],
};

/** What a line of an archive states: its kind, the uid of a record, and the fields above. */
export function statementOf(line: Buffer): string {
  const facts = parseLine(line);
  if (!facts) return 'no line of an archive';
  let content: unknown;
  try {
    content = JSON.parse((facts.kind === 'record' ? parseRecordLine(line).record : line).toString());
  } catch (thrown) {
    // A record may have any bytes: they are hashed, and not understood.
    if (!(thrown instanceof SyntaxError)) throw thrown;
  }
  const members = new Map<string, unknown>(Object.entries(content ?? {}));
  const values = statedFields[facts.kind].map((name) => members.get(name));
  const texts = values.map((value) =>
    typeof value === 'string' || (Number.isSafeInteger(value) && Number(value) >= 0) ? String(value) : '-',
  );
  const repeated = facts.kind === 'record' && facts.repeated !== undefined ? [' (it has a key twice, and the last one counts)'] : [];
  return [facts.kind, ...(facts.kind === 'record' ? [facts.uid] : []), ...texts].join(', ') + repeated.join('');
}

function stampedText({ count, lines, newest }: NonNullable<VerifyReport['timeStamps']>, all: number): string {
  return `${counted(count, 'time stamp')}: ${grouped(lines)} of ${counted(all, 'line')} existed on ${rfc3339(newest)}`;
}

function cosignedText({ witnesses, lines, newest }: NonNullable<VerifyReport['cosignatures']>, all: number): string {
  return `${counted(witnesses, 'witness', 'witnesses')}: ${grouped(lines)} of ${counted(all, 'line')} cosigned, last on ${rfc3339(newest)}`;
}

/** Anyone with the key and the storage can restore an older state of the archive: only a checkpoint from elsewhere shows it. */
function newest({ confirmed, lines }: VerifyReport, isCompared: boolean): string {
  if (!isCompared) return 'no checkpoint from elsewhere was compared (--since FILE): the removal of the newest lines would not be noticed';
  if (confirmed === 0) return 'the checkpoint from elsewhere confirms nothing';
  return `the checkpoint from elsewhere confirms ${grouped(confirmed)} of ${counted(lines, 'line')}`;
}
