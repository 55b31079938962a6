/** Notes the log events that the code under test writes, each with the names of its fields, for events-reporter.ts. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../../src/model/telemetry.ts';

/** Set by events-reporter.ts. A program without vitest notes nothing. */
const folder = process.env['WAYBILL_TEST_EVENTS'];
const noted = new Set<string>();
/** Parts of a line that are no fields of its event (docs/logs.md). */
const ofLine = ['level', 'time', 'event', 'component', 'message', 'repeated', 'lastAt', 'trace_id', 'span_id'];

/** @param fields  undefined values are fields without a value */
export function note(event: string, fields: object = {}): void {
  if (folder === undefined) return;
  const names = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const line = `${JSON.stringify([event, names])}\n`;
  if (noted.has(line)) return;
  noted.add(line);
  // A file of this process: others write at the same time.
  appendFileSync(join(folder, String(process.pid)), line);
}

/** Notes a line of a program, if it is the JSON of an event. */
export function noteLine(text: string): void {
  if (!/^\{"level":.*\}$/.test(text)) return;
  const line = JSON.parse(text) as Record<string, unknown>;
  note(String(line['event']), Object.fromEntries(Object.entries(line).filter(([name]) => !ofLine.includes(name))));
}

/** The same log; its lines are noted. */
export function noting(log: Log): Log {
  return {
    write: (event, ...fields) => {
      note(event, fields[0]);
      log.write(event, ...fields);
    },
  };
}
