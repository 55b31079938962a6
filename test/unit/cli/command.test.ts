import { expect, test } from 'vitest';
import { defineCommand, subcommand } from '../../../src/cli/command.ts';
import { choice, parsed, required, text, toggle, withDefault } from '../../../src/cli/option.ts';
import { readmeRow } from '../../../src/cli/usage.ts';
import { outputOf } from '../../support/command-io.ts';

const port = parsed('N', 'port', 'a port', (given) => (/^\d{1,5}$/.test(given) ? Number(given) : undefined));

const parcels = defineCommand({
  name: 'parcels',
  summary: 'lists and sends parcels',
  description: 'Lists and sends parcels.',
  subcommands: {
    list: subcommand({
      summary: 'lists parcels',
      options: { json: toggle('as JSON'), to: text('T', 'end') },
      run: (values, io) => {
        io.stdout.write(JSON.stringify(values));
        return 0;
      },
    }),
    send: subcommand({
      summary: 'sends parcels',
      options: { sink: required(text('ID', 'sink')), port: withDefault(port, '25'), speed: choice('SPEED', ['slow', 'fast'], 'speed') },
      positionals: { name: 'PARCEL…', help: 'number of a parcel', min: 1, max: 2 },
      run: (values, io, given) => {
        io.stdout.write(JSON.stringify({ ...values, given }));
        return 3;
      },
    }),
  },
  fallback: 'list',
  examples: ['waybill parcels list', 'waybill parcels send 7 --sink siem'],
});

async function call(...args: string[]): Promise<{ code: number; result: unknown }> {
  const { code, stdout } = await outputOf((given, io) => parcels.run(given, io), args);
  return { code, result: JSON.parse(stdout) };
}

test('a subcommand receives typed options and positionals, and its exit code is returned', async () => {
  expect(await call()).toEqual({ code: 0, result: { json: false } });
  expect(await call('--json', '--to', '-7d')).toEqual({ code: 0, result: { json: true, to: '-7d' } });
  expect(await call('send', '7', '--sink', 'siem')).toEqual({ code: 3, result: { sink: 'siem', port: 25, given: ['7'] } });
  expect(await call('--sink=siem', 'send', '7', '8', '--speed', 'fast', '--port', '80')).toEqual({
    ...{ code: 3, result: { sink: 'siem', port: 80, speed: 'fast', given: ['7', '8'] } },
  });
});

test.each([
  [['sned'], 'cannot find "parcels sned": the nearest is "send"; see waybill help parcels'],
  [['list', '--jsno'], 'cannot use --jsno with "parcels list": the nearest is --json; see waybill help parcels'],
  [['list', '--frobnicate'], 'cannot use --frobnicate with "parcels list": no such option; see waybill help parcels'],
  [['list', '-j'], 'cannot use -j with "parcels list": no such option; see waybill help parcels'],
  [['list', '--sink', 'a'], 'cannot use --sink with "parcels list": it is an option of "parcels send"'],
  [['list', '7'], 'cannot run "parcels list": unexpected argument "7"; see waybill help parcels'],
  [['send', '--sink', 'a'], 'cannot run "parcels send": missing PARCEL…; see waybill help parcels'],
  [['send', '7', '--sink', 'a', '--sink', 'b'], 'cannot run "parcels send": --sink is given twice; see waybill help parcels'],
  [['send', '7'], 'cannot run "parcels send": missing --sink; see waybill help parcels'],
  [['send', '7', '--sink', 'a', '--port', 'x'], 'cannot use --port "x": not a port'],
  [['send', '7', '--sink', 'a', '--speed', 'fats'], 'cannot use --speed "fats": the nearest is "fast"'],
])('%j is refused', async (args, message) => {
  await expect(call(...args)).rejects.toMatchObject({ code: 'usage', message });
});

test.each([[['list', '--json=yes']], [['send', '7', '--sink']], [['send', '7', '--sink', '--port']]])(
  '%j does not fit the type of an option',
  async (args) => {
    await expect(call(...args)).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(/^cannot run "parcels \w+": [^\n]+; see waybill help parcels$/) as string,
    });
  },
);

test('usage text and README row follow from the table', () => {
  expect(parcels.usage).toBe(`waybill parcels list [options]
waybill parcels send PARCEL… --sink ID [options]

Lists and sends parcels.

  list                lists parcels
  send                sends parcels

  PARCEL…             number of a parcel
  --json              as JSON (only: list)
  --to T              end (only: list)
  --sink ID           sink (only: send)
  --port N            port (only: send)
  --speed SPEED       speed (only: send)

Examples:
  waybill parcels list
  waybill parcels send 7 --sink siem
`);
  expect(readmeRow(parcels)).toBe('| `parcels list`, `parcels send` | lists and sends parcels |');
});
