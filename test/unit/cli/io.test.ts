import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { widthOf } from '../../../src/cli/io.ts';
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
