/** What a backfill will take, and how far it is: a line that is written again on a terminal, a line now and then otherwise. */
import { systemClock } from '../../../clock.ts';
import type { Config } from '../../../config/load.ts';
import { WaybillError } from '../../../errors.ts';
import { endOf, secondMicros, widestMicros } from '../../../collect/windows.ts';
import { backfillsOf } from '../../../journal/backfills.ts';
import { openReadOnly } from '../../../journal/state.ts';
import type { BackfillProgress, Window } from '../../../model/ledger.ts';
import type { Micros } from '../../../model/time.ts';
import { backfillText, secondsLeft, share } from '../../../report/backfills.ts';
import { counted, grouped, span } from '../../../report/format-time.ts';
import { isRunning } from '../../daemon-client.ts';
import type { Io } from '../../io.ts';

/** About what it will take; `seconds` at the rate at which requests may be sent. */
export interface Estimate {
  readonly records: number;
  readonly windows: number;
  readonly requests: number;
  readonly seconds: number;
  /** In the journal. */
  readonly bytes: number;
}

/** Windows are aimed at 2,000 to 5,000 records. */
const recordsAWindow = 3_500;
/** Records a second of a daemon that nothing holds up, at most (docs/guarantees.md has what was measured). */
const recordsASecond = 20_000;
/** Where the journal holds too little to measure. */
const bytesUnmeasured = 250;

/**
 * @param perSecond  requests a second that may be sent for it
 * @param settled  up to where windows may be closed now, µs: they are narrower the less lies between them and that; `settle` in µs
 */
export function estimate(
  records: number,
  parts: readonly Window[],
  { pageSize, perSecond, bytes }: { readonly pageSize: number; readonly perSecond: number; readonly bytes: number | undefined },
  { settled, closeDelay }: { readonly settled: Micros; readonly closeDelay: Micros },
): Estimate {
  const span = parts.reduce((sum, part) => sum + part.to - part.from, 0);
  // As wide as records allow that lie evenly; where they come in bursts there are more.
  const crowded = records === 0 ? Infinity : Math.max(secondMicros, (span * recordsAWindow) / records);
  let windows = 0;
  for (const { from, to } of parts)
    for (let at = from; at < to; windows += 1) at = endOf(at, Math.min(crowded, widestMicros(at, Math.max(at, settled), closeDelay)));
  // A window takes its pages, the last of them not full, and one count.
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

const lookMs = 1_000;
const sayMs = 30_000;
const barWidth = 24;

/** Shows how far these ranges are until all are done. Ending it ends nothing else. @returns the exit code */
export async function watch(config: Config, source: string, ranges: readonly Window[], io: Io): Promise<number> {
  const isTerminal = 'isTTY' in io.stderr && io.stderr.isTTY === true;
  const speed = new Speed();
  let saidAt = -Infinity;
  try {
    for (;;) {
      const found = progressOf(config, source, ranges);
      const now = systemClock.monotonic();
      const whole = sumOf(found, speed.of(found, now));
      const isDone = found.every(({ state }) => state === 'done');
      if (isTerminal) io.stderr.write(`\r\u001b[K${bar(share(whole))} ${backfillText(whole)}`);
      else if (now - saidAt >= sayMs && !isDone) {
        io.stderr.write(`backfill of ${source}: ${backfillText(whole)}\n`);
        saidAt = now;
      }
      if (isDone) {
        if (isTerminal) io.stderr.write('\r\u001b[K');
        const gaps = whole.gaps === 0 ? '' : `; ${counted(whole.gaps, 'window')} could not be proven yet: waybill gaps list`;
        io.stderr.write(`backfill of ${source} is done: ${grouped(whole.records)} records in ${counted(whole.windows, 'window')}${gaps}\n`);
        return 0;
      }
      if (!(await isRunning(config.dataDir)))
        throw new WaybillError('state_missing', 'the daemon does not run any more; the backfill goes on when it does');
      await systemClock.sleep(lookMs, io.signal);
    }
  } catch (thrown) {
    if (isTerminal) io.stderr.write('\n');
    if (!io.signal.aborted) throw thrown;
    io.stderr.write('the daemon goes on with it; "waybill backfill list" and "waybill status" say how far it is\n');
    return 0;
  }
}

function progressOf(config: Config, source: string, ranges: readonly Window[]): BackfillProgress[] {
  const db = openReadOnly(config.dataDir);
  try {
    const all = backfillsOf(db, true).filter((each) => each.source === source);
    // One that was cancelled before anything was read is gone.
    return ranges.flatMap(({ from }) => all.find((each) => each.from === from) ?? []);
  } finally {
    db.close();
  }
}

/** Several ranges as if they were one. */
function sumOf(found: readonly BackfillProgress[], perSecond: number | undefined): BackfillProgress {
  const sum = (of: (each: BackfillProgress) => number): number => found.reduce((all, each) => all + of(each), 0);
  const open = found.filter(({ state }) => state !== 'done');
  const [at = found.at(-1)] = open;
  if (!at) throw new WaybillError('usage', 'the backfill was cancelled before anything of it was read');
  const state = open.length === 0 ? 'done' : open.every((each) => each.state === 'paused') ? 'paused' : 'running';
  const expected = found.every(({ order }) => order.expected !== undefined) ? sum(({ order }) => order.expected ?? 0) : undefined;
  const whole = {
    ...{
      from: Math.min(...found.map(({ from }) => from)),
      to: Math.max(...found.map(({ to }) => to)),
      closedUntil: at.closedUntil,
      state,
    },
    ...{ windows: sum(({ windows }) => windows), records: sum(({ records }) => records), gaps: sum(({ gaps }) => gaps) },
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
