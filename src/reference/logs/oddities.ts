/**
 * Records that violate the specification, with the shares of the switches; a collector must accept
 * them. Each kind is drawn independently, so that a record can have several.
 */
import { cut, type MadeRecord } from './records.ts';
import { instantText } from '../instant.ts';
import { below, oneOf, type Random } from '../random.ts';
import type { SwitchName, SwitchValues } from '../switches.ts';

type OddName = Extract<SwitchName, `odd${string}`>;
type Twist = (made: MadeRecord, random: Random) => void;

const hugeLength = 64 * 1024;
/** 2^53 + 1, the smallest integer that a JavaScript number cannot represent. */
const bigIdLeast = 9_007_199_254_740_993n;

const twists: Readonly<Partial<Record<OddName, Twist>>> = {
  oddNoFraction: (made) => {
    made.at = cut(made.at, 0);
    set(made, 'logTimestamp', `"${instantText(made.at, 0)}"`);
  },
  oddMissing: (made, random) => made.fields.splice(below(random, made.fields.length), 1),
  oddNull: (made, random) => inField(made, random, () => 'null'),
  oddUnknown: (made, random) => made.fields.splice(1 + below(random, made.fields.length), 0, oneOf(random, unknownFields)),
  oddType: (made, random) =>
    inField(made, random, (json) => oneOf(random, json.startsWith('"') ? notTexts : [`"${json.length}"`, '["a"]'])),
  oddHuge: (made) => set(made, 'payloadName', JSON.stringify('huge '.repeat(hugeLength / 5 + 1).slice(0, hugeLength))),
  oddControl: (made) => {
    set(made, 'payloadName', JSON.stringify('line\r\nbreak\ttab\u0000nul\u001b[31m\u007f\u0085\u2028.pdf'));
    set(made, 'userNetwork', JSON.stringify({ ...network(made), machineName: 'a\nb\u0000c\u001b[2J' }));
  },
  oddSurrogate: (made, random) =>
    set(made, 'payloadName', oneOf(random, ['"lone \\ud83d high.pdf"', '"lone \\ude00 low.pdf"', '"\\ude00\\ud83d.pdf"'])),
  oddValue: (made, random) => {
    const name = oneOf(random, ['actionAttempted', 'result', 'resultReason']);
    set(made, name, `"Unheard${name.slice(0, 1).toUpperCase()}${name.slice(1)}"`);
  },
  // As text, because a JavaScript number would round it. An id that is already big repeats that of
  // another record.
  oddBigId: (made) => {
    const id = BigInt(idOf(made) ?? '0');
    if (id > 0n && id < bigIdLeast) set(made, 'logId', (bigIdLeast + 2n * id).toString());
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
export function makeOdd(made: MadeRecord, values: SwitchValues, random: Random, otherIds: readonly string[]): void {
  if (values.oddRepeatedId > 0 && random() < values.oddRepeatedId && otherIds.length > 0) set(made, 'logId', oneOf(random, otherIds));
  for (const name of names) {
    if (values[name] > 0 && random() < values[name]) twists[name]?.(made, random);
  }
}

/** The digits of the logId; undefined if an oddity removed it or changed its type. */
export function idOf(made: MadeRecord): string | undefined {
  const json = value(made, 'logId');
  return json !== undefined && /^\d+$/.test(json) ? json : undefined;
}

/** The JSON text of a field; undefined if it is missing. */
function value(made: MadeRecord, name: string): string | undefined {
  return made.fields.find((field) => field[0] === name)?.[1];
}

function set(made: MadeRecord, name: string, json: string): void {
  const field = made.fields.find((each) => each[0] === name);
  if (field) field[1] = json;
}

/** Replaces the value of a field, possibly one inside userNetwork. */
function inField(made: MadeRecord, random: Random, change: (json: string) => string): void {
  const field = oneOf(random, made.fields);
  if (field[0] !== 'userNetwork' || random() < 0.3) {
    field[1] = change(field[1]);
    return;
  }
  const inner = Object.entries(network(made)).map(([name, each]) => [name, JSON.stringify(each)] as const);
  const chosen = below(random, inner.length);
  field[1] = `{${inner.map(([name, json], at) => `${JSON.stringify(name)}:${at === chosen ? change(json) : json}`).join()}}`;
}

function network(made: MadeRecord): Record<string, unknown> {
  const parsed: unknown = JSON.parse(value(made, 'userNetwork') ?? '{}');
  return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : {};
}
