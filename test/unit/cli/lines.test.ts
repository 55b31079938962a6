import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { linesOf } from '../../../src/cli/lines.ts';

async function lines(...chunks: readonly (string | Buffer)[]): Promise<string[]> {
  const found: string[] = [];
  for await (const line of linesOf(Readable.from(chunks), new AbortController().signal)) found.push(line);
  return found;
}

test('only LF ends a line; U+2028 and U+2029, which JSON may contain, do not', async () => {
  expect(await lines('{"a":"x\u2028y\u2029z"}\n', '{"b":1}\r\n', 'last')).toEqual(['{"a":"x\u2028y\u2029z"}', '{"b":1}', 'last']);
});

test('a character divided between chunks stays whole', async () => {
  const bytes = Buffer.from('Ж€𝄞\nb\n');
  for (let at = 1; at < bytes.length; at += 1) expect(await lines(bytes.subarray(0, at), bytes.subarray(at))).toEqual(['Ж€𝄞', 'b']);
});

test('empty input has no line, empty lines are lines', async () => {
  expect(await lines()).toEqual([]);
  expect(await lines('\n\na')).toEqual(['', '', 'a']);
});
