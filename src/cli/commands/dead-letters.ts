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
import { readState, settingsFor, stateOptions, type StateValues } from '../state-access.ts';

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

type ChosenValues = ValuesOf<typeof chosenOptions>;

/** The dead letters of the state. Refuses a sink that neither the state nor the configuration knows. */
async function stored(
  values: StateValues & { readonly sink: string | undefined },
  io: Io,
): Promise<{ settings: StateSettings; deadLetters: DeadLetterRow[] }> {
  const { settings } = await settingsFor(values, io);
  const deadLetters = readState(settings, (db) => deadLettersOf(db));
  const known = [...settings.sinks.map(({ id }) => id), ...deadLetters.map(({ sink }) => sink)];
  if (values.sink !== undefined && !known.includes(values.sink)) throw notFound('sink', values.sink, [...new Set(known)]);
  return { settings, deadLetters };
}

async function choose(
  verb: string,
  values: ChosenValues & { readonly config: string | undefined },
  io: Io,
  seqs: readonly string[],
): Promise<{ config: Config; deadLetters: DeadLetterRow[] }> {
  const { deadLetters } = await stored({ ...values, 'data-dir': undefined }, io);
  const chosen = chosenOf(verb, deadLetters, seqs, values);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  return { config, deadLetters: chosen };
}

function list(deadLetters: readonly DeadLetterRow[], json: boolean, io: Io): void {
  if (json) printJson(io, { deadLetters: deadLetters.map(facts) });
  else if (deadLetters.length === 0) io.stdout.write('no dead letters\n');
  else {
    const columns = ['SINK', right('ENTRY'), 'SOURCE', 'RECORD TIME', 'REJECTED', 'CODE', right('ATTEMPTS'), 'STATE'];
    const rows = deadLetters.map(({ sink, seq, source, time, at, code, attempts, state }) => [
      ...[sink, String(seq), source, time === undefined ? '-' : rfc3339(time), rfc3339(at), rejectionCode(code), String(attempts), state],
    ]);
    printTable(io, columns, rows);
  }
}

/** Without the record, and without the message of the sink, which may quote it. */
function facts({ sink, seq, source, uid, time, received, at, code, attempts, state }: DeadLetterRow) {
  const times = { time: time === undefined ? null : rfc3339(time), received: rfc3339(received), rejected: rfc3339(at) };
  return { sink, seq, source, uid, ...times, code, attempts, state };
}

function show(config: Pick<StateSettings, 'dataDir'>, deadLetters: readonly DeadLetterRow[], json: boolean, io: Io): number {
  return readState(config, (db) => {
    const recordOf = ({ sink, seq }: DeadLetterRow) => recordOfDeadLetter(db, sink, seq)?.toString('utf8');
    if (json) {
      const shown = deadLetters.map((each) => ({ ...facts(each), message: each.message, record: recordOf(each) ?? null }));
      printJson(io, { deadLetters: shown });
      return 0;
    }
    for (const deadLetter of deadLetters) {
      const { sink, seq, at, code, message, attempts } = deadLetter;
      const record = recordOf(deadLetter);
      const rejected = `${sink}, entry ${seq}, rejected ${rfc3339(at)} (${counted(attempts, 'attempt')}), ${code}`;
      if (record === undefined) io.stderr.write(`${rejected}\n  its copy and the message of the sink were discarded\n`);
      else {
        io.stderr.write(`${rejected}: ${printable(message)}\n`);
        io.stdout.write(`${record}\n`);
      }
    }
    return 0;
  });
}

async function retry(config: Config, deadLetters: readonly DeadLetterRow[], values: OperationValues, io: Io): Promise<number> {
  const [first] = deadLetters;
  if (!first) return 0;
  const plan = [`Resends ${counted(deadLetters.length, 'dead letter')} to the sink ${first.sink}`];
  if (!(await confirmed(plan, values, io))) return 1;
  const by = actor(values, io);
  const results: { seq: number; delivered: boolean; code?: string; message?: string }[] = [];
  for (let from = 0; from < deadLetters.length; from += maxDeadLetters) {
    const part = deadLetters.slice(from, from + maxDeadLetters);
    // The sink may have confirmed some of these during the previous part.
    const left = readState(config, (db) => part.filter(({ sink, seq }) => isDeadLetter(db, sink, seq)));
    const seqs = left.map(({ seq }) => seq);
    const answer =
      seqs.length === 0
        ? undefined
        : await operation(config, { operation: 'dead-letters retry', sink: first.sink, seqs, ...by }, io.signal);
    for (const { seq } of part) {
      const refusal = answer?.result.sent?.rejected.find((each) => each.seq === seq);
      results.push(refusal ? { seq, delivered: false, code: refusal.code, message: refusal.message } : { seq, delivered: true });
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

async function discard(config: Config, deadLetters: readonly DeadLetterRow[], values: OperationValues, io: Io): Promise<number> {
  const [first] = deadLetters;
  if (!first) return 0;
  const plan = [
    `Deletes permanently the copies of ${counted(deadLetters.length, 'record')} that the sink ${first.sink} rejected; keeps the errors`,
  ];
  if (!(await confirmed(plan, values, io))) return 1;
  const seqs = deadLetters.map(({ seq }) => seq);
  for (let from = 0; from < seqs.length; from += maxDeadLetters) {
    const part = seqs.slice(from, from + maxDeadLetters);
    await operation(config, { operation: 'dead-letters discard', sink: first.sink, seqs: part, ...actor(values, io) }, io.signal);
  }
  if (values.json) printJson(io, { sink: first.sink, discarded: seqs });
  else io.stdout.write('done\n');
  return 0;
}

/** The dead letters of one sink that the arguments select; `show` includes discarded ones. */
function chosenOf(
  verb: string,
  deadLetters: readonly DeadLetterRow[],
  seqs: readonly string[],
  { sink: onlySink, all }: ChosenValues,
): DeadLetterRow[] {
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
    const found = /^[0-9]{1,15}$/.test(given) ? able.find(({ seq }) => seq === Number(given)) : undefined;
    if (!found) throw new WaybillError('usage', `cannot find the dead letter "${given}"; see waybill dead-letters list`);
    return found;
  });
}
