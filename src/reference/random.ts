/**
 * Repeatable random numbers. Each part of the service has a separate stream, derived from the seed and
 * the name of the part, so that an additional request does not change the generated records.
 */
import { createHash } from 'node:crypto';

/** A number in [0, 1). */
export type Random = () => number;

/**
 * The stream for a text: the same text gives the same numbers (generator sfc32, state from
 * SHA-256).
 */
export function randomOf(text: string): Random {
  const digest = createHash('sha256').update(text).digest();
  let a = digest.readInt32LE(0);
  let b = digest.readInt32LE(4);
  let c = digest.readInt32LE(8);
  let counter = 1;
  return () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4294967296;
  };
}

/** A whole number in [0, below). */
export function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

export function oneOf<T>(random: Random, items: readonly T[]): T {
  const item = items[below(random, items.length)];
  if (item === undefined) throw new Error('cannot choose from an empty list');
  return item;
}

/** Hexadecimal digits. */
export function hexOf(random: Random, digits: number): string {
  let text = '';
  while (text.length < digits) text += below(random, 16).toString(16);
  return text;
}

/** A UUID, version 4. */
export function uuidOf(random: Random): string {
  const hex = hexOf(random, 30);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(12, 15)}-${'89ab'.charAt(below(random, 4))}${hex.slice(15, 18)}-${hex.slice(18)}`;
}
