import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { widthOf } from '../../../src/cli/io.ts';
import { dispatch } from '../../../src/main.ts';

// A pseudo-terminal without a set size has 0 columns (ioctl_tty(2), TIOCGWINSZ).
test.each([
  [{ columns: 0 }, 80],
  [{ columns: 132 }, 132],
  [{}, 120],
])('a stream with %j is %i columns wide', (properties, width) => {
  expect(widthOf(Object.assign(new PassThrough(), properties))).toBe(width);
});

test('compare needs no --to: the period ends now', async () => {
  const stderr = new PassThrough();
  const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr, env: {}, signal: new AbortController().signal };
  expect(await dispatch(['compare', '--source', 'a', '--from', '-1d', '--ids', '-', '--config', '/nowhere/waybill.yaml'], io)).toBe(2);
  expect(String(stderr.read())).toContain('cannot read the configuration "/nowhere/waybill.yaml"');
  expect(await dispatch(['compare', '--source', 'a', '--ids', '-'], io)).toBe(2);
  expect(String(stderr.read())).toBe('cannot run "compare": missing --from; see waybill help compare\n');
});
