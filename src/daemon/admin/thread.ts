/**
 * The thread of the admin server: reads requests, checks tokens and writes responses, so that a flood of requests does not slow the main
 * thread, which collects and delivers. It requests a snapshot and metrics from that thread at most once a second. Started by server.ts.
 */
import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../time/clock.ts';
import { within } from '../../time/deadline.ts';
import { WaybillError } from '../../errors/errors.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { Log } from '../../model/telemetry.ts';
import { withCoverage } from '../../journal/queries/snapshot.ts';
import { StateReader } from '../../journal/state.ts';
import { startAdmin, type Admin } from '../../admin/server.ts';
import { notReadyReasons } from '../../admin/readiness.ts';
import type { AdminSources } from '../../admin/routes.ts';
import { carried } from '../carried-error.ts';
import { Channel } from '../channel.ts';
import { collectWhenIdle } from '../collect-when-idle.ts';
import { pulse } from './messages.ts';
import type { AdminService, AdminThreadData, DaemonService, Listen, Reported, TokenName } from './messages.ts';
import { adminReports } from './reports.ts';
import { Overviews } from './overview.ts';
import { Reports } from './report-maker.ts';
import type { ReportOrder } from './report-thread.ts';

const freshMs = 1_000;
/** While the daemon is not ready: a probe must not report that for a second longer. */
const unreadyFreshMs = 100;
const answerMs = 5_000;
/** Seconds without progress of the main thread after which it counts as stalled: longer than a commit on a slow disk. */
const stallSeconds = 10;
const maxOperationsPerSecond = 50;
const logMs = 1_000;

const data = workerData as AdminThreadData;
let reported: Reported = data;
const clock = systemClock;
const open: Admin[] = [];
const state = data.state === undefined ? undefined : new StateReader(data.state);
const ended = new AbortController();

/**
 * On a busy machine, the main thread gets about three times as much CPU as this thread. A higher value would starve this thread (10 gives a
 * tenth): a flood would open connections faster than it accepts them, and a probe would wait for seconds.
 */
const niceness = 5;
// Only Linux has a priority for each thread; elsewhere this would change the whole process. A process may not reduce the niceness that it
// was started with (EACCES, setpriority(2)).
if (process.platform === 'linux') setPriority(Math.max(niceness, getPriority()));

if (!parentPort) throw new Error('cannot start: this file runs only as a worker thread of the daemon');
const channel = new Channel(parentPort, (thrown) => {
  throw thrown;
});
const daemon = channel.remote<DaemonService>();

/** @throws WaybillError `admin_busy` when the main thread does not respond in time */
function inTime<Value>(answer: Promise<Value>): Promise<Value> {
  const late = (): WaybillError => new WaybillError('admin_busy', `the daemon did not respond within ${answerMs / 1000} s`);
  return within(() => answer, answerMs, late, clock);
}

/** Calls within a second, or within `freshFor` of the value in ms, share one request. */
function cached<Value>(make: () => Promise<Value>, freshFor: (value: Value) => number = () => freshMs): () => Promise<Value> {
  let kept: { until: number; readonly value: Promise<Value> } | undefined;
  return () => {
    const now = clock.monotonic();
    if (!kept || now >= kept.until) {
      const own = (kept = { until: now + freshMs, value: make() });
      own.value.then(
        (value) => (own.until = now + freshFor(value)),
        () => {
          if (kept === own) kept = undefined;
        },
      );
    }
    return kept.value;
  };
}

const snapshot = (): Promise<Snapshot | undefined> => inTime(daemon.snapshot());
/** Reads the coverage in this thread: its cost grows with the ledger. */
async function status(read = snapshot): Promise<Snapshot | undefined> {
  const known = await read();
  return state && known ? state.read((db) => withCoverage(db, known, reported.settings)) : known;
}
const metrics = (): Promise<string> => inTime(daemon.metricsText());
const token = (name: TokenName) => ({ read: cached(() => inTime(daemon.token(name))) });
/** Without a timeout: an operation may wait for a sink. */
const operate = (request: unknown): Promise<unknown> => daemon.operate(request);

let missed = 0;
async function watch(): Promise<void> {
  for (let last = -1; ;) {
    const beat = Atomics.load(data.pulse, pulse.beat);
    // Counts checks of this thread, not time: a machine that was suspended must not count as stalled.
    missed = beat === last ? missed + 1 : 0;
    last = beat;
    await clock.sleep(1_000, ended.signal);
  }
}

/** Sends lines to the log of the main thread: at most one a second, because each costs time there. */
function log(): Log {
  let last = -Infinity;
  return {
    write: (event, ...[fields]) => {
      if (clock.monotonic() - last < logMs) return;
      last = clock.monotonic();
      const { error, ...others } = (fields ?? {}) as { error?: unknown };
      channel.notified<DaemonService>().log(event, others, error === undefined ? undefined : carried(error));
    },
  };
}

/** Limits operations: each is a transaction in the main thread. */
function limited(perform: (request: unknown) => Promise<unknown>): (request: unknown) => Promise<unknown> {
  let second = 0;
  let count = 0;
  return (request) => {
    const now = Math.floor(clock.monotonic() / 1_000);
    if (now !== second) [second, count] = [now, 0];
    count += 1;
    if (count > maxOperationsPerSecond)
      throw new WaybillError('admin_busy', `request rejected: more than ${maxOperationsPerSecond} operations per second`);
    return perform(request);
  };
}

const reports = new Reports(clock);
const overviews = new Overviews(state, clock);
const sources = {
  health: () => (Atomics.load(data.pulse, pulse.isOpen) === 1 ? 'ok' : 'waiting for the owner of the state'),
  stalled: () => (missed >= stallSeconds ? `the daemon has not responded for ${missed} s` : undefined),
  log: log(),
  clock,
} satisfies Partial<AdminSources>;

async function stateOfReports(): Promise<ReportOrder['state']> {
  return data.state ?? inTime(daemon.database());
}

/** The routes that read a snapshot. */
function reading(read: typeof snapshot) {
  return {
    ...adminReports(reports, { ...data, state: stateOfReports, reported: () => reported, snapshot: read, clock }),
    snapshot: read,
  };
}

async function listen(requested: Listen): Promise<readonly string[]> {
  const isReady = (known: Snapshot | undefined): boolean => known !== undefined && notReadyReasons(known).length === 0;
  const recent = cached(snapshot, (known) => (isReady(known) ? freshMs : unreadyFreshMs));
  const recentStatus = cached(() => status(recent));
  const overview = cached(async () => {
    const known = await recentStatus();
    return known && overviews.make(known);
  });
  const admin =
    requested.place === 'network'
      ? await startAdmin(
          { listen: requested.listen, tls: requested.tls, ...Object.fromEntries(requested.tokens.map((name) => [name, token(name)])) },
          {
            ...sources,
            ...reading(recent),
            status: recentStatus,
            overview,
            metricsText: cached(metrics),
            operate: limited(operate),
          },
        )
      : // No cache: the operator must see the effect of an operation at once.
        await startAdmin(
          { listen: [] },
          { ...sources, ...reading(snapshot), status, metricsText: metrics, operate, socketPath: requested.path },
        );
  open.push(admin);
  return admin.addresses;
}

async function close(): Promise<void> {
  ended.abort();
  for (const admin of open) await admin[Symbol.asyncDispose]();
  state?.[Symbol.dispose]();
  parentPort?.close();
}

channel.serve({ listen, follow: (changed) => void (reported = changed), close } satisfies AdminService);
collectWhenIdle();
watch().catch(() => undefined);
overviews.sample(() => Atomics.load(data.pulse, pulse.isOpen) === 1, sources.log, ended.signal).catch(() => undefined);
