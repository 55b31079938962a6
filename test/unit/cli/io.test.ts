import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { inputLines, widthOf } from '../../../src/cli/io.ts';
import { dispatch } from '../../../src/main.ts';
import { outputOf } from '../../support/command-io.ts';

// A pseudo-terminal without a set size has 0 columns (ioctl_tty(2), TIOCGWINSZ).
test.each([
  [{ columns: 0 }, 80],
  [{ columns: 132 }, 132],
  [{}, 120],
])('a stream with %j is %i columns wide', (properties, width) => {
  expect(widthOf(Object.assign(new PassThrough(), properties))).toBe(width);
});

const never = new AbortController().signal;
test('a file of any length is read line by line', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-lines-'));
  const file = join(folder, 'lines');
  try {
    // A chunk of a stream ends within a line and within a character.
    const lines = ['', 'é'.repeat(100_000), '\r', 'x', '', '\u2028'.repeat(70_001)];
    for (const [text, expected] of [
      [lines.join('\n'), lines],
      [`${lines.join('\n')}\n`, lines],
      ['', []],
      ['\n', ['']],
    ] as const) {
      writeFileSync(file, text);
      expect(await Array.fromAsync(inputLines(file, '--proof', never))).toEqual(expected);
    }
    const missing = Array.fromAsync(inputLines(folder, '--proof', never));
    await expect(missing).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining('cannot read --proof') as string });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('compare needs no --to: the period ends now', async () => {
  const compare = ['compare', '--source', 'a', '--ids', '-'];
  expect(await outputOf(dispatch, [...compare, '--from', '-1d', '--config', '/nowhere/waybill.yaml'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('cannot read the configuration "/nowhere/waybill.yaml"') as string,
  });
  expect(await outputOf(dispatch, compare)).toMatchObject({
    code: 2,
    stderr: 'cannot run "compare": missing --from; see waybill help compare\n',
  });
});
