/** Compares the file that a program wrote with the records of the service, record by record. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import { firstLogId, recordText } from '../record.ts';
import type { Peer } from './programs.ts';

export interface Check {
  /** Records of the service that the file lacks. */
  readonly lost: number;
  /** Copies after the first. */
  readonly doubled: number;
  /** Records whose `event.original` is not a text of the service. */
  readonly changed: number;
}

/** The parts of a line of OTLP JSON (opentelemetry-proto, logs.proto) that the check reads. */
interface OtlpLine {
  readonly resourceLogs: readonly { readonly scopeLogs: readonly { readonly logRecords: readonly LogRecord[] }[] }[];
}

interface LogRecord {
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

/** The served log: `copies` sources with the same records. */
interface Log {
  readonly records: number;
  /** ms since 1970 of the first record. */
  readonly beginMs: number;
  /** Records per second. */
  readonly rate?: number;
  readonly copies?: number;
}

export async function check(file: string, output: Peer['output'], { records, beginMs, rate, copies: sources = 1 }: Log): Promise<Check> {
  const copies = new Uint8Array(records);
  let changed = 0;
  for await (const line of createInterface({ input: createReadStream(file, { highWaterMark: 1_048_576 }) })) {
    for (const original of originalsOf(line, output)) {
      const record = JSON.parse(original) as { readonly logId?: number } | null;
      const i = (record?.logId ?? NaN) - firstLogId;
      if (!(i in copies)) {
        changed += 1;
        continue;
      }
      copies[i] = Math.min(255, (copies[i] ?? 0) + 1);
      const expected = recordText(i, beginMs, rate);
      if (original !== expected && !isDeepStrictEqual(record, JSON.parse(expected))) changed += 1;
    }
  }
  const lost = copies.reduce((sum, count) => sum + Math.max(0, sources - count), 0);
  const doubled = copies.reduce((sum, count) => sum + Math.max(0, count - sources), 0);
  return { lost, doubled, changed };
}

function originalsOf(line: string, output: Peer['output']): string[] {
  if (output === 'ECS') return [(JSON.parse(line) as { event: { original: string } }).event.original];
  const { resourceLogs } = JSON.parse(line) as OtlpLine;
  return resourceLogs
    .flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
    .map(({ attributes }) => attributes.find(({ key }) => key === 'event.original')?.value.stringValue ?? 'null');
}
