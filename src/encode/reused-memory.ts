/** Memory for one message, which an encoder reuses for the next message. */

const startBytes = 16 * 1024;
/** Larger memory, for one huge message, is released after it. */
const keptBytes = 1024 * 1024;

/** @returns `bytes` if a message of this size fits, otherwise new memory with undefined content */
export function roomFor(size: number, bytes: Buffer): Buffer {
  if (size <= bytes.length && (size > keptBytes || bytes.length <= 2 * keptBytes)) return bytes;
  return Buffer.allocUnsafeSlow(Math.max(startBytes, 2 * size));
}
