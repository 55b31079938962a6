import { PassThrough } from 'node:stream';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { commandIo } from '../../support/command-io.ts';
import { command } from '../../../src/cli/commands/schema.ts';

const checkedIn = '../../../config/waybill.schema.json';

test('the schema that is printed is the one checked in as config/waybill.schema.json', async () => {
  const stdout = new PassThrough({ highWaterMark: 2 ** 22 });
  expect(await command.run([], commandIo({ stdout }))).toBe(0);
  const path = new URL(checkedIn, import.meta.url).pathname;
  const text = await format(String(stdout.read()), { ...(await resolveConfig(path)), filepath: path });
  // A change of the configuration changes this file: `npx vitest run test/unit/cli/schema.test.ts --update` writes it.
  await expect(text).toMatchFileSnapshot(checkedIn);
});
