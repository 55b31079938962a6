/** `waybill encode`: records in, messages out, without a journal: a record is received when its line is read. */
import { systemClock } from '../../time/clock.ts';
import { encoder, type Format, formats } from '../../encode/index.ts';
import { cefSettings } from '../../encode/settings.ts';
import { messageOf, WaybillError } from '../../errors/errors.ts';
import type { Clock } from '../../model/time.ts';
import { normalizer } from '../../normalize/normalizer.ts';
import { outcomeCodes, outcomes } from '../../normalize/outcomes.ts';
import { mappingSettings, observerSettings, privacySettings } from '../../normalize/settings.ts';
import { exampleRecord } from '../../record/example.ts';
import { identify } from '../../record/identity.ts';
import { readText } from '../../record/read.ts';
import { quote } from '../../errors/quote.ts';
import { shortNamePattern } from '../../settings/values.ts';
import { defineCommand } from '../command.ts';
import type { Command } from '../form.ts';
import { writeResult, type Io } from '../io.ts';
import { linesOf } from '../lines.ts';
import { choice, configOption, parsed, text, type ValuesOf } from '../option.ts';

const options = {
  format: choice('FORMAT', formats, `${formats.join(', ')}, with default settings`),
  sink: text('ID', 'encode as this sink of the configuration does'),
  source: parsed(
    'ID',
    'source of the records, part of the identity of each; default "default", or the only source of the sink',
    '1 to 32 of a-z, 0-9 and hyphen, no hyphen first',
    (given) => (shortNamePattern.test(given) ? given : undefined),
  ),
  ...configOption,
  example: choice(
    'CODE',
    ['all', ...outcomeCodes],
    `print a synthetic record of this outcome, such as Decrypt:AccessDenied:TimeEmbargoFailed, instead of reading; all: one of each of the ${outcomes.length} outcomes`,
  ),
};

export const encodeCommand = (clock: Clock): Command =>
  defineCommand({
    name: 'encode',
    summary: 'encodes records as messages, with the code of the sinks',
    description: `Reads records as NDJSON from standard input, and writes one message a line to standard output. A line that is not JSON is reported on
standard error with its number; the others are encoded, and the exit code is 1.

With --sink, the filter, privacy rules, mapping, format and size limit of the sink and of its source apply: the receiver would get the same
messages, in the envelope of its protocol. Needs no credentials and opens no connection.`,
    options,
    examples: [
      'waybill encode --format cef < records.ndjson',
      'waybill encode --format ecs --example all',
      'waybill encode --config waybill.yaml --sink siem --example all',
    ],
    run: (values, io) => run(values, io, clock),
  });

export const command = encodeCommand(systemClock);

type Values = ValuesOf<typeof options>;

async function run(values: Values, io: Io, clock: Clock): Promise<number> {
  const encode = await encoderOf(values, io, clock);
  const records = values.example === undefined ? linesOf(io.stdin, io.signal) : examplesOf(values.example);
  let failed = false;
  let number = 0;
  let excluded = 0;
  for await (const line of records) {
    number += 1;
    // Blanks around a record are no part of it: in a response they stand between records.
    const record = line.trim();
    if (record === '') continue;
    let message: string | undefined;
    try {
      message = encode(record);
    } catch (thrown) {
      if (!(thrown instanceof SyntaxError || thrown instanceof RangeError)) throw thrown;
      failed = true;
      const reason = thrown instanceof SyntaxError ? `it is not JSON: ${quote(messageOf(thrown), 200)}` : messageOf(thrown);
      io.stderr.write(`cannot encode line ${number}: ${reason}\n`);
      continue;
    }
    if (message === undefined) excluded += 1;
    else await writeResult(io, [`${message}\n`]);
  }
  if (excluded > 0) io.stderr.write(`${excluded === 1 ? '1 record is' : `${excluded} records are`} excluded by the filter of the sink\n`);
  return failed ? 1 : 0;
}

/** @throws WaybillError `usage` when the options do not fit together */
async function encoderOf(values: Values, io: Io, clock: Clock): Promise<(text: string) => string | undefined> {
  const { format, sink, source } = values;
  if (sink === undefined) {
    if (format === undefined) throw new WaybillError('usage', 'cannot run "encode": missing --format or --sink; see waybill help encode');
    if (values.config !== undefined) throw new WaybillError('usage', 'cannot use --config without --sink');
    return recordEncoder(format, source ?? 'default', clock);
  }
  if (format !== undefined)
    throw new WaybillError('usage', 'cannot use --format with --sink: the configuration has the format of the sink');
  return (await import('./encode-sink.ts')).sinkEncoder({ ...values, sink }, io, clock);
}

/** @returns a function from the text of a record to its message; it throws SyntaxError for a text that is not JSON */
export function recordEncoder(format: Format, source: string, clock: Clock): (text: string) => string {
  const uidOf = identify(source);
  const normalize = normalizer({
    tenantId: undefined,
    baseUrl: undefined,
    observer: observerSettings.parse({}),
    dataset: 'dpas.audit',
    namespace: 'default',
    mapping: mappingSettings.parse({}),
    privacy: privacySettings.parse({}),
  });
  const encode = encoder(format, { includeOriginal: true, cef: cefSettings.parse({}) });
  return (text) => {
    const record = readText(text);
    return encode(normalize({ record, uid: uidOf(record), received: clock.now() * 1000 })).toString();
  };
}

function examplesOf(code: string): readonly string[] {
  return outcomes.flatMap((outcome, index) => (code === 'all' || code === outcome.code ? [exampleRecord(outcome, index)] : []));
}
