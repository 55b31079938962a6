/**
 * `waybill encode`: records in, messages out, without journal or configuration: a record is
 * received when its line is read.
 */
import { systemClock } from '../../clock.ts';
import { encoder, type Format, formats } from '../../encode/index.ts';
import { cefSettings } from '../../encode/settings.ts';
import { messageOf } from '../../errors.ts';
import type { Encode } from '../../model/event.ts';
import type { Clock } from '../../model/time.ts';
import { normalizer } from '../../normalize/normalizer.ts';
import { outcomeCodes, outcomes } from '../../normalize/outcomes.ts';
import { mappingSettings, observerSettings, privacySettings } from '../../normalize/settings.ts';
import { exampleRecord } from '../../record/example.ts';
import { identify } from '../../record/identity.ts';
import { readText } from '../../record/read.ts';
import { quote } from '../../quote.ts';
import { defineCommand } from '../command.ts';
import type { Command } from '../form.ts';
import { writeResult } from '../io.ts';
import type { Io } from '../io.ts';
import { linesOf } from '../lines.ts';
import { choice, parsed, required, withDefault } from '../option.ts';

export const encodeCommand = (clock: Clock): Command =>
  defineCommand({
    name: 'encode',
    summary: 'encodes records as messages, with the code of the sinks',
    description: `Reads records as NDJSON from standard input, and writes one message a line to standard output. A line that is not JSON is reported on
standard error with its number; the others are encoded, and the exit code is 1.`,
    options: {
      format: required(choice('FORMAT', formats, formats.join(', '))),
      source: withDefault(
        parsed(
          'ID',
          'source of the records, part of the identity of each; default "default"',
          '1 to 32 of a-z, 0-9 and hyphen, no hyphen first',
          idOf,
        ),
        'default',
      ),
      example: choice(
        'CODE',
        ['all', ...outcomeCodes],
        `print a synthetic record of this outcome, such as Decrypt:AccessDenied:TimeEmbargoFailed, instead of reading; all: one of each of the ${outcomes.length} outcomes`,
      ),
    },
    examples: ['waybill encode --format cef < records.ndjson', 'waybill encode --format ecs --example all'],
    run: (values, io) => run(values, io, clock),
  });

export const command = encodeCommand(systemClock);

function idOf(given: string): string | undefined {
  return /^[a-z0-9][a-z0-9-]{0,31}$/.test(given) ? given : undefined;
}

interface EncodeValues {
  readonly format: Format;
  readonly source: string;
  readonly example: string | undefined;
}

async function run(options: EncodeValues, io: Io, clock: Clock): Promise<number> {
  const encode = recordEncoder(options.format, options.source, clock);
  if (options.example !== undefined) {
    await writeResult(
      io,
      examplesOf(options.example).map((example) => `${encode(example)}\n`),
    );
    return 0;
  }
  let failed = false;
  let number = 0;
  for await (const line of linesOf(io.stdin, io.signal)) {
    number += 1;
    if (line.trim() === '') continue;
    let message: string;
    try {
      message = encode(line);
    } catch (thrown) {
      if (!(thrown instanceof SyntaxError)) throw thrown;
      failed = true;
      io.stderr.write(`cannot encode line ${number}: it is not JSON: ${quote(messageOf(thrown), 200)}\n`);
      continue;
    }
    await writeResult(io, [`${message}\n`]);
  }
  return failed ? 1 : 0;
}

/**
 * @returns a function from the text of a record to its message; it throws SyntaxError for a text
 * that is not JSON
 */
function recordEncoder(format: Format, source: string, clock: Clock): (text: string) => string {
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
  const encode: Encode = encoder(format, { includeOriginal: true, cef: cefSettings.parse({}) });
  return (text) => encode(normalize({ text, uid: uidOf(readText(text)), received: clock.now() * 1000 }));
}

function examplesOf(code: string): readonly string[] {
  return outcomes.flatMap((outcome, index) => (code === 'all' || code === outcome.code ? [exampleRecord(outcome, index)] : []));
}
