import { expect, test } from 'vitest';
import { LineBuffer } from '../../../src/sink/file/lines.ts';
import type { Message } from '../../../src/model/sink.ts';

test('one buffer serves batches of similar size, and the memory of a large batch returns after small ones', () => {
  const lines = new LineBuffer();
  const joined = (text: string): Buffer => lines.lines([{ bytes: Buffer.from(text) } as unknown as Message], true);
  const large = 'x'.repeat(3_000_000);
  const first = joined(large);
  expect(first.toString()).toBe(`\n${large}\n`);
  expect(joined(large.slice(0, 1_000_000)).buffer).toBe(first.buffer);
  const small = joined('y');
  expect(small.toString()).toBe('\ny\n');
  expect(small.buffer.byteLength).toBe(262_144);
  expect(joined('z').buffer).toBe(small.buffer);
});
