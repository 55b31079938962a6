/** The files of content/splunk, and the fields that they extract from a CEF message at search time. */
import { readFileSync } from 'node:fs';
import { encoder } from '../encode/texts.ts';
import { recordOf, settings } from '../normalize/records.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import type { Row } from './events.ts';
import { eventOf } from './events.ts';

export const app = new URL('../../../content/splunk/waybill_dpas/', import.meta.url);
export const read = (path: string): string => readFileSync(new URL(path, app), 'utf8');

type Conf = ReadonlyMap<string, ReadonlyMap<string, string>>;

const confs = new Map<string, Conf>();

/** Stanzas and keys of a `.conf` file; a backslash continues a line. */
export function conf(name: string): Conf {
  const found = confs.get(name) ?? readConf(name);
  confs.set(name, found);
  return found;
}

function readConf(name: string): Conf {
  const stanzas = new Map<string, Map<string, string>>();
  let current: Map<string, string> | undefined;
  for (const line of read(`default/${name}.conf`).replaceAll('\\\n', '').split('\n')) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const [, stanza] = /^\[(.*)\]$/.exec(line) ?? [];
    if (stanza !== undefined) {
      if (stanzas.has(stanza)) throw new Error(`${name}.conf has [${stanza}] twice`);
      current = new Map<string, string>();
      stanzas.set(stanza, current);
      continue;
    }
    const [, key = '', value = ''] = /^([\w.-]+) = (.*)$/.exec(line) ?? [];
    if (!current || key === '' || current.has(key)) throw new Error(`${name}.conf: cannot read ${line}`);
    current.set(key, value);
  }
  return stanzas;
}

const csvs = new Map<string, readonly Readonly<Record<string, string>>[]>();

export function csv(name: string): readonly Readonly<Record<string, string>>[] {
  const found = csvs.get(name) ?? readCsv(name);
  csvs.set(name, found);
  return found;
}

function readCsv(name: string): readonly Readonly<Record<string, string>>[] {
  const [head = '', ...lines] = read(`lookups/${name}`).trimEnd().split('\n');
  const columns = head.split(',');
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, index) => [columns[index] ?? '', cell])));
}

/** A search with the definitions of its macros. */
export const expanded = (text: string): string =>
  text.replaceAll(/`(\w+)`/g, (_, name: string) => {
    const definition = conf('macros').get(name)?.get('definition');
    if (definition === undefined) throw new Error(`no macro ${name}`);
    return definition;
  });

export const savedSearch = (name: string): string => expanded(conf('savedsearches').get(name)?.get('search') ?? `no search ${name}`);

export const normalize = normalizer(settings);
export const encodeCef = encoder('cef', { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } });

type Keys = ReadonlyMap<string, string>;

/**
 * A CEF message with the fields that the app extracts at search time; its time is the envelope's.
 */
export function cefEventOf(record: object, normalizeRecord = normalize): Row {
  const line = encodeCef(normalizeRecord(recordOf(JSON.stringify(record))));
  const row: Record<string, unknown> = { '@timestamp': eventOf(record)['@timestamp'] };
  for (const report of conf('props').get('dpas:cef')?.get('REPORT-dpas_cef')?.split(', ') ?? []) {
    const keys = conf('transforms').get(report);
    const names = [...(keys?.get('FORMAT') ?? '').matchAll(/(\S+)::\$(\d)/g)];
    // JavaScript has no possessive quantifiers; without them the expressions match the same.
    const regex = new RegExp((keys?.get('REGEX') ?? '').replaceAll(/([*+])\+/g, '$1'), 'g');
    // The first of several equal keys applies, as without MV_ADD.
    for (const match of line.matchAll(regex))
      for (const [, name = '', value] of names) row[name === '$1' ? (match[1] ?? '') : name] ??= match[Number(value)];
  }
  return atSearchTime('dpas:cef', row);
}

/** The extracted fields of an event, then aliases, calculated fields and lookups, in the order of Splunk. */
export function atSearchTime(sourcetype: string, extracted: Row): Row {
  const keys: Keys = conf('props').get(sourcetype) ?? new Map<string, string>();
  const named = (prefix: string): readonly string[] =>
    [...keys].filter(([key]) => key.startsWith(prefix)).toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value); // prettier-ignore
  const row: Record<string, unknown> = { ...extracted };
  for (const value of named('FIELDALIAS-'))
    for (const [, from = '', kind = '', to = ''] of value.matchAll(/"?([\w.]+)"? (AS|ASNEW) "?([\w.]+)"?/g)) {
      if (row[from] !== undefined && (kind === 'AS' || row[to] === undefined)) row[to] = row[from];
    }
  Object.assign(row, calculated(keys, { ...row }));
  for (const value of named('LOOKUP-')) Object.assign(row, lookedUp(value, row));
  return row;
}

/** Each EVAL sees the fields before any of them; a field without a value has no result. */
function calculated(keys: Keys, row: Row): Row {
  const found = [...keys].flatMap(([key, expression]) => {
    if (!key.startsWith('EVAL-')) return [];
    const valueOf = (operand: string): unknown => (operand.startsWith('"') ? operand.slice(1, -1) : row[operand.replaceAll("'", '')]);
    const [, choices] = /^coalesce\((.*)\)$/.exec(expression) ?? [];
    if (choices !== undefined) {
      const value = choices
        .split(', ')
        .map(valueOf)
        .find((each) => each !== undefined);
      return [[key.slice(5), value]];
    }
    const operands = expression.match(/"[^"]*"|'[^']*'/g) ?? [];
    if (operands.join('.') !== expression) throw new Error(`cannot evaluate ${expression}`);
    const values = operands.map(valueOf);
    return [[key.slice(5), values.includes(undefined) ? undefined : values.join('')]];
  });
  return Object.fromEntries(found.filter(([, value]) => value !== undefined)) as Row;
}

/** `table key [AS field] … OUTPUT|OUTPUTNEW column [AS field] …`: an empty cell gives no field. */
function lookedUp(definition: string, row: Row): Row {
  const [, table = '', inputs = '', kind, outputs = ''] = /^(\w+) (.*) (OUTPUT|OUTPUTNEW) (.*)$/.exec(definition) ?? [];
  const pairs = (text: string): readonly (readonly [column: string, field: string])[] =>
    [...text.matchAll(/(\w+)(?: AS "?([\w.]+)"?)?/g)].map(([, column = '', field = column]) => [column, field]);
  const file = conf('transforms').get(table)?.get('filename') ?? `no lookup ${table}`;
  const match = csv(file).find((line) => pairs(inputs).every(([column, field]) => line[column] === String(row[field])));
  return Object.fromEntries(
    pairs(outputs).flatMap(([column, field]) => {
      const value = match?.[column] ?? '';
      return value === '' || (kind === 'OUTPUTNEW' && row[field] !== undefined) ? [] : [[field, value]];
    }),
  );
}
