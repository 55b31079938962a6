/**
 * The thread of the admin server: reads requests, checks tokens and writes answers, so that no flood of them takes a turn of the thread that collects and
 * delivers. It asks that thread for a snapshot or metrics once a second at most, whoever asks here how often. Started by admin.ts.
 */
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../clock.ts';
import { WaybillError } from '../../errors.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { Log } from '../../model/telemetry.ts';
import { withCoverage } from '../../journal/queries/snapshot.ts';
import { openReadOnly } from '../../journal/state.ts';
import { startAdmin } from '../../admin/server.ts';
import type { Admin } from '../../admin/server.ts';
import type { AdminSources } from '../../admin/routes.ts';
import { carried, pulse, revived } from './messages.ts';
import type { AdminThreadData, FromThread, Listen, Question, TokenName, ToThread } from './messages.ts';
import { adminReports } from './reports.ts';
import { Reports } from './report-maker.ts';

const freshMs = 1_000;
const answerMs = 5_000;
/** Seconds without a sign of the daemon's thread after which it counts as stuck: longer than a slow disk takes for a commit. */
const stallSeconds = 10;
const operationsASecond = 50;
const logMs = 1_000;

const data = workerData as AdminThreadData;
const clock = systemClock;
const open: Admin[] = [];
const ended = new AbortController();

/**
 * Where both threads want the CPU, collecting comes first: about three times as much. With less of it on a busy machine (10 is a tenth) this thread
 * accepts connections more slowly than a flood opens them, and a probe waits for seconds.
 */
const niceness = 5;
// Only Linux has a priority for each thread; elsewhere this would be that of the process.
if (process.platform === 'linux') setPriority(niceness);

function send(message: FromThread): void {
  parentPort?.postMessage(message);
}

const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (thrown: unknown) => void }>();
let asked = 0;

/** Asks the daemon's thread. @throws WaybillError `admin_busy` when it does not answer in time */
async function ask(question: Question, ms = answerMs): Promise<unknown> {
  const id = (asked += 1);
  const answer = new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  send({ kind: 'question', id, question });
  const answered = new AbortController();
  const late = clock.sleep(ms, answered.signal).then(() => {
    throw new WaybillError('admin_busy', `the daemon does not answer within ${ms / 1000} s`);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    waiting.delete(id);
    answered.abort();
    late.catch(() => undefined);
  }
}

/** One question for all who want its answer within a second. */
function cached<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let kept: { readonly at: number; readonly value: Promise<Value> } | undefined;
  return () => {
    if (!kept || clock.monotonic() - kept.at >= freshMs) {
      const value = make();
      const mine = (kept = { at: clock.monotonic(), value });
      value.catch(() => {
        if (kept === mine) kept = undefined;
      });
    }
    return kept.value;
  };
}

const snapshot = (): Promise<Snapshot | undefined> => ask({ what: 'snapshot' }) as Promise<Snapshot | undefined>;
/** Read here and not by the daemon's thread: the cost grows with the ledger. */
async function status(read = snapshot): Promise<Snapshot | undefined> {
  const known = await read();
  if (!known) return undefined;
  const db = openReadOnly(data.state);
  try {
    return withCoverage(db, known, data.settings);
  } finally {
    db.close();
  }
}
const metrics = (): Promise<string> => ask({ what: 'metrics' }) as Promise<string>;
const token = (what: TokenName) => ({ read: cached(() => ask({ what }) as Promise<string>) });
/** An operation takes as long as the sink takes to which it sends. */
const operate = (request: unknown): Promise<unknown> => ask({ what: 'operate', request }, Infinity);

let missed = 0;
async function watch(): Promise<void> {
  for (let last = -1; ;) {
    const beat = Atomics.load(data.pulse, pulse.beat);
    // Counted in turns of this thread and not in time: a machine that was asleep has missed nothing.
    missed = beat === last ? missed + 1 : 0;
    last = beat;
    await clock.sleep(1_000, ended.signal);
  }
}

/** The log is the daemon's: of failures one a second, since each line costs its thread a turn. */
function log(): Log {
  let last = -Infinity;
  return {
    write: (event, fields) => {
      if (clock.monotonic() - last < logMs) return;
      last = clock.monotonic();
      const { error, ...others } = (fields ?? {}) as { error?: unknown };
      send({ kind: 'log', event, fields: others, error: error === undefined ? undefined : carried(error) });
    },
  };
}

/** Refuses operations beyond so many a second: each is a transaction of the daemon's thread. */
function limited(perform: (request: unknown) => Promise<unknown>): (request: unknown) => Promise<unknown> {
  let second = 0;
  let count = 0;
  return (request) => {
    const now = Math.floor(clock.monotonic() / 1_000);
    if (now !== second) [second, count] = [now, 0];
    count += 1;
    if (count > operationsASecond)
      throw new WaybillError('admin_busy', `more than ${operationsASecond} operations a second are not performed`);
    return perform(request);
  };
}

const reports = new Reports(clock);
const sources = {
  health: () => (Atomics.load(data.pulse, pulse.isOpen) === 1 ? 'ok' : 'waiting for the owner of the state'),
  stalled: () => (missed >= stallSeconds ? `the daemon has not responded for ${missed} s` : undefined),
  log: log(),
  clock,
} satisfies Partial<AdminSources>;

/** What is made of a snapshot, given how one is had. */
function reading(read: typeof snapshot) {
  return { ...adminReports(reports, { ...data, snapshot: read, clock }), snapshot: read };
}

async function listen(requested: Listen): Promise<void> {
  try {
    const recent = cached(snapshot);
    const admin =
      requested.place === 'network'
        ? await startAdmin(
            { listen: requested.listen, tls: requested.tls, ...Object.fromEntries(requested.tokens.map((name) => [name, token(name)])) },
            {
              ...sources,
              ...reading(recent),
              status: cached(() => status(recent)),
              metricsText: cached(metrics),
              operate: limited(operate),
            },
          )
        : // For its owner, who sees at once what he changed.
          await startAdmin(
            { listen: [] },
            { ...sources, ...reading(snapshot), status, metricsText: metrics, operate, socketPath: requested.path },
          );
    open.push(admin);
    send({ kind: 'listens', addresses: admin.addresses });
  } catch (thrown) {
    send({ kind: 'refused', thrown: carried(thrown) });
  }
}

async function close(): Promise<void> {
  ended.abort();
  for (const admin of open) await admin[Symbol.asyncDispose]();
  parentPort?.close();
}

parentPort?.on('message', (message: ToThread) => {
  switch (message.kind) {
    case 'listen':
      void listen(message.listen);
      break;
    case 'answer':
      waiting.get(message.id)?.resolve(message.value);
      break;
    case 'failed':
      waiting.get(message.id)?.reject(revived(message.thrown));
      break;
    case 'close':
      void close();
  }
});
watch().catch(() => undefined);
