/** `waybill dead-letters`: what a sink refused for good, and what a person can do about it: have it sent again, or give up its copy. */
import { parseArgs } from 'node:util';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/load.ts';
import type { StateSettings } from '../../config/state-settings.ts';
import { maxDeadLetters } from '../../daemon/operations/requests.ts';
import { WaybillError } from '../../errors.ts';
import { isDeadLetter, deadLettersOf, recordOfDeadLetter } from '../../journal/dead-letters.ts';
import type { DeadLetterRow } from '../../journal/dead-letters.ts';
import { openReadOnly } from '../../journal/state.ts';
import { jsonText } from '../../report/chunks.ts';
import { printable } from '../../escape.ts';
import { table } from '../../report/text-table.ts';
import { counted, rfc3339 } from '../../report/format-time.ts';
import { operation, actor, operationOptions, operationUsage, agreed } from '../operation.ts';
import type { OperationValues } from '../operation.ts';
import type { Io } from '../io.ts';
import { listOnly, settingsFor, stateOptions, stateUsage } from '../state-access.ts';

export const summary = 'lists what sinks refused for good; shows it, sends it again, or discards it';

export const usage = `waybill dead-letters list [--sink ID] [--json]
waybill dead-letters show SEQ…|--all [--sink ID] [--json]
waybill dead-letters retry SEQ…|--all [--sink ID]
waybill dead-letters discard SEQ…|--all [--sink ID]

A dead letter is a record that one sink refused for good, kept with the sink's words; other sinks are not concerned. list shows which there are, and
nothing of the records. show prints the records as they are, one a line, and what the sink said of each on standard error. retry has each sent once
more; what is taken is gone from the list, what is refused again stays (exit code 1). discard deletes the copy of the record for good and keeps the rest.

  SEQ                 its entry in the journal, as list shows it
  --all               every one that is kept
  --sink ID           the sink; may be left out where only one has any
${operationUsage}
${stateUsage}

Examples:
  waybill dead-letters list
  waybill dead-letters retry --all --sink siem --reason 'mapping fixed, ticket 4711' --yes
`;

type Directory = Pick<StateSettings, 'dataDir'>;

type Values = OperationValues & { readonly sink?: string | undefined; readonly all: boolean; readonly json: boolean };

export async function run(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { ...operationOptions, ...stateOptions, sink: { type: 'string' }, all: { type: 'boolean', default: false } },
  });
  const [what = 'list', ...seqs] = positionals;
  if (what !== 'list' && what !== 'show' && what !== 'retry' && what !== 'discard')
    throw new WaybillError(
      'usage',
      `cannot do "dead-letters ${positionals.join(' ')}": there are dead-letters list, show, retry and discard`,
    );
  const { settings } = await settingsFor(values, io);
  const deadLetters = read(settings);
  if (values.sink !== undefined && !deadLetters.some(({ sink }) => sink === values.sink)) known(settings, values.sink);
  if (what === 'list') {
    if (seqs.length > 0 || values.all) throw new WaybillError('usage', 'cannot name entries with "dead-letters list": it lists all');
    list(
      deadLetters.filter(({ sink }) => values.sink === undefined || sink === values.sink),
      values.json,
      io,
    );
    return 0;
  }
  const chosen = chosenOf(what, deadLetters, seqs, values);
  if (what === 'show') return show(settings, chosen, values.json, io);
  listOnly('--data-dir', values['data-dir']);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  return what === 'retry' ? retry(config, chosen, values, io) : discard(config, chosen, values, io);
}

function list(deadLetters: readonly DeadLetterRow[], json: boolean, io: Io): void {
  if (json) {
    io.stdout.write(jsonText({ deadLetters: deadLetters.map((deadLetter) => facts(deadLetter)) }));
    return;
  }
  if (deadLetters.length === 0) {
    io.stdout.write('no dead letter\n');
    return;
  }
  const columns = ['sink', 'entry', 'source', 'record of', 'refused', 'code', 'tries', 'state'].map((head, i) => ({
    head,
    align: i === 1 || i === 6 ? ('right' as const) : ('left' as const),
  }));
  const rows = deadLetters.map(({ sink, seq, source, time, at, code, attempts, state }) => [
    ...[sink, String(seq), source, time === undefined ? '-' : rfc3339(time), rfc3339(at), codeText(code), String(attempts), state],
  ]);
  io.stdout.write(`${table(columns, rows).join('\n')}\n`);
}

/** Splunk's own text of the numbers with which it refuses data; Elasticsearch and Kafka name their reasons themselves. None quotes a record. */
const refusals: ReadonlyMap<string, string> = new Map([
  ['6', 'Invalid data format'],
  ['12', 'Event field is required'],
  ['13', 'Event field cannot be blank'],
  ['15', 'Error in handling indexed fields'],
]);

export function codeText(code: string): string {
  const text = refusals.get(code);
  return text === undefined ? code : `${code} (${text})`;
}

/** Everything but the record and the sink's words, which may quote it. */
function facts({ sink, seq, source, uid, time, received, at, code, attempts, state }: DeadLetterRow) {
  const times = { time: time === undefined ? null : rfc3339(time), received: rfc3339(received), rejected: rfc3339(at) };
  return { sink, seq, source, uid, ...times, code, attempts, state };
}

function show(config: Directory, deadLetters: readonly DeadLetterRow[], json: boolean, io: Io): number {
  return reading(config, (db) => {
    const shown = deadLetters.map((deadLetter) => ({
      deadLetter,
      record: recordOfDeadLetter(db, deadLetter.sink, deadLetter.seq)?.toString('utf8'),
    }));
    if (json) {
      const deadLetters = shown.map(({ deadLetter, record }) => ({
        ...facts(deadLetter),
        message: deadLetter.message,
        record: record ?? null,
      }));
      io.stdout.write(jsonText({ deadLetters }));
      return 0;
    }
    for (const { deadLetter, record } of shown) {
      const { sink, seq, at, code, message, attempts } = deadLetter;
      io.stderr.write(
        `${sink}, entry ${seq}, refused ${rfc3339(at)} (${counted(attempts, 'try', 'tries')}), ${code}: ${printable(message)}\n`,
      );
      if (record === undefined) io.stderr.write('  its copy was discarded\n');
      else io.stdout.write(`${record}\n`);
    }
    return 0;
  });
}

async function retry(config: Config, deadLetters: readonly DeadLetterRow[], values: Values, io: Io): Promise<number> {
  const [first] = deadLetters;
  if (!first) return 0;
  const plan = [`Sends ${counted(deadLetters.length, 'dead letter')} to the sink ${first.sink} once more`];
  if (!(await agreed(plan, values, io))) return 1;
  const by = actor(values, io);
  const results: { seq: number; delivered: boolean; code?: string; message?: string }[] = [];
  for (let from = 0; from < deadLetters.length; from += maxDeadLetters) {
    const part = deadLetters.slice(from, from + maxDeadLetters);
    // The sink, opened for those before, may have said that it took some of these long ago.
    const left = reading(config, (db) => part.filter(({ sink, seq }) => isDeadLetter(db, sink, seq)));
    const seqs = left.map(({ seq }) => seq);
    const answer =
      seqs.length === 0
        ? undefined
        : await operation(config, { operation: 'dead-letters retry', sink: first.sink, seqs, ...by }, io.signal);
    for (const { seq } of part) {
      const refusal = answer?.result.sent?.rejected.find((each) => each.seq === seq);
      results.push(refusal ? { seq, delivered: false, code: refusal.code, message: refusal.message } : { seq, delivered: true });
      if (!values.json && refusal) io.stderr.write(`entry ${seq} is refused again, ${refusal.code}: ${printable(refusal.message)}\n`);
    }
  }
  const rejected = results.filter(({ delivered }) => !delivered).length;
  if (values.json) io.stdout.write(jsonText({ sink: first.sink, retried: results }));
  else io.stdout.write(`${counted(deadLetters.length - rejected, 'record')} taken${rejected === 0 ? '' : `, ${rejected} refused again`}\n`);
  return rejected === 0 ? 0 : 1;
}

async function discard(config: Config, deadLetters: readonly DeadLetterRow[], values: Values, io: Io): Promise<number> {
  const [first] = deadLetters;
  if (!first) return 0;
  const plan = [
    `Deletes for good the copies of ${counted(deadLetters.length, 'record')} that the sink ${first.sink} refused; what it said of them stays`,
  ];
  if (!(await agreed(plan, values, io))) return 1;
  const seqs = deadLetters.map(({ seq }) => seq);
  for (let from = 0; from < seqs.length; from += maxDeadLetters) {
    const part = seqs.slice(from, from + maxDeadLetters);
    await operation(config, { operation: 'dead-letters discard', sink: first.sink, seqs: part, ...actor(values, io) }, io.signal);
  }
  io.stdout.write(values.json ? jsonText({ sink: first.sink, discarded: seqs }) : 'done\n');
  return 0;
}

/** Those that are meant, of one sink; `show` also gives those that were discarded. */
function chosenOf(
  what: string,
  deadLetters: readonly DeadLetterRow[],
  seqs: readonly string[],
  { sink: given, all }: Values,
): DeadLetterRow[] {
  const able = deadLetters.filter(({ state, sink }) => (what === 'show' || state === 'kept') && (given === undefined || sink === given));
  const sinks = [...new Set(able.map(({ sink }) => sink))];
  if (all && seqs.length > 0) throw new WaybillError('usage', 'cannot take both --all and entries by number');
  if (!all && seqs.length === 0)
    throw new WaybillError('usage', `cannot ${what} nothing: name entries, as "waybill dead-letters list" shows them, or --all`);
  if (sinks.length > 1) throw new WaybillError('usage', `cannot tell whose dead letters: --sink says which of ${sinks.join(', ')}`);
  if (all) {
    if (able.length === 0) throw new WaybillError('usage', `cannot ${what} anything: no dead letter is kept`);
    return able;
  }
  return seqs.map((text) => {
    const found = /^[0-9]{1,15}$/.test(text) ? able.find(({ seq }) => seq === Number(text)) : undefined;
    if (!found) throw new WaybillError('usage', `cannot find a dead letter "${text}" that is kept; "waybill dead-letters list" has them`);
    return found;
  });
}

/** A sink that was never one of the state, and is not configured, is a typing error. */
function known({ sinks }: Pick<StateSettings, 'sinks'>, id: string): void {
  if (!sinks.some((sink) => sink.id === id))
    throw new WaybillError('usage', `cannot find the sink "${id}": there are ${sinks.map((sink) => sink.id).join(', ')}`);
}

function read(config: Directory): DeadLetterRow[] {
  return reading(config, (db) => deadLettersOf(db));
}

function reading<Result>(config: Directory, work: (db: ReturnType<typeof openReadOnly>) => Result): Result {
  const db = openReadOnly(config.dataDir);
  try {
    return work(db);
  } finally {
    db.close();
  }
}
