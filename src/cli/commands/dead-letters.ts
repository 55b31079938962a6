/** `waybill dead-letters`: the records that a sink rejected permanently. */
import { loadConfig, type Config } from '../../config/load.ts';
import type { StateSettings } from '../../config/state-settings.ts';
import { maxDeadLetters } from '../../daemon/operations/requests.ts';
import { rejectionCode } from '../../deliver/rejection-code.ts';
import { WaybillError } from '../../errors/errors.ts';
import { isDeadLetter, deadLettersOf, recordOfDeadLetter, type DeadLetterRow } from '../../journal/dead-letters.ts';
import { printable } from '../../errors/escape.ts';
import { right } from '../../report/text-table.ts';
import { counted, rfc3339 } from '../../report/format-time.ts';
import { defineCommand, subcommand } from '../command.ts';
import { printJson, printTable, type Io } from '../io.ts';
import { notFound } from '../not-found.ts';
import { operation, actor, operationOptions, confirmed, type OperationValues } from '../operation.ts';
import { jsonOption, text, toggle, type ValuesOf } from '../option.ts';
import { readState, settingsFor, stateOptions, type StatePlace, type StateValues } from '../state-access.ts';

const sinkOption = { sink: text('ID', 'sink; optional when only one has dead letters') };
const chosenOptions = { ...sinkOption, all: toggle('every stored dead letter') };
const entries = { name: 'SEQ…', help: 'entry in the journal, as list shows it' };

export const command = defineCommand({
  name: 'dead-letters',
  summary: 'lists the records that sinks rejected permanently; shows, resends or discards them',
  description:
    'A dead letter is a copy of a record that one sink rejected permanently, with the error of that sink. It does not affect other sinks.',
  subcommands: {
    list: subcommand({
      summary: 'lists dead letters, without the records',
      options: { ...sinkOption, ...jsonOption, ...stateOptions },
      run: async (values, io) => {
        const { deadLetters } = await stored(values, io);
        list(
          deadLetters.filter(({ sink }) => values.sink === undefined || sink === values.sink),
          values.json,
          io,
        );
        return 0;
      },
    }),
    show: subcommand({
      summary: 'prints the records, one a line, and their errors on standard error',
      options: { ...chosenOptions, ...jsonOption, ...stateOptions },
      positionals: entries,
      run: async (values, io, seqs) => {
        const { settings, deadLetters } = await stored(values, io);
        return show(settings, chosenOf('show', deadLetters, seqs, values), values.json, io);
      },
    }),
    retry: subcommand({
      summary: 'sends dead letters again, and removes those delivered; exits with 1 if the sink rejects one again',
      options: { ...chosenOptions, ...operationOptions },
      positionals: entries,
      run: async (values, io, seqs) => {
        const { config, deadLetters } = await choose('retry', values, io, seqs);
        return retry(config, deadLetters, values, io);
      },
    }),
    discard: subcommand({
      summary: 'deletes the copies of the records permanently; keeps the errors',
      options: { ...chosenOptions, ...operationOptions },
      positionals: entries,
      run: async (values, io, seqs) => {
        const { config, deadLetters } = await choose('discard', values, io, seqs);
        return discard(config, deadLetters, values, io);
      },
    }),
  },
  fallback: 'list',
  examples: ['waybill dead-letters list', "waybill dead-letters retry --all --sink siem --reason 'mapping fixed, ticket 4711' --yes"],
});

/** In a fleet, an entry has the number of its shard: `7:1234`. */
type Listed = DeadLetterRow & { readonly shard?: number };

function entryOf({ shard, seq }: Listed): string {
  return shard === undefined ? String(seq) : `${shard}:${seq}`;
}

type ChosenValues = ValuesOf<typeof chosenOptions>;

/** The dead letters of the state. Refuses a sink that neither the state nor the configuration knows. */
async function stored(
  values: StateValues & { readonly sink: string | undefined },
  io: Io,
): Promise<{ settings: StateSettings; deadLetters: Listed[] }> {
  const { settings } = await settingsFor(values, io);
  const found = await readState(settings, (db, shard) => deadLettersOf(db).map((row) => (shard === undefined ? row : { ...row, shard })));
  const deadLetters: Listed[] = found.flat();
  const known = [...settings.sinks.map(({ id }) => id), ...deadLetters.map(({ sink }) => sink)];
  if (values.sink !== undefined && !known.includes(values.sink)) throw notFound('sink', values.sink, [...new Set(known)]);
  return { settings, deadLetters };
}

async function choose(
  verb: string,
  values: ChosenValues & { readonly config: string | undefined },
  io: Io,
  seqs: readonly string[],
): Promise<{ config: Config; deadLetters: Listed[] }> {
  const { deadLetters } = await stored({ ...values, 'data-dir': undefined }, io);
  const chosen = chosenOf(verb, deadLetters, seqs, values);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  return { config, deadLetters: chosen };
}

function list(deadLetters: readonly Listed[], json: boolean, io: Io): void {
  if (json) printJson(io, { deadLetters: deadLetters.map(facts) });
  else if (deadLetters.length === 0) io.stdout.write('no dead letters\n');
  else {
    const columns = ['SINK', right('ENTRY'), 'SOURCE', 'RECORD TIME', 'REJECTED', 'CODE', right('ATTEMPTS'), 'STATE'];
    const rows = deadLetters.map((each) => [
      ...[each.sink, entryOf(each), each.source, each.time === undefined ? '-' : rfc3339(each.time), rfc3339(each.at)],
      ...[rejectionCode(each.code), String(each.attempts), each.state],
    ]);
    printTable(io, columns, rows);
  }
}

/** Without the record, and without the message of the sink, which may quote it. */
function facts({ sink, seq, source, uid, time, received, at, code, attempts, state, shard }: Listed) {
  const times = { time: time === undefined ? null : rfc3339(time), received: rfc3339(received), rejected: rfc3339(at) };
  return { ...(shard !== undefined && { shard }), sink, seq, source, uid, ...times, code, attempts, state };
}

async function show(place: StatePlace, deadLetters: readonly Listed[], json: boolean, io: Io): Promise<number> {
  const records = new Map<Listed, string>();
  await readState(place, (db, shard) => {
    for (const each of deadLetters.filter((row) => row.shard === shard)) {
      const record = recordOfDeadLetter(db, each.sink, each.seq);
      if (record) records.set(each, record.toString('utf8'));
    }
  });
  if (json) {
    const shown = deadLetters.map((each) => ({ ...facts(each), message: each.message, record: records.get(each) ?? null }));
    printJson(io, { deadLetters: shown });
    return 0;
  }
  for (const deadLetter of deadLetters) {
    const { sink, at, code, message, attempts } = deadLetter;
    const record = records.get(deadLetter);
    const rejected = `${sink}, entry ${entryOf(deadLetter)}, rejected ${rfc3339(at)} (${counted(attempts, 'attempt')}), ${code}`;
    if (record === undefined) io.stderr.write(`${rejected}\n  its copy and the message of the sink were discarded\n`);
    else {
      io.stderr.write(`${rejected}: ${printable(message)}\n`);
      io.stdout.write(`${record}\n`);
    }
  }
  return 0;
}

/** The dead letters that one request may name: of one shard, and not too many. */
function partsOf(all: readonly Listed[]): { readonly shard: number | undefined; readonly part: readonly Listed[] }[] {
  return [...Map.groupBy(all, ({ shard }) => shard)].flatMap(([shard, own]) =>
    Array.from({ length: Math.ceil(own.length / maxDeadLetters) }, (_, i) => ({
      shard,
      part: own.slice(i * maxDeadLetters, (i + 1) * maxDeadLetters),
    })),
  );
}

async function retry(config: Config, deadLetters: readonly Listed[], values: OperationValues, io: Io): Promise<number> {
  const [first] = deadLetters;
  if (!first) return 0;
  const plan = [`Resends ${counted(deadLetters.length, 'dead letter')} to the sink ${first.sink}`];
  if (!(await confirmed(plan, values, io))) return 1;
  const by = actor(values, io);
  const results: { shard?: number; seq: number; delivered: boolean; code?: string; message?: string }[] = [];
  for (const { shard, part } of partsOf(deadLetters)) {
    // The sink may have confirmed some of these during the previous part.
    const left = await readState(config, (db, at) => part.filter(({ sink, seq }) => at === shard && isDeadLetter(db, sink, seq)));
    const seqs = left.flat().map(({ seq }) => seq);
    const answer =
      seqs.length === 0
        ? undefined
        : await operation(config, { operation: 'dead-letters retry', sink: first.sink, seqs, ...by }, io.signal, { shard });
    for (const { seq } of part) {
      const at = { ...(shard !== undefined && { shard }), seq };
      const refusal = answer?.result.sent?.rejected.find((each) => each.seq === seq);
      results.push(refusal ? { ...at, delivered: false, code: refusal.code, message: refusal.message } : { ...at, delivered: true });
      if (!values.json && refusal) io.stderr.write(`entry ${seq} was rejected again, ${refusal.code}: ${printable(refusal.message)}\n`);
    }
  }
  const rejected = results.filter(({ delivered }) => !delivered).length;
  if (values.json) printJson(io, { sink: first.sink, retried: results });
  else
    io.stdout.write(
      `${counted(deadLetters.length - rejected, 'record')} delivered${rejected === 0 ? '' : `, ${rejected} rejected again`}\n`,
    );
  return rejected === 0 ? 0 : 1;
}

async function discard(config: Config, deadLetters: readonly Listed[], values: OperationValues, io: Io): Promise<number> {
  const [first] = deadLetters;
  if (!first) return 0;
  const plan = [
    `Deletes permanently the copies of ${counted(deadLetters.length, 'record')} that the sink ${first.sink} rejected; keeps the errors`,
  ];
  if (!(await confirmed(plan, values, io))) return 1;
  for (const { shard, part } of partsOf(deadLetters)) {
    const seqs = part.map(({ seq }) => seq);
    await operation(config, { operation: 'dead-letters discard', sink: first.sink, seqs, ...actor(values, io) }, io.signal, { shard });
  }
  if (values.json) printJson(io, { sink: first.sink, discarded: deadLetters.map(({ seq }) => seq) });
  else io.stdout.write('done\n');
  return 0;
}

/** The dead letters of one sink that the arguments select; `show` includes discarded ones. */
function chosenOf(verb: string, deadLetters: readonly Listed[], seqs: readonly string[], { sink: onlySink, all }: ChosenValues): Listed[] {
  const able = deadLetters.filter(
    ({ state, sink }) => (verb === 'show' || state === 'stored') && (onlySink === undefined || sink === onlySink),
  );
  const sinks = [...new Set(able.map(({ sink }) => sink))];
  if (all && seqs.length > 0) throw new WaybillError('usage', 'cannot combine --all with entries');
  if (!all && seqs.length === 0) throw new WaybillError('usage', `cannot ${verb}: no entry given; pass its number or --all`);
  if (sinks.length > 1)
    throw new WaybillError('usage', `cannot select dead letters: several sinks have some; pass --sink ${sinks.join('|')}`);
  if (all) {
    if (able.length === 0) throw new WaybillError('usage', `cannot ${verb}: there are no dead letters`);
    return able;
  }
  return seqs.map((given) => {
    const found = able.find((each) => entryOf(each) === given);
    if (!found) throw new WaybillError('usage', `cannot find the dead letter "${given}"; see waybill dead-letters list`);
    return found;
  });
}
