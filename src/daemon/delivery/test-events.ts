/**
 * Test events for a sink: synthetic records (record/example.ts) dated now, named and tagged `waybill_test`. They use the normalizer and
 * encoder of real records and are not in the journal.
 */
import type { Message } from '../../model/sink.ts';
import { outcomes } from '../../normalize/outcomes.ts';
import { ecsNumbers as ecs } from '../../record/ecs.ts';
import type { Encode, Normalize } from '../../record/event.ts';
import { exampleRecord } from '../../record/example.ts';
import { identify } from '../../record/identity.ts';
import { readText } from '../../record/read.ts';

const tag = 'waybill_test';

interface TestEvents {
  readonly source: string;
  readonly normalize: Normalize;
  readonly write: Encode;
  /** One of `outcomeCodes`. */
  readonly code: string;
  readonly count: number;
  /** Wall clock, ms. */
  readonly now: number;
}

export function testEvents({ source, normalize, write, code, count, now }: TestEvents): readonly Message[] {
  const outcome = outcomes.find((each) => each.code === code);
  if (!outcome) throw new RangeError(`unknown outcome "${code}"`);
  const uidOf = identify(source);
  return Array.from({ length: count }, (_, index): Message => {
    const unique = {
      logId: now * 1000 + index,
      payloadName: `${tag} ${index + 1} of ${count}.docx`,
      logTimestamp: new Date(now).toISOString().slice(0, 23),
    };
    const text = JSON.stringify({ ...(JSON.parse(exampleRecord(outcome, 0)) as object), ...unique });
    const record = readText(text);
    const uid = uidOf(record);
    const received = now * 1000;
    const event = normalize({ record, uid, received });
    const { time, severity, action, key } = event;
    event.document.set(ecs['tags[5]'], tag);
    const bytes = Buffer.from(write(event));
    return { seq: index + 1, number: undefined, uid, source, time, received, late: false, severity, action, key, bytes };
  });
}
