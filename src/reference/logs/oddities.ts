/**
 * Records that violate the specification, with the shares of the switches; a collector must accept
 * them. Each kind is drawn independently, so that a record can have several.
 */
import { cut, type GeneratedRecord } from './records.ts';
import { instantText } from '../instant.ts';
import { below, oneOf, type Random } from '../random.ts';
import type { SwitchName, SwitchValues } from '../switches.ts';

type OddName = Extract<SwitchName, `odd${string}`>;
type Twist = (record: GeneratedRecord, random: Random) => void;

const hugeLength = 64 * 1024;
/** 2^53 + 1, the smallest integer that a JavaScript number cannot represent. */
const bigIdLeast = 9_007_199_254_740_993n;

const twists: Readonly<Partial<Record<OddName, Twist>>> = {
  oddNoFraction: (record) => {
    record.at = cut(record.at, 0);
    set(record, 'logTimestamp', `"${instantText(record.at, 0)}"`);
  },
  oddMissing: (record, random) => record.fields.splice(below(random, record.fields.length), 1),
  oddNull: (record, random) => inField(record, random, () => 'null'),
  oddUnknown: (record, random) => record.fields.splice(1 + below(random, record.fields.length), 0, oneOf(random, unknownFields)),
  oddType: (record, random) =>
    inField(record, random, (json) => oneOf(random, json.startsWith('"') ? notTexts : [`"${json.length}"`, '["a"]'])),
  oddHuge: (record) => set(record, 'payloadName', JSON.stringify('huge '.repeat(hugeLength / 5 + 1).slice(0, hugeLength))),
  oddControl: (record) => {
    set(record, 'payloadName', JSON.stringify('line\r\nbreak\ttab\u0000nul\u001b[31m\u007f\u0085\u2028.pdf'));
    set(record, 'userNetwork', JSON.stringify({ ...network(record), machineName: 'a\nb\u0000c\u001b[2J' }));
  },
  oddSurrogate: (record, random) =>
    set(record, 'payloadName', oneOf(random, ['"lone \\ud83d high.pdf"', '"lone \\ude00 low.pdf"', '"\\ude00\\ud83d.pdf"'])),
  oddValue: (record, random) => {
    const name = oneOf(random, ['actionAttempted', 'result', 'resultReason']);
    set(record, name, `"Unheard${name.slice(0, 1).toUpperCase()}${name.slice(1)}"`);
  },
  // As text, because a JavaScript number would round it. An id that is already big becomes the
  // id of another record.
  oddBigId: (record) => {
    const id = BigInt(idOf(record) ?? '0');
    if (id > 0n && id < bigIdLeast) set(record, 'logId', (bigIdLeast + 2n * id).toString());
  },
};

const names = Object.keys(twists) as OddName[];
const notTexts = ['7', 'true', '["a"]', '{"a":1}', '1.5e3'];
const unknownFields: [string, string][] = [
  ['riskScore', '0.75'],
  ['tags', '["a",{"b":null}]'],
  ['__proto__', '{"polluted":true}'],
  ['ключ', '"значение"'],
];

/** Applies randomly selected oddities. `otherIds`: logIds of records of other nodes. */
export function makeOdd(record: GeneratedRecord, values: SwitchValues, random: Random, otherIds: readonly string[]): void {
  if (values.oddRepeatedId > 0 && random() < values.oddRepeatedId && otherIds.length > 0) set(record, 'logId', oneOf(random, otherIds));
  for (const name of names) {
    if (values[name] > 0 && random() < values[name]) twists[name]?.(record, random);
  }
}

/** The digits of the logId; undefined if an oddity removed it or changed its type. */
export function idOf(record: GeneratedRecord): string | undefined {
  const json = value(record, 'logId');
  return json !== undefined && /^\d+$/.test(json) ? json : undefined;
}

/** The JSON text of a field; undefined if it is missing. */
function value(record: GeneratedRecord, name: string): string | undefined {
  return record.fields.find((field) => field[0] === name)?.[1];
}

function set(record: GeneratedRecord, name: string, json: string): void {
  const field = record.fields.find((each) => each[0] === name);
  if (field) field[1] = json;
}

/** Replaces the value of a field, possibly one inside userNetwork. */
function inField(record: GeneratedRecord, random: Random, change: (json: string) => string): void {
  const field = oneOf(random, record.fields);
  if (field[0] !== 'userNetwork' || random() < 0.3) {
    field[1] = change(field[1]);
    return;
  }
  const inner = Object.entries(network(record)).map(([name, each]) => [name, JSON.stringify(each)] as const);
  const chosen = below(random, inner.length);
  field[1] = `{${inner.map(([name, json], at) => `${JSON.stringify(name)}:${at === chosen ? change(json) : json}`).join()}}`;
}

function network(record: GeneratedRecord): Record<string, unknown> {
  const parsed: unknown = JSON.parse(value(record, 'userNetwork') ?? '{}');
  return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : {};
}
