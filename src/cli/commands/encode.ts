/**
 * `waybill encode`: records in, messages out, by the very code of the sinks. It has no journal and no configuration: a record is received
 * when its line is read, and its source is what `--source` says.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '../../clock.ts';
import { encoder, type EncodedFormat, encodedFormats, isEncodedFormat } from '../../encode/index.ts';
import { cefSettings } from '../../encode/settings.ts';
import { WaybillError, messageOf } from '../../errors.ts';
import type { Encode } from '../../model/event.ts';
import type { Clock } from '../../model/time.ts';
import { normalizer } from '../../normalize/normalizer.ts';
import { outcomeCodes, outcomes } from '../../normalize/outcomes.ts';
import { mappingSettings, observerSettings, privacySettings } from '../../normalize/settings.ts';
import { exampleRecord } from '../../record/example.ts';
import { identify } from '../../record/identity.ts';
import { parseRecord } from '../../record/json.ts';
import { quote } from '../../quote.ts';
import type { Io } from '../io.ts';
import { linesOf } from '../lines.ts';

export const summary = 'encodes records as messages, with the very code that the sinks use';

export const usage = `waybill encode --format FORMAT [--source ID] [--example all|CODE]

Reads records as NDJSON from standard input and writes one message a line to standard output. A line that is not JSON is reported on
standard error with its number; the others are encoded, and the exit code is 1.

  --format FORMAT   ${encodedFormats.join(', ')}
  --source ID       the source that the records are from: part of every record's identity (default: default)
  --example CODE    prints a synthetic record of this outcome instead of reading any, e.g. Decrypt:AccessDenied:TimeEmbargoFailed;
                    all: one of each of the ${outcomes.length} outcomes

Examples:
  waybill encode --format cef < records.ndjson
  waybill encode --format ecs --example all
`;

/** @throws WaybillError `usage` when the command line does not fit */
export async function run(args: string[], io: Io, clock: Clock = systemClock): Promise<number> {
  const options = optionsOf(args);
  const encode = recordEncoder(options.format, options.source, clock);
  if (options.example !== undefined) {
    for (const text of examplesOf(options.example)) await write(io, `${encode(text)}\n`);
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
    await write(io, `${message}\n`);
  }
  return failed ? 1 : 0;
}

interface Options {
  readonly format: EncodedFormat;
  readonly source: string;
  readonly example: string | undefined;
}

function optionsOf(args: string[]): Options {
  const { format, source, example } = parseArgs({
    args,
    options: { format: { type: 'string' }, source: { type: 'string', default: 'default' }, example: { type: 'string' } },
  }).values;
  if (format === undefined)
    throw new WaybillError('usage', `cannot encode without "--format": one of ${encodedFormats.join(', ')} is needed`);
  if (!isEncodedFormat(format)) {
    throw new WaybillError('usage', `cannot encode as "${format}": the formats are ${encodedFormats.join(', ')}`);
  }
  if (!/^[a-z0-9][a-z0-9-]{0,31}$/.test(source)) {
    throw new WaybillError('usage', `cannot use "${source}" as the id of a source: 1 to 32 of a-z, 0-9 and hyphen, no hyphen first`);
  }
  if (example !== undefined && example !== 'all' && !outcomeCodes.includes(example)) {
    throw new WaybillError('usage', `cannot give an example of "${example}": it is neither all nor one of ${outcomeCodes.join(', ')}`);
  }
  return { format, source, example };
}

/** From the text of a record to its message. Throws SyntaxError when the text is not JSON. */
function recordEncoder(format: EncodedFormat, source: string, clock: Clock): (text: string) => string {
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
  return (text) => {
    const value = parseRecord(text);
    return encode(normalize({ text, value, uid: uidOf(value, () => text), received: clock.now() * 1000 }));
  };
}

function examplesOf(code: string): readonly string[] {
  return outcomes.flatMap((outcome, index) => (code === 'all' || code === outcome.code ? [exampleRecord(outcome, index)] : []));
}

/** Writes, and waits while the reader is behind. */
async function write(io: Io, text: string): Promise<void> {
  if (io.stdout.write(text)) return;
  await new Promise<void>((resolve, reject) => {
    const abort = () => {
      io.stdout.off('drain', resolve);
      reject(io.signal.reason as Error);
    };
    io.signal.addEventListener('abort', abort, { once: true });
    io.stdout.once('drain', () => {
      io.signal.removeEventListener('abort', abort);
      resolve();
    });
  });
}
