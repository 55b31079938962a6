/** `mapping.names`: the configured name of an outcome in each format. */
import { expect, test } from 'vitest';
import { type Format, formats } from '../../../src/encode/index.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { fullest, recordOf, rows, settings } from '../../support/normalize/records.ts';
import { readStrictly } from '../../support/encode/cef-strict.ts';
import { faultsOf } from '../../support/encode/ocsf-schema.ts';
import { encoder } from '../../support/encode/texts.ts';

const opened = 'Decrypt:AccessGranted:Success';

function messageOf(format: Format, names: Readonly<Record<string, string>>, record: object = fullest): string {
  const event = normalizer({ ...settings, mapping: { ...settings.mapping, names } })(recordOf(JSON.stringify(record)));
  return encoder(format, { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } })(event);
}

/** Every character with a meaning in some format, and a text that resembles a placeholder. */
const hostile = { [opened]: 'Lu "x" | a=b \\ {userId} ${user.id} é' };

test('CEF has it in the header and at the start of msg, escaped by the standard', () => {
  const line = messageOf('cef', hostile);
  const start = `CEF:0|Waybill|Data Protection and Audit Service|1.0|${opened}|Lu "x" \\| a=b \\\\ {userId} \${user.id} é|1|rt=`;
  expect(line.slice(0, start.length)).toBe(start);
  const end = ' msg=Lu "x" | a\\=b \\\\ {userId} ${user.id} é: user@example.com / Example file.xlsx (Success)';
  expect(line.slice(-end.length)).toBe(end);
  expect(readStrictly(line).name).toBe(hostile[opened]);
});

test.each(['ecs', 'ocsf'] as const)('%s has it at the start of the message', (format) => {
  const text = messageOf(format, hostile);
  const message = 'Lu "x" | a=b \\ {userId} ${user.id} é: user@example.com / Example file.xlsx (Success)';
  expect(JSON.parse(text)).toMatchObject({ message });
  if (format === 'ocsf') expect(faultsOf(text)).toEqual([]);
});

test.each(['leef', 'raw'] as const)('%s has no name of an outcome', (format) => {
  expect(messageOf(format, hostile)).toBe(messageOf(format, {}));
});

test('the tests above cover every format', () => {
  expect([...formats].toSorted()).toEqual(['cef', 'ecs', 'leef', 'ocsf', 'raw']);
});

test('CEF has a name of 512 characters completely', () => {
  const name = '漢'.repeat(512);
  expect(readStrictly(messageOf('cef', { [opened]: name })).name).toBe(name);
});

test.each(rows.map((row) => [row.triple.join(':'), row] as const))('only %s gets the name configured for it', (code) => {
  const named = rows.map(({ triple: [actionAttempted, result, resultReason] }) => {
    const line = messageOf('cef', { [code]: 'Renamed' }, { ...fullest, actionAttempted, result, resultReason });
    return readStrictly(line).name;
  });
  expect(named).toEqual(rows.map((row) => (row.triple.join(':') === code ? 'Renamed' : row.name)));
});

test('an unknown combination keeps the name derived from its parts', () => {
  const names = Object.fromEntries(rows.map(({ triple }) => [triple.join(':'), 'Renamed']));
  expect(readStrictly(messageOf('cef', names, { ...fullest, resultReason: 'Later' })).name).toBe('Protected file open allowed');
});
