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

/** Stanzas and keys of a `.conf` file; a backslash continues a line. */
export function conf(name: string): Conf {
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

export function csv(name: string): readonly Readonly<Record<string, string>>[] {
  const [head = '', ...lines] = read(`lookups/${name}`).trimEnd().split('\n');
  const columns = head.split(',');
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, index) => [columns[index] ?? '', cell])));
}

export const normalize = normalizer(settings);
export const encodeCef = encoder('cef', { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } });

/**
 * A CEF message with the fields that props.conf and transforms.conf extract at search time; its
 * time is the envelope's.
 */
export function cefEventOf(record: object, normalizeRecord = normalize): Row {
  const line = encodeCef(normalizeRecord(recordOf(JSON.stringify(record))));
  const stanza = conf('props').get('dpas:cef') ?? new Map<string, string>();
  const row: Record<string, unknown> = { '@timestamp': eventOf(record)['@timestamp'] };
  for (const report of stanza.get('REPORT-dpas_cef')?.split(', ') ?? []) {
    const keys = conf('transforms').get(report);
    const names = [...(keys?.get('FORMAT') ?? '').matchAll(/(\S+)::\$(\d)/g)];
    // JavaScript has no possessive quantifiers; without them the expressions match the same.
    const regex = new RegExp((keys?.get('REGEX') ?? '').replaceAll(/([*+])\+/g, '$1'), 'g');
    // The first of several equal keys applies, as without MV_ADD.
    for (const match of line.matchAll(regex))
      for (const [, name = '', value] of names) row[name === '$1' ? (match[1] ?? '') : name] ??= match[Number(value)];
  }
  for (const [key, value] of stanza)
    if (key.startsWith('FIELDALIAS-'))
      for (const [, from = '', to = ''] of value.matchAll(/(\w+) AS(?:NEW)? "?([\w.]+)"?/g)) row[to] ??= row[from];
  const known = csv('dpas_outcomes.csv').find(({ event_code }) => event_code === row['event_code']);
  for (const [, from = '', to = ''] of stanza.get('LOOKUP-dpas_1_outcomes')?.matchAll(/(\w+) AS "?([\w.]+)"?/g) ?? [])
    row[to] = known?.[from];
  return row;
}
