/** The estimate of a backfill, and its progress. */
import { systemClock } from '../../../time/clock.ts';
import type { Config } from '../../../config/load.ts';
import { WaybillError } from '../../../errors/errors.ts';
import { endOf, recordsAimed, secondMicros, widestMicros } from '../../../collect/windows.ts';
import { backfillsOf } from '../../../journal/queries/backfills.ts';
import type { BackfillProgress, Window } from '../../../model/ledger.ts';
import type { Micros } from '../../../model/time.ts';
import { backfillText, secondsLeft, share } from '../../../report/backfills.ts';
import { counted, grouped, span } from '../../../report/format-time.ts';
import { isRunning } from '../../daemon-client.ts';
import type { Io } from '../../io.ts';
import { Progress } from '../../progress.ts';
import { readState } from '../../state-access.ts';

/** `seconds` at the permitted rate of requests. */
export interface Estimate {
  readonly records: number;
  readonly windows: number;
  readonly requests: number;
  readonly seconds: number;
  /** In the journal. */
  readonly bytes: number;
}

/** The throughput of a daemon without other limits (measured: docs/guarantees.md). */
const recordsASecond = 20_000;
/** The assumed size of a record while the journal has too few records to measure it. */
const bytesUnmeasured = 250;

/** @param perSecond  permitted requests. @param settled  windows up to this time may be closed now, µs; windows near it are narrower */
export function estimate(
  records: number,
  parts: readonly Window[],
  { pageSize, perSecond, bytes }: { readonly pageSize: number; readonly perSecond: number; readonly bytes: number | undefined },
  { settled, closeDelay }: { readonly settled: Micros; readonly closeDelay: Micros },
): Estimate {
  const span = parts.reduce((sum, part) => sum + part.to - part.from, 0);
  // Assumes evenly spread records; bursts make more windows.
  const crowded = records === 0 ? Infinity : Math.max(secondMicros, (span * recordsAimed) / records);
  let windows = 0;
  for (const { from, to } of parts)
    for (let at = from; at < to; windows += 1) at = endOf(at, Math.min(crowded, widestMicros(at, Math.max(at, settled), closeDelay)));
  // Each window needs one count, its full pages and a partial last page.
  const requests = windows * 2 + Math.floor(records / pageSize);
  return {
    records,
    windows,
    requests,
    seconds: Math.ceil(Math.max(requests / perSecond, records / recordsASecond)),
    bytes: Math.round(records * (bytes ?? bytesUnmeasured)),
  };
}

export function estimateText({ records, windows, requests, seconds, bytes }: Estimate): string {
  const size = bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${Math.max(1, Math.round(bytes / 2 ** 20))} MiB`;
  return `about ${counted(records, 'record')}, ${counted(windows, 'window')}, ${counted(requests, 'request')}, ${span(seconds)} (${(seconds / 3_600).toFixed(2)} hours) at least, ${size} in the journal`;
}

const pollMs = 1_000;
const barWidth = 24;

/** Shows the progress until all periods are done; ending this display does not end the backfill. @returns the exit code */
export async function watch(config: Config, source: string, ranges: readonly Window[], io: Io): Promise<number> {
  const progress = new Progress(io.stderr);
  const speed = new Speed();
  try {
    for (;;) {
      const found = await progressOf(config, source, ranges);
      const whole = sumOf(found, speed.of(found, systemClock.monotonic()));
      if (found.every(({ state }) => state === 'done')) {
        progress.end();
        const gaps = whole.gaps === 0 ? '' : `; ${counted(whole.gaps, 'window')} could not be proven yet: waybill gaps list`;
        io.stderr.write(
          `backfill of ${source} finished: ${grouped(whole.records)} records in ${counted(whole.windows, 'window')}${gaps}\n`,
        );
        return 0;
      }
      progress.showLine(`${progress.isTerminal ? bar(share(whole)) : `backfill of ${source}:`} ${backfillText(whole)}`);
      if (!(await isRunning(config.dataDir)))
        throw new WaybillError('state_missing', 'the daemon stopped; the backfill resumes when the daemon runs again');
      await systemClock.sleep(pollMs, io.signal);
    }
  } catch (thrown) {
    if (progress.isTerminal) io.stderr.write('\n');
    if (!io.signal.aborted) throw thrown;
    io.stderr.write('the daemon continues; see waybill backfill list\n');
    return 0;
  }
}

async function progressOf(config: Config, source: string, ranges: readonly Window[]): Promise<BackfillProgress[]> {
  const all = (await readState(config, (db) => backfillsOf(db, true))).flat().filter((each) => each.source === source);
  // A range that was cancelled before its first window no longer exists.
  return ranges.flatMap(({ from }) => all.find((each) => each.from === from) ?? []);
}

function sumOf(found: readonly BackfillProgress[], perSecond: number | undefined): BackfillProgress {
  const sum = (of: (each: BackfillProgress) => number): number => found.reduce((all, each) => all + of(each), 0);
  const open = found.filter(({ state }) => state !== 'done');
  const [at = found.at(-1)] = open;
  if (!at) throw new WaybillError('usage', 'the backfill was cancelled before its first window');
  const state = open.length === 0 ? 'done' : open.every((each) => each.state === 'paused') ? 'paused' : 'running';
  const expected = found.every(({ order }) => order.expected !== undefined) ? sum(({ order }) => order.expected ?? 0) : undefined;
  const whole = {
    from: Math.min(...found.map(({ from }) => from)),
    to: Math.max(...found.map(({ to }) => to)),
    closedUntil: at.closedUntil,
    state,
    windows: sum(({ windows }) => windows),
    records: sum(({ records }) => records),
    gaps: sum(({ gaps }) => gaps),
    order: { ...at.order, expected },
  } satisfies BackfillProgress;
  return { ...whole, perSecond, secondsLeft: perSecond === undefined ? undefined : secondsLeft(whole, perSecond) };
}

/** Records a second over the last half minute. */
class Speed {
  readonly #marks: { readonly at: number; readonly records: number }[] = [];

  of(found: readonly BackfillProgress[], now: number): number | undefined {
    const records = found.reduce((sum, each) => sum + each.records, 0);
    this.#marks.push({ at: now, records });
    while (this.#marks.length > 2 && now - (this.#marks[0]?.at ?? now) > 30_000) this.#marks.shift();
    const [first] = this.#marks;
    return first && now > first.at ? ((records - first.records) / (now - first.at)) * 1000 : undefined;
  }
}

function bar(done: number): string {
  const full = Math.floor(done * barWidth);
  return `[${'#'.repeat(full)}${'.'.repeat(barWidth - full)}]`;
}
