/** content/splunk: every name resolves, the encoder writes the fields, and the searches on delivery find what is wrong. */
import { globSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { fullest, poorest, recordOf, rows, settings } from '../../support/normalize/records.ts';
import type { Row } from '../../support/content/events.ts';
import { eventOf, flat, recordFor } from '../../support/content/events.ts';
import { failures, ledgerEvent, ledgerEvents } from '../../support/content/ledger-events.ts';
import { mappedFields } from '../../../tools/content/mapped-fields.ts';
import { encoder } from '../../../src/encode/index.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { parseCef } from '../../support/encode/cef-parser.ts';
import { rules } from '../../../tools/content/rules.ts';
import { eventsOf } from '../../support/detections/samples.ts';
import {
  app,
  atSearchTime,
  cefEventOf,
  conf,
  csv,
  encodeCef,
  expanded,
  normalize,
  read,
  savedSearch,
} from '../../support/content/splunk-app.ts';
import { spl } from '../../support/content/spl.ts';

/** The searches on records. */
const searches = [...conf('savedsearches')].filter(([name]) => name.startsWith('DPAS: '));
/** The outcomes of the service. */
const allCodes = rows.map(({ triple }) => triple.join(':'));
/** The fields that the app gives an event of each kind. */
const audit = atSearchTime('dpas:audit', eventOf(fullest));
const searchOf = (name: string): string => savedSearch(`DPAS: ${name}`);

const views = globSync('default/data/ui/views/*.xml', { cwd: app }).map((path) => [path, read(path)] as const);
const unescaped = (text: string): string => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

/** The queries of a view for a user and a file: the filter s of a token puts it in quotes. */
const queriesIn = (view: string, user = '*', file = '*'): readonly string[] =>
  [...view.matchAll(/<query>([^<]*)<\/query>/g)].map(([, query = '']) =>
    unescaped(query).replace('$user|s$', `"${user}"`).replace('$file|s$', `"${file}"`),
  );

describe('the files', () => {
  test('use only macros, lookups, event types and views that exist', () => {
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

  test.each(views)('%s is well-formed, and its searches use fields of the events', (_, text) => {
    const open: string[] = [];
    for (const [, end, name = '', own] of text.matchAll(/<(\/?)([a-z.]+)(?:\s[^<>]*?)?(\/?)>/gi)) {
      if (end === '/') expect(open.pop()).toBe(name);
      else if (own !== '/') open.push(name);
    }
    expect(open).toEqual([]);
    const queries = queriesIn(text).map((query) => spl(expanded(query)));
    expect(queries.length).toBeGreaterThan(2);
    expect(queries.flatMap(({ fields }) => fields).filter((field) => field !== 'tags{}' && !mappedFields.has(field))).toEqual([]);
  });
});

describe('the dashboards', () => {
  const events = allCodes.map((code, at) => eventOf({ ...fullest, ...recordFor({ code, at }) }));
  const marked = events.map((event) => ({ ...event, tags: ['forwarded', 'waybill_test'] }));

  test.each(views)('%s shows events of its user and file, and no test events', (path, text) => {
    const isFiltered = !path.includes('overview');
    for (const [index, query] of queriesIn(text).entries()) {
      const shown = (user: string, file: string, rows: readonly Row[]): number =>
        spl(expanded(queriesIn(text, user, file)[index] ?? '')).run(rows).length;
      expect(shown('*', '*', events), query).toBeGreaterThan(0);
      expect(shown('*', '*', marked), query).toBe(0);
      expect(shown('u-1', 'p-1', events), query).toBe(shown('*', '*', events));
      for (const [user, file] of [['u-2', '*'], ['*', 'p-2']] as const) expect(shown(user, file, events) === 0, query).toBe(isFiltered); // prettier-ignore
    }
  });

  test.each(views)('%s has a title for each panel', (_, text) => {
    expect(text.match(/<title>[A-Z][\w ]+<\/title>\s*<search>/g)).toHaveLength(queriesIn(text).length);
  });

  test('count users and files by their ids, which every record has', () => {
    const poor = [0, 1, 2].map((at) => eventOf(recordFor({ code: 'Decrypt:AccessDenied:UserPayloadNoAccess', user: `u-${at % 2}`, file: `p-${at}`, at }))); // prettier-ignore
    const counts = views.flatMap(([, text]) => queriesIn(text).map((query) => spl(expanded(query)).run(poor)));
    const columns = counts.flatMap((rows) => rows.flatMap((row) => (row['event.code'] === undefined ? [] : [row]))).filter((row) => 'users' in row); // prettier-ignore
    expect(columns).toHaveLength(2);
    for (const row of columns) expect(row).toMatchObject({ events: 3, users: 2, files: 3 });
  });

  test.each(views)('%s has an input for each token, and shows the chosen time', (_, text) => {
    const inputs = [...text.matchAll(/<input type="\w+" token="(\w+)">/g)].map(([, token]) => token);
    const used = [...text.matchAll(/\$(?!click)(\w+)(?:\.\w+)?(?:\|\w)?\$/g)].map(([, token]) => token);
    expect([...new Set(used)].toSorted()).toEqual(inputs.toSorted());
    const searches = [...text.matchAll(/<search>([^]*?)<\/search>/g)].map(([, search = '']) => search);
    for (const search of searches) expect(search.replaceAll(/\s/g, '')).toMatch(/<earliest>\$time.earliest\$<\/earliest><latest>\$time.latest\$<\/latest>$/); // prettier-ignore
  });

  const target = views.find(([path]) => path.endsWith('dpas_user_or_file.xml'))?.[1] ?? '';
  const isInput = (name: string): boolean => target.includes(`token="${name}"`);

  test('a click on a user or file opens the dashboard of this user or file, at the same time', () => {
    const opened = views.flatMap(([path, text]) =>
      [...text.matchAll(/<table>([^]*?)<\/table>/g)].flatMap(([, table = '']) => {
        const [, title] = /<title>(.*)<\/title>/.exec(table) ?? [];
        // The first column of a table is the first field of its last command, or the first field by which stats counts.
        const [, first = ''] = /(?:\| table | BY )(\S+)[^|]*(?:\| sort [^|]*)?$/.exec(queriesIn(table)[0] ?? '') ?? [];
        return [...table.matchAll(/(?:<condition field="([^"]+)">\s*)?<link target="_blank">(.*)<\/link>/g)].map(([, field, link = '']) => {
          const [page, parameters = ''] = unescaped(link).split('?');
          expect(page).toBe('/app/waybill_dpas/dpas_user_or_file');
          const [[name = '', value] = [], ...time] = parameters.split('&').map((each) => each.split('='));
          expect(isInput(name.replace('form.', ''))).toBe(true);
          expect(time).toEqual([['form.time.earliest', '$time.earliest|u$'], ['form.time.latest', '$time.latest|u$']]); // prettier-ignore
          // In a table click.value is the first cell of the row, click.value2 the clicked cell.
          expect([value, table.includes(`<option name="drilldown">${field === undefined ? 'row' : 'cell'}</option>`)]).toEqual([field === undefined ? '$click.value|u$' : '$click.value2|u$', true]); // prettier-ignore
          return [path.split('/').at(-1), title, field ?? first, name];
        });
      }),
    );
    const newest = 'Newest denied opens without access or from an excluded country';
    expect(opened.toSorted()).toEqual([
      ['dpas_control_changes.xml', 'Changes by user', 'user.id', 'form.user'],
      ['dpas_control_changes.xml', 'Owner changes', 'dpas.payload.id', 'form.file'],
      ['dpas_control_changes.xml', 'Owner changes', 'user.id', 'form.user'],
      ['dpas_overview.xml', 'Files with most denials', 'dpas.payload.id', 'form.file'],
      ['dpas_overview.xml', newest, 'dpas.payload.id', 'form.file'],
      ['dpas_overview.xml', newest, 'user.id', 'form.user'],
      ['dpas_overview.xml', 'Users with most denials', 'user.id', 'form.user'],
      ['dpas_user_or_file.xml', 'Files', 'dpas.payload.id', 'form.file'],
    ]);
  });

  test('an alert and an event open the dashboard of their user or file', () => {
    const named = new Set([...conf('savedsearches')].flatMap(([, keys]) => spl(expanded(keys.get('search') ?? '')).fields));
    for (const [field, token] of [
      ['user_id', 'user'],
      ['object_id', 'file'],
    ] as const) {
      const keys = conf('workflow_actions').get(`dpas_${token}`);
      expect(keys?.get('fields')).toBe(field);
      expect(keys?.get('link.uri')).toBe(`/app/waybill_dpas/dpas_user_or_file?form.${token}=$${field}$`);
      expect([isInput(token), named.has(field), audit[field] !== undefined]).toEqual([true, true, true]);
    }
  });

  test('a chart of outcomes has a series for each of them', () => {
    const limits = views.flatMap(([, text]) => [...text.matchAll(/timechart limit=(\d+) /g)].map(([, limit]) => Number(limit)));
    expect(limits).toHaveLength(4);
    for (const limit of limits) expect(limit).toBeGreaterThanOrEqual(allCodes.length);
  });

  test('name the newest address and file of an id', () => {
    const at = (second: number, email: string, name: string): Row =>
      eventOf({ ...fullest, ...recordFor({ code: 'Decrypt:AccessDenied:UserPayloadNoAccess', at: second }), userEmailAddress: email, payloadName: name }); // prettier-ignore
    const rows = [at(2, 'new@example.com', 'new.docx'), at(1, 'old@example.com', 'old.docx')];
    const overview = queriesIn(views.find(([path]) => path.includes('overview'))?.[1] ?? '');
    const found = overview.flatMap((query) => spl(expanded(query)).run(rows));
    expect(found.flatMap(({ email }) => email ?? [])).toEqual(['new@example.com']);
    expect(found.flatMap(({ file }) => file ?? [])).toEqual(['new.docx']);
  });
});

describe('the app', () => {
  test('has one name and one version, is visible, and exports what other apps need', () => {
    const stanza = conf('app');
    expect([stanza.get('package')?.get('id'), stanza.get('id')?.get('name')]).toEqual(['waybill_dpas', 'waybill_dpas']);
    expect(stanza.get('launcher')?.get('version')).toBe(stanza.get('id')?.get('version'));
    expect([stanza.get('ui')?.get('is_visible'), stanza.get('install')?.get('state')]).toEqual(['1', 'enabled']);
    const shared = [...read('metadata/default.meta').matchAll(/^\[(\w+)\]\nexport = system$/gm)].map(([, kind]) => kind);
    expect(shared).toEqual(['props', 'transforms', 'lookups', 'eventtypes', 'tags', 'macros', 'workflow_actions']);
  });

  test('opens with the overview', () => {
    expect(read('default/data/ui/nav/default.xml').match(/<view [^>]*default="true"/g)).toEqual([
      '<view name="dpas_overview" default="true"',
    ]);
  });

  test('has macros that are texts, and lookups that find one line by its exact value', () => {
    for (const [name, keys] of conf('macros')) expect(keys.get('iseval'), name).toBe('0');
    for (const [name, keys] of conf('transforms'))
      if (keys.has('filename')) expect([keys.get('case_sensitive_match'), keys.get('max_matches')], name).toEqual(['true', '1']);
  });
});

describe('the lookup of outcomes', () => {
  const outcomes = csv('dpas_outcomes.csv');

  test('has the 17 codes, with values that the data models expect', () => {
    expect(outcomes.map(({ event_code }) => event_code)).toEqual(allCodes);
    // CIM 8.5: Data Access, DLP and Change.
    const expected = {
      action: ['created', 'read', 'blocked', 'modified'],
      status: ['success', 'failure'],
    };
    for (const row of outcomes) for (const [column, words] of Object.entries(expected)) expect(words).toContain(row[column]);
  });

  test('follows the outcome of each row', () => {
    for (const [index, { triple, action }] of rows.entries()) {
      const isDenied = triple[1] === 'AccessDenied';
      expect(outcomes[index]).toMatchObject({
        event_action: action,
        status: isDenied ? 'failure' : 'success',
        change_type: triple[0] === 'Audit' ? 'access policy' : '',
        dlp_type: isDenied ? 'policy' : '',
      });
    }
  });

  test('the severity of a denial follows the severity of its event, also after an override', () => {
    const encodeEcs = encoder('ecs', { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } });
    const wordOf = (sourcetype: string, row: Row): string | undefined => {
      const [, level = '', outcome = ''] =
        /^dpas_severities event_severity(?: AS "([^"]+)")? event_outcome AS "?([\w.]+)"? OUTPUT severity$/
          .exec(conf('props').get(sourcetype)?.get('LOOKUP-dpas_3_severities') ?? '')
          ?.with(0, '') ?? [];
      const values = [row[level === '' ? 'event_severity' : level], row[outcome]].map(String);
      return csv('dpas_severities.csv').find((each) => each['event_severity'] === values[0] && each['event_outcome'] === values[1])?.[
        'severity'
      ];
    };
    const both = (code: string, override: number): readonly unknown[] => {
      const record = recordFor({ code, at: 0 });
      const changed = normalizer({ ...settings, mapping: { ...settings.mapping, severity: { [code]: override } } });
      const ecs = flat(JSON.parse(encodeEcs(changed(recordOf(JSON.stringify(record)))).toString()), '');
      return [wordOf('dpas:audit', ecs), wordOf('dpas:cef', cefEventOf(record, changed))];
    };
    // 7 and above is high, 5 and 6 medium, the rest low.
    const words = ['low', 'low', 'low', 'low', 'low', 'medium', 'medium', 'high', 'high', 'high', 'high'];
    for (const [override, word] of words.entries()) {
      expect(both('Decrypt:AccessDenied:UserPayloadNoAccess', override)).toEqual([word, word]);
      expect(both('Decrypt:AccessGranted:Success', override)).toEqual([undefined, undefined]);
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

describe('CEF messages', () => {
  const hostile = [
    { ...fullest, payloadName: 'a=b|c\\d suser=x\n', userNetwork: { ipAddress: '2001:db8::1' } },
    ...['\\', '=', ' a=', '\\ ', '|'].map((sign) => ({ ...fullest, payloadName: sign.repeat(300) })),
  ];

  test('have the fields of the ECS document', () => {
    for (const record of [fullest, poorest, ...hostile]) {
      const [cef, ecs] = [cefEventOf(record), eventOf(record)];
      const line = parseCef(encodeCef(normalize(recordOf(JSON.stringify(record)))));
      // Extracted values keep CEF escapes.
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
    expect({ ...renamed, msg: undefined, message: undefined }).toEqual({ ...cefEventOf(fullest), msg: undefined, message: undefined });
  });

  test('have the vendor and product that the ECS document has', () => {
    const productOf = (sourcetype: string, row: Row): string =>
      (conf('props').get(sourcetype)?.get('EVAL-vendor_product') ?? '')
        .replaceAll(/'([^']+)'/g, (_, field: string) => `"${String(row[field])}"`)
        .replaceAll('"."', '')
        .replaceAll('"', '');
    expect(productOf('dpas:audit', eventOf(fullest))).toBe('Waybill Data Protection and Audit Service');
    expect(productOf('dpas:cef', cefEventOf(fullest))).toBe('Waybill Data Protection and Audit Service');
  });

  test('have every field that searches, rules and dashboards read, except tags and the severity of a denial', () => {
    const [cef, poor] = [cefEventOf(fullest), cefEventOf(poorest)];
    const read = [...searches.map(([, keys]) => keys.get('search') ?? ''), ...views.flatMap(([, text]) => queriesIn(text))].flatMap(
      (query) => spl(expanded(query)).fields,
    );
    expect([...new Set(read)].filter((field) => cef[field] === undefined).toSorted()).toEqual(['severity', 'tags{}', 'user_name']);
    expect(poor['source.ip']).toBeUndefined();
  });

  test.each(rules.filter(({ detect }) => detect.kind === 'count' || detect.kind === 'distinct'))('$id finds a burst of them', (rule) => {
    const [acts = []] = rule.fires;
    const burst = eventsOf(acts, rule).map(({ at, fields }) => {
      const [code = '', user = '', file = ''] = ['event.code', 'user.id', 'dpas.payload.id'].map((field) => fields[field]);
      return cefEventOf({ ...fullest, ...recordFor({ code, user, file, at: at / 1_000 }), currentPayloadOwnerId: fields['file.uid'] });
    });
    expect(spl(searchOf(rule.id.replaceAll('-', '_'))).run(burst)).toHaveLength(1);
  });
});

const encodeEcs = encoder('ecs', { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } });

test('names of 64 KiB leave the fields that searches read in the first 5,000 bytes', () => {
  const long = { ...fullest, payloadName: `${'n'.repeat(65_000)}.docx` };
  const text = encodeEcs(normalize(recordOf(JSON.stringify(long)))).toString();
  // limits.conf, [spath] extraction_cutoff. This part of the event ends within the name, which is in two objects.
  const row = atSearchTime('dpas:audit', flat(JSON.parse(`${text.slice(0, 5_000)}"}}}`), ''));
  const read = searches.flatMap(([, keys]) => spl(expanded(keys.get('search') ?? '')).fields);
  const missing = [...new Set(read)].filter((field) => row[field] === undefined && field !== 'tags{}');
  // An event that is no denial has no severity of CIM.
  expect(missing).toEqual(['severity']);
  // Its id stands for the name.
  expect(row['object']).toBe('p-91c2');
});

describe('the saved searches', () => {
  test('are those of the rules and of the delivery, disabled, with fields of the events', () => {
    const delivery = ['DPAS: events received twice', 'DPAS: events without id', 'DPAS: missing numbers'];
    expect(searches).toHaveLength(rules.filter(({ dataset }) => dataset === 'audit').length + delivery.length);
    expect(searches.map(([name]) => name)).toEqual(expect.arrayContaining(delivery));
    for (const [name, keys] of searches) {
      expect(keys.get('disabled'), name).toBe('1');
      const { fields, limits } = spl(expanded(keys.get('search') ?? ''));
      expect(
        fields.filter((field) => !['tags{}', 'severity'].includes(field) && !mappedFields.has(field) && audit[field] === undefined),
        name,
      ).toEqual([]);
      expect(limits, name).toMatchObject({ index: 'dpas', sourcetype: 'dpas:audit,dpas:cef' });
    }
  });

  test('duplicate events and missing numbers are found', () => {
    const numbered = (...numbers: readonly number[]): readonly Row[] => numbers.map((number) => ({ ...eventOf(poorest), 'dpas.uid': `uid-${number}`, number })); // prettier-ignore
    const holes = spl(searchOf('missing numbers'));
    expect(holes.run(numbered(7, 9, 8, 8, 10))).toEqual([]);
    expect(holes.run(numbered(12, 7, 9, 8, 17))).toEqual([
      { previous: 9, number: 12, missing: 2 },
      { previous: 12, number: 17, missing: 4 },
    ]);
    expect(spl(searchOf('events received twice')).run(numbered(7, 9, 8, 8))).toEqual([{ id: 'uid-8', copies: 2 }]);
  });

  test('an event without the indexed field id is found, and counts once', () => {
    const record = { ...poorest, actionAttempted: 'Decrypt', result: 'AccessDenied', resultReason: 'UserPayloadNoAccess' };
    const denied: Row = { ...atSearchTime('dpas:audit', eventOf(record)), id: undefined };
    const anonymous = { ...denied, 'dpas.uid': undefined };
    const { run } = spl(searchOf('open_denied_no_access'));
    expect(run([denied, denied])).toHaveLength(1);
    expect(run([anonymous, { ...anonymous }])).toHaveLength(2);
    expect(spl(searchOf('events received twice')).run([denied, denied])).toEqual([{ id: denied['dpas.uid'], copies: 2 }]);
    const indexed = { ...denied, id: 'uid-1' };
    expect(spl(searchOf('events without id')).run([indexed, { ...denied, sourcetype: 'dpas:audit' }])).toEqual([
      { sourcetype: 'dpas:audit', events: 1 },
    ]);
  });

  test('unexpected finds a new reason and an unreadable time', () => {
    const { run } = spl(searchOf('unexpected'));
    expect(run([eventOf({ ...poorest, resultReason: 'NewReason' }), eventOf(poorest)])).toHaveLength(1);
    expect(run([eventOf({ ...poorest, logTimestamp: '0001-01-01T00:00:00Z' })])).toHaveLength(1);
  });
});

describe('the searches on ledger events', () => {
  const search = (name: string): string => savedSearch(`DPAS ledger: ${name}`);
  const rows = ledgerEvents.map((event) => atSearchTime('dpas:ledger', flat(event, '')));
  const hour = 3_600_000_000;

  test('use fields of these events', () => {
    const found = [...conf('savedsearches')].filter(([name]) => !name.startsWith('DPAS: '));
    expect(found.map(([name]) => name)).toEqual(['DPAS ledger: no_proof', 'DPAS ledger: trail_broken']);
    const written = new Set(rows.flatMap((row) => Object.keys(row)));
    for (const [name, keys] of found) {
      const { fields, limits } = spl(expanded(keys.get('search') ?? ''));
      // A ledger event has no user and no file.
      expect(fields.filter((field) => !written.has(field) && field !== 'user_id' && field !== 'object_id')).toEqual([]);
      expect(limits, name).toMatchObject({ index: 'dpas', sourcetype: 'dpas:ledger' });
    }
    expect(conf('props').get('dpas:ledger')?.get('KV_MODE')).toBe('json');
  });

  test('trail_broken finds the events whose outcome is a failure, each once', () => {
    const found = spl(search('trail_broken')).run([...rows, ...rows]);
    expect(found.map((row) => row['event.action']).toSorted()).toEqual(failures.toSorted());
  });

  test('no_proof finds each source whose newest proof is older than an hour', () => {
    const proof = (source: string, at: number) => flat(ledgerEvent({ action: 'window-proven', source }, at, `${source}-${at}`), '');
    // A gap is not a proof.
    const received = [
      proof('a', 0),
      proof('b', 0),
      proof('b', hour / 2),
      flat(ledgerEvent({ action: 'window-gap', source: 'a' }, hour), ''),
    ];
    const found = (at: number) => spl(search('no_proof')).run(received, { now: at / 1e6, lookups: {} }).map((row) => row['dpas.ledger.source']); // prettier-ignore
    expect(found(hour)).toEqual([]);
    expect(found(hour + 1e6)).toEqual(['a']);
    expect(found(hour + hour / 2 + 1e6)).toEqual(['a', 'b']);
  });
});
