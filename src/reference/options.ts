/**
 * Parses the command line of the reference service. Each fault switch is an option with the name of
 * the switch. `--name value` and `--name=value` are equivalent. An error is one line that names the
 * option.
 */
import { resolve } from 'node:path';
import { describeSwitches, optionOf, switchNames, Switches } from './switches.ts';
import { BadValue, durationOf } from './values.ts';

export interface Options {
  readonly port: number;
  readonly controlPort: number;
  readonly records: number;
  readonly spanMs: number;
  readonly seed: string;
  readonly json: boolean;
  readonly help: boolean;
  readonly data: string | undefined;
  readonly tlsDir: string | undefined;
  readonly clock: 'system' | 'manual';
  readonly switches: Switches;
}

const own: readonly (readonly [name: string, value: string, meaning: string])[] = [
  ['port', 'N', 'HTTPS port on 127.0.0.1 (any free one)'],
  ['control-port', 'N', 'plain HTTP port on 127.0.0.1 for tests: truth, stats, switches, records (any free one)'],
  ['records', 'N', 'initial records, unless the data file has some (0)'],
  ['span', 'DURATION', 'the time before now over which the initial records are spread (1d)'],
  ['seed', 'TEXT', 'seed of credentials, records and random numbers (1)'],
  [
    'data',
    'FILE',
    'stores records, people, payloads and keys in this SQLite file; survives a kill, a power failure may lose the last seconds (none)',
  ],
  ['tls-dir', 'DIR', 'stores the certificates in this directory (new at each start)'],
  ['clock', 'MODE', 'system, or manual: only POST /clock on the control port moves the time (system)'],
  ['json', '', 'prints one line of JSON with addresses and credentials'],
  ['help', '', 'prints this help'],
];
const recordsMax = 100_000_000;
const helpWidth = 46;

/** @throws BadValue with one line for the user */
export function optionsOf(args: readonly string[]): Options {
  const given = new Map<string, string>();
  const switches = new Switches();
  const flags = switchNames.map(optionOf);
  for (let at = 0; at < args.length; at += 1) {
    const [, name = '', joined] = /^--([^=]+)(?:=([^]*))?$/.exec(args[at] ?? '') ?? [];
    const ownOption = own.find((each) => each[0] === name);
    if (!ownOption && !flags.includes(name)) throw new BadValue(`unknown option "${args[at] ?? ''}"; --help lists all`);
    const takesValue = ownOption?.[1] !== '';
    if (!takesValue && joined !== undefined) throw new BadValue(`--${name} takes no value`);
    const value = takesValue ? (joined ?? args[(at += 1)]) : '';
    if (value === undefined) throw new BadValue(`--${name} needs a value`);
    given.set(name, value);
  }
  switches.set(Object.fromEntries([...given].filter(([name]) => flags.includes(name)).map(([name, value]) => [name, value])));
  const spanMs = read('span', () => durationOf(given.get('span') ?? '1d'));
  if (spanMs <= 0) throw new BadValue('--span: the duration must be longer than 0');
  return {
    port: wholeOf(given, 'port', 65_535),
    controlPort: wholeOf(given, 'control-port', 65_535),
    records: wholeOf(given, 'records', recordsMax),
    spanMs,
    seed: given.get('seed') ?? '1',
    json: given.has('json'),
    help: given.has('help'),
    data: pathOf(given, 'data'),
    tlsDir: pathOf(given, 'tls-dir'),
    clock: clockOf(given.get('clock') ?? 'system'),
    switches,
  };
}

export function helpText(): string {
  const line = (option: string, meaning: string): string =>
    option.length < helpWidth ? `  ${option.padEnd(helpWidth)} ${meaning}` : `  ${option}\n  ${''.padEnd(helpWidth)} ${meaning}`;
  const rows = describeSwitches();
  return [
    'waybill reference [options]',
    '',
    'Runs a service that implements the interface specification, over HTTPS on 127.0.0.1, with people, credentials and audit records.',
    '',
    'Options (default)',
    ...own.map(([name, value, meaning]) => line(`--${name} ${value}`.trimEnd(), meaning)),
    '',
    'Switches select behaviour that other implementations of the specification may have. Each can be changed at run time: PATCH /switches on',
    'the control port accepts a JSON object of names and values. DURATION is 250ms, 10s, 5m, 2h, 30d; SHARE is from 0 to 1.',
    ...[...new Set(rows.map((row) => row.group))].flatMap((group) => [
      '',
      group,
      ...rows
        .filter((row) => row.group === group)
        .map((row) => line(`--${optionOf(row.name)} ${row.value}`, `${row.meaning}${row.initial === '' ? '' : ` (${row.initial})`}`)),
    ]),
    '',
    'Examples',
    '  waybill reference --records 100000 --span 1d --json',
    '  waybill reference --rate 50 --late-share 0.05 --late-delay 2m --fault-503 0.02 --seed 7',
    '',
  ].join('\n');
}

function wholeOf(given: ReadonlyMap<string, string>, name: string, max: number): number {
  const text = given.get(name) ?? '0';
  if (!/^\d{1,9}$/.test(text) || Number(text) > max) throw new BadValue(`--${name}: "${text}" is not a whole number from 0 to ${max}`);
  return Number(text);
}

function clockOf(text: string): Options['clock'] {
  if (text !== 'system' && text !== 'manual') throw new BadValue(`--clock: "${text}" is neither system nor manual`);
  return text;
}

/** An absolute path, so that SQLite does not interpret a special name such as `:memory:`. */
function pathOf(given: ReadonlyMap<string, string>, name: string): string | undefined {
  const text = given.get(name);
  if (text === '') throw new BadValue(`--${name}: the path is empty`);
  return text === undefined ? undefined : resolve(text);
}

function read<T>(name: string, how: () => T): T {
  try {
    return how();
  } catch (error) {
    if (error instanceof BadValue) throw new BadValue(`--${name}: ${error.message}`, { cause: error });
    throw error;
  }
}
