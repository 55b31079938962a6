/** `waybill replay`: sends again to one sink what the journal still holds, and shows how far it is. */
import { parseArgs } from 'node:util';
import { systemClock } from '../../clock.ts';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/load.ts';
import { joinSpans, parseTime } from '../../settings/period.ts';
import { WaybillError } from '../../errors.ts';
import type { ReplayProgress } from '../../model/journal.ts';
import { counted, grouped, rfc3339, span } from '../../report/format-time.ts';
import { operation, actor, operationOptions, operationUsage, agreed } from '../operation.ts';
import { liveSink } from '../daemon-client.ts';
import type { Io } from '../io.ts';

export const summary = 'sends again to one sink what the journal still holds';

export const usage = `waybill replay --sink ID --from T|POSITION [--to T|POSITION]

Sends to one sink what it was sent before, as far as the journal still holds it (journal.retention), between two of its own batches. Nothing else
changes: what is new is delivered meanwhile, and the sink's position stays. A sink that can be asked gets only what it lacks; elsewhere records come
twice, because that is asked for. Dead letters are left out: they have a command of their own. A replay that is interrupted is not taken up again.

  --sink ID           the sink
  --from T|POSITION   a time, a date, -7d; or the number of the first entry. With a time, records without a readable one are left out
  --to T|POSITION     the time before which it ends, or the number of the last entry; default what the sink was sent
${operationUsage}

Examples:
  waybill replay --sink siem --from -7d
  waybill replay --sink export --from 120000 --to 125000 --reason 'file was lost, ticket 4711' --yes
`;

const lookMs = 1_000;
const sayMs = 30_000;

export async function run(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args: joinSpans(args),
    options: { ...operationOptions, sink: { type: 'string' }, from: { type: 'string' }, to: { type: 'string' } },
  });
  if (values.sink === undefined) throw new WaybillError('usage', 'cannot replay without --sink');
  if (values.from === undefined) throw new WaybillError('usage', 'cannot replay without --from');
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const sink = config.sinks.find(({ id }) => id === values.sink);
  if (!sink) {
    const names = config.sinks.map(({ id }) => id).join(', ');
    throw new WaybillError('usage', `cannot find the sink "${values.sink}": there are ${names}`);
  }
  const now = systemClock.now() * 1000;
  const first = boundOf(values.from, '--from', now, false);
  const last = values.to === undefined ? undefined : boundOf(values.to, '--to', now, true);
  const isEmpty =
    last && (('seq' in first && 'seq' in last && first.seq > last.seq) || ('at' in first && 'at' in last && first.at >= last.at));
  if (isEmpty === true) throw new WaybillError('usage', `cannot replay: --from ${values.from} lies behind --to ${values.to ?? ''}`);
  const range = {
    ...('seq' in first ? { first: first.seq } : { from: rfc3339(first.at) }),
    ...(last && ('seq' in last ? { last: last.seq } : { to: rfc3339(last.at) })),
  };
  const { definition, settings } = sink;
  const plan = [
    `Sends to the sink ${sink.id} again what it was sent, from ${wordsOf(first)} ${last ? `to ${wordsOf(last)}` : 'on'}`,
    definition.resolvable(settings) && definition.keepsPosition?.(settings) !== true
      ? '  it is asked first, and gets what it lacks'
      : '  what it has of that already it has twice then',
  ];
  if (!(await agreed(plan, values, io))) return 1;
  const shown = new Shown(sink.id, io);
  const { result, daemon } = await operation(
    config,
    { operation: 'replay', sink: sink.id, ...range, ...actor(values, io) },
    io.signal,
    (progress) => shown.say(progress),
  );
  const done = daemon && result.replay ? await watch(config, sink.id, result.replay, shown, io) : result.replay;
  shown.end(done);
  if (values.json) io.stdout.write(`${JSON.stringify({ sink: sink.id, ...(done && jsonOf(done)) }, null, 2)}\n`);
  else if (done?.state === 'done')
    io.stdout.write(
      `replay to ${sink.id} is done: ${counted(done.sent, 'record')} sent${done.rejected === 0 ? '' : `, ${grouped(done.rejected)} refused: waybill dead-letters list`}\n`,
    );
  return done === undefined || done.rejected === 0 ? 0 : 1;
}

/** Follows the running daemon until it is done. Ending this ends nothing else. */
async function watch(config: Config, id: string, begun: ReplayProgress, shown: Shown, io: Io): Promise<ReplayProgress> {
  let at = begun;
  try {
    while (at.state === 'running') {
      shown.say(at);
      await systemClock.sleep(lookMs, io.signal);
      const replay = (await liveSink(config.dataDir, id))?.replay;
      if (!replay || replay.began !== begun.began)
        throw new WaybillError(
          'aborted',
          'the daemon has stopped meanwhile; a replay is not taken up again: waybill replay begins another',
        );
      at = replay;
    }
  } catch (thrown) {
    if (!io.signal.aborted) throw thrown;
    io.stderr.write('\nthe daemon goes on with it; its log says when it is done\n');
  }
  return at;
}

/** A line that is written again on a terminal, a line now and then otherwise. */
class Shown {
  readonly #id: string;
  readonly #io: Io;
  readonly #isTerminal: boolean;
  #saidAt = -Infinity;

  constructor(id: string, io: Io) {
    this.#id = id;
    this.#io = io;
    this.#isTerminal = 'isTTY' in io.stderr && io.stderr.isTTY === true;
  }

  say(progress: ReplayProgress): void {
    const now = systemClock.monotonic();
    if (!this.#isTerminal && now - this.#saidAt < sayMs) return;
    this.#saidAt = now;
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

/** Digits alone are a position; anything else is a time. */
function boundOf(text: string, option: string, now: number, isEnd: boolean): Bound {
  if (!/^[0-9]{1,15}$/.test(text)) return { at: parseTime(text, option, now, isEnd) };
  if (Number(text) < 1) throw new WaybillError('usage', `cannot use ${option} ${text}: the first entry is 1`);
  return { seq: Number(text) };
}

function wordsOf(bound: Bound): string {
  return 'seq' in bound ? `entry ${grouped(bound.seq)}` : rfc3339(bound.at);
}
