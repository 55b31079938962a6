/** content/sigma: valid by the specification, with only fields and values of the service, and each rule fires as the rule that it is written from. */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { encoder } from '../../../src/encode/index.ts';
import { evaluate } from '../../../src/detections/evaluate.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { fieldPaths } from '../../../src/record/fields.ts';
import { mappedFields } from '../../../tools/content/mapped-fields.ts';
import { rules } from '../../../tools/content/rules.ts';
import { sigmaLimit } from '../../../tools/content/sigma.ts';
import { recordFor } from '../../support/content/events.ts';
import { fieldsOf, matchesOf, readSigma, recordOfEvent, sigmaRule, sigmaRules, wantedOf } from '../../support/content/sigma.ts';
import { eventsOf } from '../../support/detections/samples.ts';
import { parseCef } from '../../support/encode/cef-parser.ts';
import { parseLeef } from '../../support/encode/leef-parser.ts';
import { fullest, recordOf, rows, settings } from '../../support/normalize/records.ts';

const schema = (name: string): object => {
  const document = JSON.parse(readFileSync(new URL(`../../fixtures/${name}`, import.meta.url), 'utf8')) as {
    $schema: string;
  };
  // Ajv contains this version, under a URL without the `#`.
  return { ...document, $schema: undefined };
};
const ajv = new Ajv2020({ strict: false, validateFormats: false });
const isDetection = ajv.compile(schema('sigma-detection-rule-schema.json'));
const isCorrelation = ajv.compile(schema('sigma-correlation-rules-schema.json'));

const allCodes = rows.map(({ triple }) => triple.join(':'));
const saidRules = rules.filter((rule) => sigmaLimit(rule) === undefined);
const nameOf = (id: string): string => `dpas_${id.replaceAll('-', '_')}`;

describe('the files', () => {
  test.each(sigmaRules.map((rule) => [rule.name, rule] as const))('%s follows the schema of the specification', (name, rule) => {
    const document = { ...rule, path: undefined };
    const validate = rule.correlation ? isCorrelation : isDetection;
    expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
    expect(name.startsWith(rule.path.replace(/^(rules\/|(?:correlations|ordered)\/correlation_)(\w+)\.yml$/, '$2'))).toBe(true);
    expect(rule.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    if (!rule.correlation) expect(rule.logsource).toEqual({ product: 'dpas', service: 'audit' });
  });

  test('have unique ids and names, and a rule for each that Sigma can say', () => {
    expect(new Set(sigmaRules.map(({ id }) => id)).size).toBe(sigmaRules.length);
    expect(new Set(sigmaRules.map(({ name }) => name)).size).toBe(sigmaRules.length);
    const names = sigmaRules.filter(({ level }) => level !== 'informational').map(({ name, level }) => [name, level]);
    expect(names.toSorted()).toEqual(saidRules.map(({ id, severity }) => [nameOf(id), severity]).toSorted());
  });

  test('use only fields of the record, and values of the specification', () => {
    const known: Readonly<Record<string, readonly unknown[]>> = {
      actionAttempted: rows.map(({ triple }) => triple[0]),
      result: rows.map(({ triple }) => triple[1]),
      resultReason: rows.map(({ triple }) => triple[2]),
      'userId|fieldref': ['currentPayloadOwnerId'],
      currentPayloadOwnerId: [null],
    };
    for (const rule of sigmaRules) {
      for (const field of fieldsOf(rule)) expect(fieldPaths, rule.name).toContain(field);
      for (const [field, value] of wantedOf(rule)) expect(known[field], rule.name).toContain(value);
    }
  });

  test('have the techniques of their rule with the tactics of ATT&CK, and a harmless cause', () => {
    // Tactics as SigmaHQ/sigma assigns them.
    const tactics: Readonly<Record<string, readonly string[]>> = {
      T1530: ['collection'],
      T1213: ['collection'],
      T1083: ['discovery'],
      T1486: ['impact'],
      T1222: ['defense-impairment'],
      T1098: ['persistence', 'privilege-escalation'],
      'T1078.004': ['initial-access', 'persistence', 'privilege-escalation', 'stealth'],
    };
    for (const { id, attack } of saidRules) {
      const { tags = [], falsepositives } = sigmaRule(nameOf(id));
      const expected = new Set(attack.flatMap((each) => [each.toLowerCase(), ...(tactics[each] ?? ['unknown'])]));
      expect(tags.toSorted(), id).toEqual([...expected].map((tag) => `attack.${tag}`).toSorted());
      expect(falsepositives.length, id).toBeGreaterThan(0);
    }
  });

  test('refer to rules of the same file', () => {
    for (const { path, correlation } of sigmaRules)
      for (const name of correlation?.rules ?? []) expect(sigmaRule(name).path, name).toBe(path);
  });
});

describe.each(saidRules)('$id', (rule) => {
  const samples = [
    ...rule.fires.map((acts, i) => ({ acts, name: `fires ${i}` })),
    ...rule.quiet.map((acts, i) => ({ acts, name: `quiet ${i}` })),
  ];
  // promise: Each Sigma rule fires for the samples of the rule that it is written from, and for no near miss.
  test.each(samples)('fires as the rule for its sample "$name"', ({ acts }) => {
    const events = eventsOf(acts, rule);
    const expected = evaluate(rule, events, {}, events.at(-1)?.at ?? 0);
    expect(matchesOf(sigmaRule(nameOf(rule.id)), events.map(recordOfEvent)).length > 0).toBe(expected.length > 0);
  });
});

test('a rule on the owner does not fire for a record without one', () => {
  const base = sigmaRule('dpas_denied_changed_opened_step_2');
  const record = { ...recordFor({ code: 'Audit:RevokeAccess:Changed', at: 0 }), currentPayloadOwnerId: 'u-2' };
  expect(matchesOf(base, [record])).toHaveLength(1);
  expect(matchesOf(base, [{ ...record, currentPayloadOwnerId: undefined }])).toEqual([]);
});

interface Transformation {
  readonly type: string;
  readonly key?: string;
  readonly val?: string;
  readonly mapping?: Readonly<Record<string, string>>;
  readonly conditions?: Readonly<Record<string, string>>;
  readonly rule_conditions: readonly ({ readonly type: 'logsource' } | { readonly type: 'tag'; readonly tag: string })[];
}

describe('the pipelines', () => {
  const transformationsOf = (pipeline: string): readonly Transformation[] =>
    (readSigma(`pipelines/${pipeline}.yml`) as { transformations: readonly Transformation[] }).transformations;
  const mappingFor = (pipeline: string, tags: readonly string[]): Readonly<Record<string, string>> => {
    const applied = transformationsOf(pipeline).filter(({ rule_conditions }) =>
      rule_conditions.every((condition) => condition.type === 'logsource' || tags.includes(condition.tag)),
    );
    // The first mapping of a field applies: after it the field has another name.
    return applied.reduce<Record<string, string>>((all, { mapping }) => ({ ...mapping, ...all }), {});
  };
  const conditionsOf = (pipeline: string): readonly (readonly [string, string])[] =>
    transformationsOf(pipeline).flatMap(({ type, conditions = {} }) => (type === 'add_condition' ? Object.entries(conditions) : []));
  const textOf = (format: 'ecs' | 'ocsf' | 'cef' | 'leef', record: object): string =>
    encoder(format, { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } })(
      normalizer(settings)(recordOf(JSON.stringify(record))),
    ).toString();

  test('select the events of Waybill by a value that each of them has', () => {
    // The index of the app, and the source type that the sink `splunk-hec` sends by default.
    expect(conditionsOf('splunk')).toEqual([
      ['index', 'dpas'],
      ['sourcetype', 'dpas:audit'],
    ]);
    expect(transformationsOf('ecs').find(({ type }) => type === 'set_state')).toMatchObject({ key: 'index', val: 'logs-dpas.audit-*' });
    for (const pipeline of ['ecs', 'ocsf'] as const) {
      const conditions = conditionsOf(pipeline);
      expect(conditions).toHaveLength(1);
      for (const code of allCodes)
        for (const [path, value] of conditions) expect(at(JSON.parse(textOf(pipeline, recordFor({ code, at: 0 }))))(path)).toBe(value);
    }
    const { vendor, product } = parseCef(textOf('cef', fullest));
    expect(conditionsOf('cef')).toEqual([
      ['deviceVendor', vendor],
      ['deviceProduct', product],
    ]);
  });

  test.each(['ecs', 'splunk'])('%s renames every field of a rule to a mapped field with the same value', (pipeline) => {
    const mapping = mappingFor(pipeline, []);
    for (const rule of sigmaRules)
      for (const field of fieldsOf(rule)) expect(mappedFields.has(mapping[field] ?? ''), `${rule.name} ${field}`).toBe(true);
    const written = at(JSON.parse(textOf('ecs', fullest)));
    for (const [field, path] of Object.entries(mapping)) expect(written(path), path).toBe(at(fullest)(field));
  });

  test.each([
    ['cef', (key: string) => new Map(parseCef(textOf('cef', fullest)).extension).get(key)],
    ['leef', (key: string) => parseLeef(textOf('leef', fullest)).values.get(key)],
  ] as const)('%s renames every field of a rule to a key with the same value', (pipeline, written) => {
    const mapping = mappingFor(pipeline, []);
    for (const rule of sigmaRules) for (const field of fieldsOf(rule)) expect(Object.keys(mapping)).toContain(field);
    for (const [field, key] of Object.entries(mapping)) expect(written(key), key).toBe(at(fullest)(field));
  });

  test('ocsf renames every field of a rule to an attribute of its class with its value', () => {
    // A correlation of control and opens has the file in two classes: content/README.md says so.
    const detections = sigmaRules.filter(({ detection }) => detection);
    for (const rule of detections) {
      const mapping = mappingFor('ocsf', rule.tags ?? []);
      const codes = allCodes.filter((code) => matchesOf(rule, [{ ...recordFor({ code, at: 0 }), currentPayloadOwnerId: 'u-2' }]).length > 0); // prettier-ignore
      expect(codes.length, rule.name).toBeGreaterThan(0);
      for (const code of codes) {
        const [actionAttempted, result, resultReason] = code.split(':');
        const record = { ...fullest, actionAttempted, result, resultReason };
        const written = at(JSON.parse(textOf('ocsf', record)));
        for (const field of ['payloadId', ...fieldsOf(rule)]) {
          // An entity of the class 3004 has no owner.
          if (field === 'currentPayloadOwnerId' && actionAttempted === 'Audit') continue;
          expect(written(mapping[field] ?? ''), `${rule.name} ${field}`).toBe(at(record)(field));
        }
      }
    }
  });
});

/** Reads a dotted path. */
function at(document: unknown): (path: string) => unknown {
  return (path) => path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
}
