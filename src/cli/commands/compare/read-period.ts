/** Reads a period of a source window by window, with a counting proof for each. Stores nothing. */
import { systemClock, systemRandom } from '../../../time/clock.ts';
import { Handoff } from '../../../collect/handoff.ts';
import { readWindow, type Reading } from '../../../collect/read-window.ts';
import { SourcePaging } from '../../../collect/page-size.ts';
import { Requester } from '../../../collect/requester.ts';
import { lowerHalf, nextWidth, owns, queryOf, widestMicros, wholeSecond } from '../../../collect/windows.ts';
import type { Config, SourceConfig } from '../../../config/load.ts';
import { openSource } from '../../../daemon/open-source.ts';
import { WaybillError, messageOf } from '../../../errors/errors.ts';
import { printable } from '../../../errors/escape.ts';
import type { Appended, CollectedPage } from '../../../model/journal.ts';
import type { Verdict, Window } from '../../../model/ledger.ts';
import { logEvents } from '../../../model/log-events.ts';
import type { Log } from '../../../model/telemetry.ts';
import type { Micros } from '../../../model/time.ts';
import { fieldNumbers } from '../../../record/fields.ts';
import { identify } from '../../../record/identity.ts';
import { readRecord } from '../../../record/read.ts';
import { counted, grouped, rfc3339 } from '../../../report/format-time.ts';
import { calibrate } from '../../../collect/calibrate.ts';
import { ServerClock } from '../../../source/server-clock.ts';
import type { Io } from '../../io.ts';
import { Progress } from '../../progress.ts';
import type { Tally } from './tally.ts';

interface Unproven extends Window {
  readonly reason: string;
  readonly message: string;
}

/** The period as the service returned it. */
export interface Period {
  readonly records: number;
  /** Records without a logId cannot be compared. */
  readonly withoutId: number;
  readonly windows: number;
  readonly unproven: readonly Unproven[];
}

const nothing = (): void => undefined;

/** Window by window, like the daemon: reads each until the count of the service confirms it. Compares what is not proven, too. */
export async function readPeriod(
  settings: SourceConfig,
  config: Config,
  period: Window,
  tally: Tally,
  progress: Progress,
  io: Io,
): Promise<Period> {
  const clock = systemClock;
  const { signal } = io;
  const log = warningsTo(io.stderr);
  await using source = openSource(settings, config, { clock });
  // No retries: a wrong address or a missing permission fails at once.
  const calibration = await calibrate(source, settings.pageSize, signal);
  const serverClock = new ServerClock({ source: settings.id, closeDelay: settings.closeDelay, clock, log });
  const paging = new SourcePaging(clock);
  paging.calibrated(calibration, calibration.pageSize);
  const requester = new Requester({
    paging,
    source,
    sourceId: settings.id,
    uidOf: identify(settings.id),
    serverClock,
    clock,
    random: systemRandom,
    log,
  });
  const own = new Map<string, { id: string | undefined; time: Micros }>();
  const reading: Reading = {
    requester,
    paging,
    pages: { store: ({ records }, place) => Promise.resolve(remember(records, place?.window, own)), contradicts: () => undefined },
    // Nothing is stored, so a less complete copy of a record does no harm.
    visibility: {
      isSuspended: false,
      isPlain: () => true,
      admits: () => Promise.resolve(true),
      candidates: nothing,
      proven: () => Promise.resolve(),
    },
    caps: { largest: calibration.total ?? 0 },
    clock,
    log,
    pauseMs: 2_000,
    handoff: new Handoff(),
  };
  const unproven: Unproven[] = [];
  let records = 0;
  let withoutId = 0;
  let windows = 0;
  let width = widestMicros(period.from, period.to, settings.closeDelay * 1000);
  for (let from = period.from; from < period.to;) {
    let window: Window = { from, to: Math.min(period.to, from + Math.max(1_000_000, wholeSecond(width))) };
    const verdict = await readWhole(reading, own, window, (half) => (window = half), signal);
    if (!verdict.proven) unproven.push({ ...window, reason: verdict.reason, message: verdict.message });
    for (const { id, time } of own.values()) {
      records += 1;
      if (id === undefined) withoutId += 1;
      else tally.addHere(id, time);
    }
    windows += 1;
    width = nextWidth(window.to - window.from, verdict.proven ? verdict.proof.total : verdict.seen);
    from = window.to;
    const share = (from - period.from) / (period.to - period.from);
    progress.show(share, (seconds) => readText(share, from, records, seconds));
  }
  progress.end();
  return { records, withoutId, windows, unproven };
}

/** Reads a window, or the largest lower part of it that can be proven at once. */
async function readWhole(
  reading: Reading,
  own: Map<string, unknown>,
  whole: Window,
  halved: (half: Window) => void,
  signal: AbortSignal,
): Promise<Verdict> {
  for (let window = whole; ;) {
    own.clear();
    const half = lowerHalf(window);
    const outcome = await readWindow(reading, window, queryOf(window), half === undefined ? 'none' : 'any', signal);
    if (!('kind' in outcome)) return outcome;
    if (outcome.kind === 'suspended') throw new WaybillError('internal_error', `compare suspends no source: window at ${window.from}`);
    if (!half) throw new WaybillError('internal_error', `cannot split the window of one second at ${window.from}`);
    window = half;
    halved(half);
  }
}

/** The records in the window being read, by identity: a second pass returns them again. */
function remember(
  records: CollectedPage['records'],
  window: Window | undefined,
  own: Map<string, { id: string | undefined; time: Micros }>,
): Appended {
  const fresh = records.filter(({ uid, time }) => time !== undefined && window !== undefined && owns(window, time) && !own.has(uid));
  for (const { uid, bytes, time } of fresh) {
    own.set(uid, { id: readRecord(bytes).text(fieldNumbers.logId), time: time ?? 0 });
  }
  return { received: records.length, appended: fresh.length, known: 0, outside: records.length - fresh.length, late: 0, fresh };
}

function readText(share: number, closedUntil: Micros, records: number, seconds: number): string {
  const rate = grouped(Math.round(records / seconds));
  return `read up to ${rfc3339(closedUntil)}: ${Math.floor(share * 100)} %, ${counted(records, 'record')}, ${rate}/s`;
}

function warningsTo(stream: NodeJS.WritableStream): Log {
  return {
    write: (event, ...[fields]) => {
      const { level, message } = logEvents[event];
      if (level !== 'warn' && level !== 'error') return;
      const thrown = fields && 'error' in fields ? fields.error : undefined;
      stream.write(`${message}${thrown === undefined ? '' : `: ${printable(messageOf(thrown))}`}\n`);
    },
  };
}
