/** `waybill replay`: sends records again to one sink, and shows its progress. */
import { systemClock } from '../../clock.ts';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/load.ts';
import { parseTime } from '../../settings/period.ts';
import { WaybillError } from '../../errors.ts';
import type { ReplayProgress } from '../../model/journal.ts';
import { counted, grouped, rfc3339, span } from '../../report/format-time.ts';
import { defineCommand } from '../command.ts';
import { liveSink } from '../daemon-client.ts';
import type { Io } from '../io.ts';
import { byId } from '../not-found.ts';
import { operation, actor, operationOptions, confirmed } from '../operation.ts';
import type { OperationValues } from '../operation.ts';
import { required, text } from '../option.ts';

const timeOrPosition = 'a time, a date, -7d, or the number of an entry';

export const command = defineCommand({
  name: 'replay',
  summary: 'sends records again to one sink, as far as the journal still has them',
  description: `Sends again to one sink what it received before, as far as the journal still has it (journal.retention). New records are delivered between
its batches, and the position of the sink does not change. A sink that can be queried receives only what it lacks; any other receives
duplicates. Dead letters are not included; see waybill dead-letters. An interrupted replay does not resume.`,
  options: {
    sink: required(text('ID', 'sink')),
    from: required(text('T|POSITION', `${timeOrPosition}; a time leaves out records without a readable one`)),
    to: text('T|POSITION', `${timeOrPosition}; default everything that the sink received`),
    ...operationOptions,
  },
  examples: [
    'waybill replay --sink siem --from -7d',
    "waybill replay --sink export --from 120000 --to 125000 --reason 'file was lost, ticket 4711' --yes",
  ],
  run,
});

const pollMs = 1_000;
const printMs = 30_000;

async function run(
  values: OperationValues & { readonly sink: string; readonly from: string; readonly to: string | undefined },
  io: Io,
): Promise<number> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const sink = byId('sink', config.sinks, values.sink);
  const now = systemClock.now() * 1000;
  const first = boundOf(values.from, '--from', now, false);
  const last = values.to === undefined ? undefined : boundOf(values.to, '--to', now, true);
  const isEmpty =
    last && (('seq' in first && 'seq' in last && first.seq > last.seq) || ('at' in first && 'at' in last && first.at >= last.at));
  if (isEmpty === true) throw new WaybillError('usage', `cannot replay: --from ${values.from} is after --to ${values.to ?? ''}`);
  const range = {
    ...('seq' in first ? { first: first.seq } : { from: rfc3339(first.at) }),
    ...(last && ('seq' in last ? { last: last.seq } : { to: rfc3339(last.at) })),
  };
  const { definition, settings } = sink;
  const plan = [
    `Sends again to the sink ${sink.id}: from ${boundText(first)} ${last ? `to ${boundText(last)}` : 'on'}`,
    definition.resolvable(settings) && definition.keepsPosition?.(settings) !== true
      ? '  sends only what the sink lacks'
      : '  the sink receives duplicates of what it already has',
  ];
  if (!(await confirmed(plan, values, io))) return 1;
  const shown = new Shown(sink.id, io);
  const { result, daemon } = await operation(
    config,
    { operation: 'replay', sink: sink.id, ...range, ...actor(values, io) },
    io.signal,
    (progress) => shown.print(progress),
  );
  const done = daemon && result.replay ? await watch(config, sink.id, result.replay, shown, io) : result.replay;
  shown.end(done);
  if (values.json) io.stdout.write(`${JSON.stringify({ sink: sink.id, ...(done && jsonOf(done)) }, null, 2)}\n`);
  else if (done?.state === 'done')
    io.stdout.write(
      `replay to ${sink.id} finished: ${counted(done.sent, 'record')} sent${done.rejected === 0 ? '' : `, ${grouped(done.rejected)} rejected: waybill dead-letters list`}\n`,
    );
  return done === undefined || done.rejected === 0 ? 0 : 1;
}

/** Shows the progress of the running daemon. To end this does not end the replay. */
async function watch(config: Config, id: string, begun: ReplayProgress, shown: Shown, io: Io): Promise<ReplayProgress> {
  let at = begun;
  try {
    while (at.state === 'running') {
      shown.print(at);
      await systemClock.sleep(pollMs, io.signal);
      const replay = (await liveSink(config.dataDir, id))?.replay;
      if (!replay || replay.began !== begun.began)
        throw new WaybillError('aborted', 'the daemon stopped, and a replay does not resume; start another with waybill replay');
      at = replay;
    }
  } catch (thrown) {
    if (!io.signal.aborted) throw thrown;
    io.stderr.write('\nthe daemon continues the replay, and logs its end\n');
  }
  return at;
}

/** Progress: one line that is rewritten on a terminal, else a line every half minute. */
class Shown {
  readonly #id: string;
  readonly #io: Io;
  readonly #isTerminal: boolean;
  #printedAt = -Infinity;

  constructor(id: string, io: Io) {
    this.#id = id;
    this.#io = io;
    this.#isTerminal = 'isTTY' in io.stderr && io.stderr.isTTY === true;
  }

  print(progress: ReplayProgress): void {
    const now = systemClock.monotonic();
    if (!this.#isTerminal && now - this.#printedAt < printMs) return;
    this.#printedAt = now;
    const line = `replay to ${this.#id}: ${progressText(progress, systemClock.now())}`;
    this.#io.stderr.write(this.#isTerminal ? `\r\u001b[K${line}` : `${line}\n`);
  }

  end(progress: ReplayProgress | undefined): void {
    if (this.#isTerminal && progress) this.#io.stderr.write('\r\u001b[K');
  }
}

function progressText({ passed, expected, sent, began }: ReplayProgress, now: number): string {
  const seconds = (now - began) / 1000;
  const perSecond = seconds > 0 ? passed / seconds : 0;
  const left = perSecond === 0 ? '' : `, ${span(Math.max(0, expected - passed) / perSecond)} left`;
  return `${Math.min(100, Math.floor((100 * passed) / Math.max(1, expected)))} %, ${grouped(sent)} records sent${left}`;
}

function jsonOf({ state, first, last, times, passed, expected, sent, rejected: refused }: ReplayProgress) {
  const span = times && { from: rfc3339(times.from), to: times.to === Number.MAX_SAFE_INTEGER ? null : rfc3339(times.to) };
  return { state, first, last, times: span ?? null, entries: passed, expected, sent, refused };
}

type Bound = { readonly seq: number } | { readonly at: number };

/** Digits are a position; anything else is a time. */
function boundOf(given: string, option: string, now: number, isEnd: boolean): Bound {
  if (!/^[0-9]{1,15}$/.test(given)) return { at: parseTime(given, option, now, isEnd) };
  if (Number(given) < 1) throw new WaybillError('usage', `cannot use ${option} ${given}: the first entry is 1`);
  return { seq: Number(given) };
}

function boundText(bound: Bound): string {
  return 'seq' in bound ? `entry ${grouped(bound.seq)}` : rfc3339(bound.at);
}
