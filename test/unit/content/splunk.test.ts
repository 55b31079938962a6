/** content/splunk: everything that is named exists, fields are written by the encoder, and searches fire on the sequences of their Sigma form. */
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { fullest, poorest, recordOf, rows, settings } from '../normalize/records.ts';
import type { Happening, Row } from './events.ts';
import { eventOf, flat, recordFor } from './events.ts';
import { failures, ledgerEvent, ledgerEvents } from './ledger-events.ts';
import { mappedFields } from './mapped-fields.ts';
import { encoder } from '../encode/texts.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { parseCef } from '../encode/cef-parser.ts';
import { allCodes, bursts, burstSequences, deniedThenAllowed, singleEvents, spread } from './sequences.ts';
import { sigmaRules } from './sigma.ts';
import { spl } from './spl.ts';

const app = new URL('../../../content/splunk/waybill_dpas/', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, app), 'utf8');

type Conf = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** Stanzas and keys of a `.conf` file; a backslash continues a line. */
function conf(name: string): Conf {
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

const macros = conf('macros');
/** On records; splunk-ledger.test.ts tests those on ledger events. */
const searches = [...conf('savedsearches')].filter(([name]) => name.startsWith('DPAS: '));
const expanded = (text: string): string =>
  text.replaceAll(/`(\w+)`/g, (_, name: string) => {
    const definition = macros.get(name)?.get('definition');
    if (definition === undefined) throw new Error(`no macro ${name}`);
    return definition;
  });
const searchOf = (name: string): string => expanded(conf('savedsearches').get(`DPAS: ${name}`)?.get('search') ?? `no search ${name}`);

function csv(name: string): readonly Readonly<Record<string, string>>[] {
  const [head = '', ...lines] = read(`lookups/${name}`).trimEnd().split('\n');
  const columns = head.split(',');
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, index) => [columns[index] ?? '', cell])));
}

const views = globSync('default/data/ui/views/*.xml', { cwd: app }).map((path) => [path, read(path)] as const);
const unescaped = (text: string): string => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

describe('the files', () => {
  test('name only macros, lookups, event types and views that exist', () => {
    for (const [, keys] of searches) expect(() => expanded(keys.get('search') ?? '')).not.toThrow();
    const lookups = conf('transforms');
    for (const [key, value] of [...conf('props').values()].flatMap((stanza) => [...stanza]))
      if (/^(LOOKUP|REPORT)-/.test(key))
        for (const name of key.startsWith('REPORT-') ? value.split(', ') : [value.split(' ')[0]])
          expect([...lookups.keys()]).toContain(name);
    for (const [, keys] of lookups) if (keys.has('filename')) expect(read(`lookups/${keys.get('filename') ?? ''}`)).not.toBe('');
    const types = [...conf('eventtypes').keys()];
    expect([...conf('tags').keys()].map((stanza) => stanza.replace(/^eventtype=/, '')).toSorted()).toEqual(types.toSorted());
    const named = [...read('default/data/ui/nav/default.xml').matchAll(/<view name="(dpas_\w+)"/g)].map(([, name]) => name);
    expect(named.toSorted()).toEqual(views.map(([path]) => /(\w+)\.xml$/.exec(path)?.[1]).toSorted());
  });

  test('alias only fields that the encoder writes', () => {
    const sources = [...(conf('props').get('dpas:audit') ?? [])].flatMap(([key, value]) => {
      if (key.startsWith('FIELDALIAS-')) return [/^"([^"]+)" AS \w+$/.exec(value)?.[1] ?? value];
      if (key.startsWith('EVAL-')) return [...value.matchAll(/'([^']+)'/g)].map(([, field = '']) => field);
      return key.startsWith('LOOKUP-') ? [...value.matchAll(/AS "([^"]+)"/g)].map(([, field = '']) => field) : [];
    });
    expect(sources.length).toBeGreaterThan(15);
    expect(sources.filter((field) => !mappedFields.has(field))).toEqual([]);
  });

  test.each(views)('%s is well-formed, and its searches read fields of the events', (_, text) => {
    const open: string[] = [];
    for (const [, end, name = '', own] of text.matchAll(/<(\/?)([a-z.]+)(?:\s[^<>]*?)?(\/?)>/gi)) {
      if (end === '/') expect(open.pop()).toBe(name);
      else if (own !== '/') open.push(name);
    }
    expect(open).toEqual([]);
    const queries = [...text.matchAll(/<query>([^<]*)<\/query>/g)].map(([, query = '']) => spl(expanded(unescaped(query))));
    expect(queries.length).toBeGreaterThan(2);
    expect(queries.flatMap(({ fields }) => fields).filter((field) => field !== 'tags{}' && !mappedFields.has(field))).toEqual([]);
  });
});

describe('the lookup of outcomes', () => {
  const outcomes = csv('dpas_outcomes.csv');

  test('has the 17 codes, with words that the data models expect', () => {
    expect(outcomes.map(({ event_code }) => event_code)).toEqual(allCodes);
    // CIM 8.5: Data Access, DLP and Change.
    const expected = {
      action: ['created', 'read', 'blocked', 'modified'],
      status: ['success', 'failure'],
      severity: ['', 'low', 'medium', 'high'],
    };
    for (const row of outcomes) for (const [column, words] of Object.entries(expected)) expect(words).toContain(row[column]);
  });

  test('follows the outcome and severity of each row', () => {
    for (const [index, { triple, severity, action }] of rows.entries()) {
      const isDenied = triple[1] === 'AccessDenied';
      expect(outcomes[index]).toMatchObject({
        event_action: action,
        status: isDenied ? 'failure' : 'success',
        severity: !isDenied ? '' : severity >= 7 ? 'high' : severity >= 5 ? 'medium' : 'low',
        change_type: triple[0] === 'Audit' ? 'access policy' : '',
        dlp_type: isDenied ? 'policy' : '',
      });
    }
  });

  test.each([
    ['dpas_denied', ([action, result]: readonly string[]) => result === 'AccessDenied' && action !== 'Audit'],
    ['dpas_access', ([, result]: readonly string[]) => result !== 'AccessDenied'],
    ['dpas_change', ([action]: readonly string[]) => action === 'Audit'],
  ])('event type %s has its outcomes', (name, belongs) => {
    const { run } = spl(conf('eventtypes').get(name)?.get('search') ?? '');
    const found = allCodes.filter((code) => run([eventOf(recordFor({ code, at: 0 }))]).length > 0);
    expect(found).toEqual(rows.filter(({ triple }) => belongs(triple)).map(({ triple }) => triple.join(':')));
  });
});

const normalize = normalizer(settings);
const encodeCef = encoder('cef', { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } });

/** A CEF message with the fields that props.conf and transforms.conf give it at search time; its time is that of the envelope. */
function cefEventOf(record: object, normalizeRecord = normalize): Row {
  const line = encodeCef(normalizeRecord(recordOf(JSON.stringify(record))));
  const stanza = conf('props').get('dpas:cef') ?? new Map<string, string>();
  const row: Record<string, unknown> = { '@timestamp': eventOf(record)['@timestamp'] };
  for (const report of stanza.get('REPORT-dpas_cef')?.split(', ') ?? []) {
    const keys = conf('transforms').get(report);
    const names = [...(keys?.get('FORMAT') ?? '').matchAll(/(\S+)::\$(\d)/g)];
    // The regular expressions of JavaScript have no possessive quantifiers; they match the same.
    const regex = new RegExp((keys?.get('REGEX') ?? '').replaceAll(/([*+])\+/g, '$1'), 'g');
    // The first of several equal keys counts, as without MV_ADD.
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

describe('CEF messages', () => {
  const hostile = [
    { ...fullest, payloadName: 'a=b|c\\d suser=x\n', userNetwork: { ipAddress: '2001:db8::1' } },
    ...['\\', '=', ' a=', '\\ ', '|'].map((sign) => ({ ...fullest, payloadName: sign.repeat(300) })),
  ];

  test('get the fields that the ECS document has', () => {
    for (const record of [fullest, poorest, ...hostile]) {
      const [cef, ecs] = [cefEventOf(record), eventOf(record)];
      const line = parseCef(encodeCef(normalize(recordOf(JSON.stringify(record)))));
      // Extracted values keep the escapes of CEF.
      const plain = (value: unknown): unknown => (typeof value === 'string' ? value.replaceAll('\\n', '\n').replaceAll(/\\([=\\])/g, '$1').trim() : value); // prettier-ignore
      for (const [key, value] of line.extension) expect(plain(cef[key]), key).toBe(value);
      const shared = [...mappedFields.keys()].filter((field) => cef[field] !== undefined);
      expect(shared.length).toBeGreaterThan(12);
      for (const field of shared) if (field !== '@timestamp') expect(plain(cef[field]), field).toBe(String(ecs[field]).trim());
    }
  });

  test('have the same fields, except the message, under a name that the header escapes', () => {
    const names = { 'Decrypt:AccessGranted:Success': 'Open | read \\ allowed' };
    const renamed = cefEventOf(fullest, normalizer({ ...settings, mapping: { ...settings.mapping, names } }));
    expect(renamed['event.code']).toBe('Decrypt:AccessGranted:Success');
    expect({ ...renamed, msg: undefined }).toEqual({ ...cefEventOf(fullest), msg: undefined });
  });

  test('have every field that searches and rules read, except tags', () => {
    const [cef, poor] = [cefEventOf(fullest), cefEventOf(poorest)];
    const read = searches.flatMap(([, keys]) => spl(expanded(keys.get('search') ?? '')).fields);
    expect([...new Set(read)].filter((field) => cef[field] === undefined)).toEqual(['tags{}']);
    expect(poor['source.ip']).toBeUndefined();
  });

  test.each(Object.entries(bursts))('%s finds a burst of them', (name, burst) => {
    const { run } = spl(searchOf(name));
    const found = (count: number): readonly Row[] => run(spread(burst, count, burst.window).map((each) => cefEventOf(recordFor(each))));
    expect([found(burst.count), found(burst.count - 1)].map(({ length }) => length)).toEqual([1, 0]);
  });
});

const eventsOf = (happenings: readonly Happening[]): readonly Row[] => happenings.map((happening) => eventOf(recordFor(happening)));

describe('the saved searches', () => {
  test('are disabled, and read fields of the events', () => {
    for (const [name, keys] of searches) {
      expect(keys.get('disabled'), name).toBe('1');
      const { fields, limits } = spl(expanded(keys.get('search') ?? ''));
      expect(
        fields.filter((field) => field !== 'tags{}' && !mappedFields.has(field)),
        name,
      ).toEqual([]);
      expect(limits, name).toMatchObject({ index: 'dpas', sourcetype: 'dpas:audit,dpas:cef' });
    }
  });

  test('that alert look at what was indexed since the last run and before, and throttle', () => {
    for (const [name, keys] of searches.filter(([, each]) => each.has('cron_schedule'))) {
      const { limits } = spl(expanded(keys.get('search') ?? ''));
      const [, minutes] = /^-(\d+)m@m$/.exec(limits['_index_earliest'] ?? '') ?? [];
      const window = (bursts[name.replace(/^DPAS: /, '')]?.window ?? 0) / 60;
      expect(Number(minutes), name).toBeGreaterThanOrEqual(5 + window);
      expect([limits['_index_latest'], keys.get('dispatch.earliest_time'), keys.get('dispatch.latest_time')], name).toEqual([
        '@m',
        '-24h',
        '+5m',
      ]);
      expect(keys.get('alert.suppress'), name).toBe('1');
    }
  });

  test('equal the rules of Kibana and Sigma that need no other data', () => {
    const bases = /^dpas_(open_denied_(geo|time|repeatedly)|open_allowed|authorized|revocation_changed)$/;
    const expected = [...sigmaRules.map(({ name }) => name).filter((name) => !bases.test(name)), 'dpas_two_countries', 'dpas_unexpected'];
    const rules = searches.map(([name]) => name.replace(/^DPAS: /, 'dpas_')).filter((name) => !name.includes(' '));
    expect(rules.toSorted()).toEqual(expected.toSorted());
  });

  test.each(['any_denied', 'open_denied_country', 'open_denied_no_access', 'owner_changed', 'protect_denied_geo'])(
    '%s finds its outcomes',
    (name) => {
      const { run } = spl(searchOf(name));
      expect(allCodes.filter((code) => run(eventsOf([{ code, at: 0 }])).length > 0)).toEqual(singleEvents[name]);
    },
  );

  const sequences = Object.entries(bursts).flatMap(([name, burst]) =>
    burstSequences(burst, 2 * burst.window).map((sequence) => [name, sequence.name, sequence] as const),
  );
  test.each(sequences)('%s: %s', (name, _, { happenings, fires }) => {
    const events = eventsOf(happenings);
    // Each event twice: dpas_dedup removes what the collector delivered again.
    expect(spl(searchOf(name)).run([...events, ...events])).toHaveLength(fires ? 1 : 0);
  });

  test.each(Object.entries(bursts))('%s reports a burst over an edge of buckets once', (name, burst) => {
    const { run } = spl(searchOf(name));
    for (let offset = 0; offset < 2 * burst.window; offset += 300)
      expect(run(eventsOf(spread(burst, burst.count, burst.window, offset))), `offset ${offset}`).toHaveLength(1);
  });

  test.each(deniedThenAllowed.map((sequence) => [sequence.name, sequence] as const))(
    'open_denied_then_allowed: %s',
    (_, { happenings, fires }) => {
      expect(spl(searchOf('open_denied_then_allowed')).run(eventsOf(happenings))).toHaveLength(fires ? 1 : 0);
    },
  );

  test('two_countries counts the countries of a user', () => {
    const [first = {}, second = {}] = eventsOf(spread({ codes: ['Decrypt:AccessGranted:Success'] }, 2, 3600)).map((row) => ({ ...row, 'source.ip': '192.0.2.1' })); // prettier-ignore
    const { run } = spl(searchOf('two_countries'));
    expect(run([{ ...first, Country: 'Japan' }, { ...second, Country: 'Chile' }])).toHaveLength(1); // prettier-ignore
    expect(run([{ ...first, Country: 'Japan' }, { ...second, Country: 'Japan' }])).toEqual([]); // prettier-ignore
  });

  test('events received twice and missing numbers are found', () => {
    const numbered = (...numbers: readonly number[]): readonly Row[] => numbers.map((number) => ({ ...eventOf(poorest), 'dpas.uid': `uid-${number}`, number })); // prettier-ignore
    const holes = spl(searchOf('missing numbers'));
    expect(holes.run(numbered(7, 9, 8, 8, 10))).toEqual([]);
    expect(holes.run(numbered(12, 7, 9, 8, 17))).toEqual([
      { previous: 9, number: 12, missing: 2 },
      { previous: 12, number: 17, missing: 4 },
    ]);
    expect(spl(searchOf('events received twice')).run(numbered(7, 9, 8, 8))).toEqual([{ id: 'uid-8', copies: 2 }]);
  });

  test('unexpected finds a new reason', () => {
    const { run } = spl(searchOf('unexpected'));
    expect(run([eventOf({ ...poorest, resultReason: 'NewReason' }), eventOf(poorest)])).toHaveLength(1);
  });
});

describe('the searches on ledger events', () => {
  const search = (name: string): string =>
    expanded(conf('savedsearches').get(`DPAS ledger: ${name}`)?.get('search') ?? `no search ${name}`);
  const rows = ledgerEvents.map((event) => flat(event, ''));
  const hour = 3_600_000_000;

  test('are disabled, throttle, and read fields of these events', () => {
    const found = [...conf('savedsearches')].filter(([name]) => !name.startsWith('DPAS: '));
    expect(found.map(([name]) => name)).toEqual(['DPAS ledger: no_proof', 'DPAS ledger: trail_broken']);
    const written = new Set(rows.flatMap((row) => Object.keys(row)));
    for (const [name, keys] of found) {
      expect([keys.get('disabled'), keys.get('alert.suppress')], name).toEqual(['1', '1']);
      const { fields, limits } = spl(expanded(keys.get('search') ?? '').replace('now()', '0'));
      expect(
        [...fields, keys.get('alert.suppress.fields') ?? 'no field'].filter((field) => !written.has(field)),
        name,
      ).toEqual([]);
      expect(limits, name).toMatchObject({ index: 'dpas', sourcetype: 'dpas:ledger' });
    }
    expect(conf('props').get('dpas:ledger')?.get('KV_MODE')).toBe('json');
  });

  test('trail_broken finds the events whose outcome is a failure, each once', () => {
    const found = spl(search('trail_broken')).run([...rows, ...rows]);
    expect(found.map((row) => row['event.action']).toSorted()).toEqual(failures.toSorted());
  });

  test('no_proof finds each source whose newest proof is older than an hour', () => {
    const proof = (source: string, at: number) => flat(ledgerEvent({ action: 'window-proven', source }, at), '');
    // A gap is no proof.
    const received = [
      proof('a', 0),
      proof('b', 0),
      proof('b', hour / 2),
      flat(ledgerEvent({ action: 'window-gap', source: 'a' }, hour), ''),
    ];
    const found = (at: number) => spl(search('no_proof').replace('now()', String(at / 1e6))).run(received).map((row) => row['dpas.ledger.source']); // prettier-ignore
    expect(found(hour)).toEqual([]);
    expect(found(hour + 1e6)).toEqual(['a']);
    expect(found(hour + hour / 2 + 1e6)).toEqual(['a', 'b']);
  });
});
