/**
 * Arrays of PostgreSQL in its binary format: pg sends arrays as text, which doubles the size of bytea. One parameter for each column also keeps
 * a commit of any number of rows below the limit of 65,535 parameters.
 */
import type { Value } from '../journal/replica/shard-database.ts';

const oids = { bigint: 20, bytea: 17, text: 25 } as const;
export type ElementType = keyof typeof oids;

/** A one-dimensional array as a parameter. @throws TypeError if a value is not of the type */
export function arrayOf(values: readonly Value[], type: ElementType): Buffer {
  const head = Buffer.alloc(20);
  // Dimensions, whether there are nulls, element type, length, first index.
  for (const [i, number] of [1, values.includes(null) ? 1 : 0, oids[type], values.length, 1].entries()) head.writeInt32BE(number, i * 4);
  return Buffer.concat([head, ...values.flatMap((value) => elementOf(value, type))]);
}

function elementOf(value: Value, type: ElementType): Buffer[] {
  const length = Buffer.alloc(4);
  length.writeInt32BE(-1);
  if (value === null) return [length];
  const content = contentOf(value, type);
  length.writeInt32BE(content.length);
  return [length, content];
}

function contentOf(value: Exclude<Value, null>, type: ElementType): Buffer {
  if (type === 'bytea' && typeof value === 'object') return value;
  if (type === 'text' && typeof value === 'string') return Buffer.from(escaped(value), 'utf8');
  if (type !== 'bigint' || typeof value !== 'number') throw new TypeError(`${typeof value} is not a value of ${type}`);
  const content = Buffer.alloc(8);
  content.writeBigInt64BE(BigInt(value));
  return content;
}

/** PostgreSQL stores no NUL in text, but messages of a sink may contain it: SUB and 0 stand for it, and SUB twice for SUB. */
function escaped(text: string): string {
  return text.replace(/[\0\x1a]/g, (found) => (found === '\0' ? '\x1a0' : '\x1a\x1a'));
}

/** The value of a text column as the journal stored it. */
export function unescaped(text: string): string {
  return text.includes('\x1a') ? text.replace(/\x1a([0\x1a])/g, (_, mark: string) => (mark === '0' ? '\0' : mark)) : text;
}
