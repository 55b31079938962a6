/** `waybill replay`: sends records again to one sink, and shows its progress. */
import { systemClock } from '../../time/clock.ts';
import { loadConfig, type Config } from '../../config/load.ts';
import { sinksOf } from '../../journal/queries/sinks.ts';
import { parseTime } from '../../settings/period.ts';
import { WaybillError } from '../../errors/errors.ts';
import type { ReplayProgress } from '../../model/journal.ts';
import { counted, grouped, rfc3339, span } from '../../report/format-time.ts';
import { defineCommand, subcommand } from '../command.ts';
import { liveSink } from '../daemon-client.ts';
import { printJson, type Io } from '../io.ts';
import { byId } from '../not-found.ts';
import { operation, actor, operationOptions, confirmed, sameReplay } from '../operation.ts';
import { required, text, type ValuesOf } from '../option.ts';
import { Progress } from '../progress.ts';
import { readState } from '../state-access.ts';
import type { OperationRequest } from '../../daemon/operations/requests.ts';

const timeOrPosition = 'a time, a date, -7d, or the number of an entry';

const options = {
  sink: required(text('ID', 'sink')),
  archive: text('ID', 'send the records of this archive sink instead of records of the journal'),
  from: text(
    'T|POSITION',
    `${timeOrPosition}; with a time, records without a readable time are left out; with --archive, a number is a line of the archive; required without --archive`,
  ),
  to: text('T|POSITION', `${timeOrPosition}; default everything that the sink received`),
  ...operationOptions,
};

const cancelOptions = { sink: options.sink, ...operationOptions };

export const command = defineCommand({
  name: 'replay',
  summary: 'sends records again to one sink, as far as the journal still has them',
  description: `Sends again to one sink what it received before, as far as the journal still has it (journal.retention). New records are delivered between
its batches, and the position of the sink does not change. A sink that can be queried receives only what it lacks; any other receives
duplicates. Dead letters are not included; see waybill dead-letters. The daemon continues an interrupted replay, also after a restart.

With --archive, the records come from an archive, which is independent of journal.retention. It has only what its filter, sources and privacy
rules kept. Ledger entries are not sent. Waybill verifies the records before it sends them. The replay stops at the first line that is missing
or altered, and names it; --from LINE goes on behind it, without the records of the lines left out. Waybill logs a record that the sink
rejects, and stores no dead letter.`,
  options,
  subcommands: {
    cancel: subcommand({ summary: 'cancels the replay to a sink; a restart does not resume it', options: cancelOptions, run: cancel }),
  },
  examples: [
    'waybill replay --sink siem --from -7d',
    'waybill replay --sink siem --archive evidence --from 2026-01-01',
    "waybill replay --sink siem --archive evidence --from 1201 --reason 'the lines 601 to 1,200 are lost, ticket 4711'",
    "waybill replay --sink export --from 120000 --to 125000 --reason 'file was lost, ticket 4711' --yes",
  ],
  run,
});

const pollMs = 1_000;

type Values = ValuesOf<typeof options>;

async function run(values: Values, io: Io): Promise<number> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const sink = byId('sink', config.sinks, values.sink);
  const { archive } = values;
  if (archive !== undefined) byId('sink', config.sinks, archive);
  const { range, text: span } = rangeOf(values);
  const { definition, settings } = sink;
  const plan = [
    `Sends again to the sink ${sink.id}: ${archive === undefined ? '' : `the records of the archive ${archive}, `}${span}`,
    definition.resolvable(settings) && definition.keepsPosition?.(settings) !== true
      ? '  sends only what the sink lacks'
      : '  the sink receives duplicates of what it already has',
  ];
  if (!(await confirmed(plan, values, io))) return 1;
  const progress = new Progress(io.stderr);
  const { result, daemon } = await operation(
    config,
    { operation: 'replay', sink: sink.id, ...(archive !== undefined && { archive }), ...range, ...actor(values, io) },
    io.signal,
    { progress: (replay) => progress.showLine(progressText(sink.id, replay)) },
  );
  if (config.fleet) {
    if (values.json) printJson(io, { sink: sink.id, began: true });
    else io.stdout.write(`the owners of the shards send again to ${sink.id}; see waybill status\n`);
    return 0;
  }
  const done = daemon && result.replay ? await watch(config, sink.id, result.replay, progress, io) : result.replay;
  if (done) progress.end();
  // Without a daemon, nothing waits for an archive that has no checkpoint yet.
  if (done && (done.state === 'failed' || (done.state === 'running' && !daemon)))
    throw new WaybillError(
      'archive_broken',
      `cannot replay the archive "${archive ?? ''}" to the sink "${sink.id}": ${done.error ?? 'it has no checkpoint yet'}; ${daemon ? 'the daemon tries again' : 'run the command again to continue'}`,
    );
  if (done?.state === 'cancelled')
    throw new WaybillError('aborted', `the replay to the sink "${sink.id}" was cancelled after ${counted(done.sent, 'record')}`);
  if (values.json) printJson(io, { sink: sink.id, ...(done && jsonOf(done)) });
  else if (done?.state === 'done')
    io.stdout.write(`replay to ${sink.id} finished: ${counted(done.sent, 'record')} sent${rejectedText(done)}${leftOutText(done)}\n`);
  return done === undefined || done.rejected === 0 ? 0 : 1;
}

async function cancel(values: ValuesOf<typeof cancelOptions>, io: Io): Promise<number> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const { id } = byId('sink', (await readState(config, sinksOf)).flat(), values.sink);
  const plan = [`Ends the replay to the sink ${id}; what was sent stays there`];
  if (!(await confirmed(plan, values, io))) return 1;
  await operation(config, { operation: 'replay cancel', sink: id, ...actor(values, io) }, io.signal);
  io.stdout.write(values.json ? `${JSON.stringify({ cancelled: id })}\n` : 'done\n');
  return 0;
}

function rejectedText({ rejected, archive }: ReplayProgress): string {
  if (rejected === 0) return '';
  return `, ${grouped(rejected)} rejected: ${archive === undefined ? 'waybill dead-letters list' : 'the log of the daemon names them'}`;
}

function leftOutText({ leftOut = 0 }: ReplayProgress): string {
  return leftOut === 0 ? '' : `; not the records on ${counted(leftOut, 'line')} that --from left out`;
}

type Range = Pick<Extract<OperationRequest, { operation: 'replay' }>, 'first' | 'last' | 'from' | 'to'>;

/** @throws WaybillError `usage` */
function rangeOf({ from, to, archive }: Values): { readonly range: Range; readonly text: string } {
  const now = systemClock.now() * 1000;
  if (from === undefined && archive === undefined) throw new WaybillError('usage', 'cannot replay: pass --from, or --archive');
  const first = from === undefined ? undefined : boundOf(from, '--from', now, false);
  const last = to === undefined ? undefined : boundOf(to, '--to', now, true);
  const isEmpty =
    first && last && (('seq' in first && 'seq' in last && first.seq > last.seq) || ('at' in first && 'at' in last && first.at >= last.at));
  if (isEmpty === true) throw new WaybillError('usage', `cannot replay: --from ${from ?? ''} is after --to ${to ?? ''}`);
  const range = {
    ...(first && ('seq' in first ? { first: first.seq } : { from: rfc3339(first.at) })),
    ...(last && ('seq' in last ? { last: last.seq } : { to: rfc3339(last.at) })),
  };
  return { range, text: `from ${first ? boundText(first, archive) : 'the beginning'} ${last ? `to ${boundText(last, archive)}` : 'on'}` };
}

/** Shows the progress of the running daemon. Ending this display does not end the replay. */
async function watch(config: Config, id: string, begun: ReplayProgress, progress: Progress, io: Io): Promise<ReplayProgress> {
  let at = begun;
  try {
    // A sink that restarts continues a replay that was stopped.
    while (at.state === 'running' || at.state === 'stopped') {
      progress.showLine(progressText(id, at));
      await systemClock.sleep(pollMs, io.signal);
      const sink = await liveSink(config.dataDir, id);
      const own = sameReplay(sink?.replays, begun);
      if (!own) throw new WaybillError('aborted', interruption(sink !== undefined));
      at = own;
    }
  } catch (thrown) {
    if (!io.signal.aborted) throw thrown;
    io.stderr.write('\nthe daemon continues the replay, and logs its end\n');
  }
  return at;
}

function interruption(isRunning: boolean): string {
  return isRunning
    ? 'the daemon or the sink was restarted; waybill status shows the replay unless it is complete'
    : 'the daemon stopped; its next start continues the replay';
}

function progressText(sink: string, { passed, expected, sent, began }: ReplayProgress): string {
  const seconds = (systemClock.now() - began) / 1000;
  const perSecond = seconds > 0 ? passed / seconds : 0;
  const left = perSecond === 0 ? '' : `, ${span(Math.max(0, expected - passed) / perSecond)} left`;
  return `replay to ${sink}: ${Math.min(100, Math.floor((100 * passed) / Math.max(1, expected)))} %, ${grouped(sent)} records sent${left}`;
}

function jsonOf({ state, archive, leftOut, first, last, times, passed, expected, sent, rejected: refused }: ReplayProgress) {
  const span = times && { from: rfc3339(times.from), to: times.to === Number.MAX_SAFE_INTEGER ? null : rfc3339(times.to) };
  return { state, archive, leftOut, first, last, times: span ?? null, entries: passed, expected, sent, refused };
}

type Bound = { readonly seq: number } | { readonly at: number };

/** Digits are a position; anything else is a time. */
function boundOf(given: string, option: string, now: number, isEnd: boolean): Bound {
  if (!/^[0-9]{1,15}$/.test(given)) return { at: parseTime(given, option, now, isEnd) };
  if (Number(given) < 1) throw new WaybillError('usage', `cannot use ${option} ${given}: the first entry is 1`);
  return { seq: Number(given) };
}

function boundText(bound: Bound, archive: string | undefined): string {
  return 'seq' in bound ? `${archive === undefined ? 'entry' : 'line'} ${grouped(bound.seq)}` : rfc3339(bound.at);
}
